#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kverbs.sh [PARAMETER=VALUE...]: kernel verbs. The module kverbs is a consumer in the kernel that makes
# QPs between urdma0 and urdma1 and goes through its list of checks with each way of polling. Then a
# device dies while it waits for completions, and in the end the driver goes while it is attached. A
# failure means that storage and file systems over RDMA in the kernel would not work; the lines say
# which check and why.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

# load PARAMETER...: run the checks, show what they say.
load() {
	local status=0 before
	before=$(dmesg | wc -l)
	timeout 600 modprobe kverbs "$@" || status=$?
	dmesg | tail -n +$((before + 1)) | sed -n 's/.*kverbs: //p'
	[ $status = 0 ] || fail "kverbs $*: status $status"
}

# The driver is loaded again: every device is as after power-up.
reload() {
	modprobe -r urdma || fail "modprobe -r urdma with kverbs attached: status $?"
	modprobe urdma || fail "modprobe urdma: status $?"
	/opt/urdma/guest/addresses
	devices_up 2 || fail "the devices did not come back: $(rdma link show)"
}

devices_up 2 || fail "two active devices are expected"
load "$@"
passed=$(cat /sys/module/kverbs/parameters/passed)
[ "$passed" -gt 0 ] || fail "no check has run"
rdma resource show qp | grep -q '\[kverbs\]' && fail "objects are left: $(rdma resource show qp)"
reload
modprobe -r kverbs || fail "modprobe -r kverbs: status $?"

# A device that does not decode its addresses any more reads as ones, as one that was pulled out.
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma0/device)")
(
	for _ in $(seq "$patience"); do
		dmesg | grep -q 'kverbs: waiting for the end' && break
		sleep 0.1
	done
	setpci -s "$pci" COMMAND=0
) &
load dead=1
wait
reload
modprobe -r kverbs || fail "modprobe -r kverbs: status $?"
pingpong -c -n 10 -s 4096
echo "ok: $passed checks of kernel verbs, and a device that died"
