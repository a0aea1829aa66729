#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# perftest.sh [N [loss]]: the stock programs over every operation, N exchanges each, on a good wire or, with "loss", on a wire
# that loses frames: ibv_rc_pingpong, and perftest's bandwidth and latency of SEND, WRITE, READ and ATOMIC, polling and with
# events, on one QP and on several, in one direction and in both, inline or not, by the old post verbs and by the extended
# ones. Each must end with 0. The figures are ignored: a guest's figures say little about the NIC.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/perftest_lib.sh
. /opt/urdma/tests/perftest_lib.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
n=${1-200}
lossy=${2-}
# Nearly each of 16 READs of 64 KB loses a packet, and each time all of them are repeated, which is slow.
read_size=65536
[ -z "$lossy" ] || read_size=16384

run ibv_rc_pingpong -c -s 4096
run ibv_rc_pingpong -c -e -s 65536
# extended verbs, with completion timestamps
run ibv_rc_pingpong -c -N -t -s 4096

# QPs with one shared receive queue. The program posts more sends than it waits for, and destroys its QPs with some in flight.
# in-guest.sh would not accept that on a good wire; cm.sh runs it there.
if [ "$lossy" ]; then
	run ibv_srq_pingpong -c -q 8 -s 4096
	run ibv_srq_pingpong -c -e -s 3000
fi

# perftest supports several QPs only for bandwidth, and no events for WRITE.
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

# Datagrams are not retransmitted.
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

# The same by XRC: each has an SRQ at the other side.
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
