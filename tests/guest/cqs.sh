#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Completion queues, on both devices: runs cqs.c. A failure means that completions are lost or duplicated when a CQ is
# resized, that a program sleeps forever, or that moderation does not work as requested.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
for d in urdma0 urdma1; do
	timeout 600 cqs $d "$(gid_index $d)" || fail "cqs $d: status $?"
done
echo "ok: CQs that are resized, moderated, overrun"
