#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# perftest.sh [N [loss]]: the stock programs over every operation, N exchanges each, on a wire that is good or, as
# "loss" says, is not: ibv_rc_pingpong, and perftest's bandwidth and latency of SEND, WRITE, READ and ATOMIC, polling
# and with events, on one QP and on several, in one direction and in both, inline or not, by the old post verbs and
# by the extended ones. What counts is that each ends with 0: a guest's figures say little about the NIC.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/perftest_lib.sh
. /opt/urdma/tests/perftest_lib.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
n=${1-200}
lossy=${2-}
# Of 16 READs of 64 KB nearly each loses a packet, and all of them are asked for again each time: slow.
read_size=65536
[ -z "$lossy" ] || read_size=16384

run ibv_rc_pingpong -c -s 4096
run ibv_rc_pingpong -c -e -s 65536
# extended verbs, with times of completions
run ibv_rc_pingpong -c -N -t -s 4096

# QPs of one shared receive queue. It posts more sends than it waits for, and its QPs go with some of them under way. On a good
# wire that would not be judged (in-guest.sh); cm.sh runs it there.
if [ "$lossy" ]; then
	run ibv_srq_pingpong -c -q 8 -s 4096
	run ibv_srq_pingpong -c -e -s 3000
fi

# perftest has several QPs for bandwidth only, and no events for WRITE.
run ib_send_bw -s 65536
run ib_send_bw -s 1000 -q 4
run ib_send_bw -s 64 -e
run ib_send_bw -s 2000 -e -q 4
run ib_send_bw -s 8192 -b
run ib_send_bw -s 64 -I 64 --use_old_post_send
run ib_send_lat -s 8
run ib_send_lat -s 4000 -e
run ib_send_bw -s 1000 -q 8 --use-srq
run ib_send_bw -s 64 -e -q 4 --use-srq
run ib_send_lat -s 64 --use-srq

# Nobody repeats a datagram.
[ "$lossy" ] || run ib_send_bw -c UD -s 1000

run ib_write_bw -s 65536
run ib_write_bw -s 1000 -q 4
run ib_write_bw -s 8192 -b
run ib_write_bw -s 64 -I 64 -q 4
run ib_write_bw -s 3000 --use_old_post_send
run ib_write_bw -s 5000 --write_with_imm
run ib_write_lat -s 8
run ib_write_lat -s 4000 -I 0

run ib_read_bw -s "$read_size"
run ib_read_bw -s 1000 -q 4
run ib_read_bw -s 64 -e
run ib_read_bw -s 2000 -e -q 4
run ib_read_bw -s 8192 -b
run ib_read_bw -s 3000 --use_old_post_send
run ib_read_lat -s 8
run ib_read_lat -s 4000 -e

for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	run ib_atomic_bw -A $kind
	run ib_atomic_bw -A $kind -q 4
	run ib_atomic_bw -A $kind -e
	run ib_atomic_lat -A $kind
	run ib_atomic_lat -A $kind -e
done
run ib_atomic_bw -e -q 4
run ib_atomic_bw -b
run ib_atomic_bw --use_old_post_send

# The same by XRC: an SRQ at the other side for each.
run ib_send_bw -c XRC -s 4000
run ib_send_bw -c XRC -s 1000 -q 4 -b
run ib_send_bw -c XRC -s 64 -e -q 2
run ib_send_bw -c XRC -s 64 -I 64 --use_old_post_send
run ib_send_lat -c XRC -s 64
run ib_send_lat -c XRC -s 3000 -e
run ib_write_bw -c XRC -s 65536
run ib_write_bw -c XRC -s 1000 -q 4
run ib_write_lat -c XRC -s 64
run ib_read_bw -c XRC -s "$read_size"
run ib_read_bw -c XRC -s 1000 -e -q 4
run ib_atomic_bw -c XRC
run ib_atomic_lat -c XRC -e
echo "all $runs ended with 0"
