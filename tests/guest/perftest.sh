#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The stock programs over every operation: ibv_rc_pingpong, and perftest's bandwidth and latency of SEND, WRITE,
# READ and ATOMIC, polling and with events, on one QP and on several. What counts is that each ends with 0: a
# guest's figures say little about the NIC. perftest.sh quick: fewer.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

title() {
	printf '\n== %s\n' "$*"
}

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
n=${1-200}

title "ibv_rc_pingpong, $n exchanges, polling and with events"
pingpong -c -n "$n" -s 4096
pingpong -c -e -n "$n" -s 65536

for op in send write read; do
	title "ib_${op}_bw"
	perftest ib_${op}_bw -n "$n" -s 65536
	perftest ib_${op}_bw -n "$n" -s 1000 -q 4
	# perftest has no events for WRITE.
	[ $op = write ] || perftest ib_${op}_bw -n "$n" -s 64 -e
	title "ib_${op}_lat"
	perftest ib_${op}_lat -n "$n" -s 8
done
title "ib_send_lat, ib_read_lat with events"
perftest ib_send_lat -n "$n" -s 64 -e
perftest ib_read_lat -n "$n" -s 64 -e
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	title "ib_atomic_bw, ib_atomic_lat: $kind"
	perftest ib_atomic_bw -A $kind -n "$n"
	perftest ib_atomic_lat -A $kind -n "$n"
done
title "ib_atomic_bw on several QPs, with events"
perftest ib_atomic_bw -n "$n" -q 4
perftest ib_atomic_bw -n "$n" -e
title "both directions"
perftest ib_send_bw -b -n "$n" -s 8192
perftest ib_write_bw -b -n "$n" -s 8192
perftest ib_read_bw -b -n "$n" -s 8192
echo
echo "all ended with 0"
