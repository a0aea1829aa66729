#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Kernel verbs: the module kverbs is a consumer in the kernel that makes RC QPs between urdma0 and
# urdma1 and goes through its list of checks with each way of polling. A failure means that storage and
# file systems over RDMA in the kernel would not work; the lines say which check and why.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
before=$(dmesg | wc -l)
status=0
timeout "${URDMA_KVERBS_LIMIT:-200}" modprobe kverbs "$@" || status=$?
dmesg | tail -n +$((before + 1)) | sed -n 's/.*kverbs: //p'
[ $status = 0 ] || fail "kverbs: status $status"
passed=$(cat /sys/module/kverbs/parameters/passed)
[ "$passed" -gt 0 ] || fail "no check has run"
modprobe -r kverbs || fail "modprobe -r kverbs: status $?"
rdma resource show qp | grep -q '\[kverbs\]' && fail "objects are left: $(rdma resource show qp)"
echo "ok: $passed checks of kernel verbs"
