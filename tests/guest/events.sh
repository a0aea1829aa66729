#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# events.sh MTU [full]: perftest's programs sleeping on completion events (-e), with that path MTU; "full": from 2 bytes to
# 300 KB. The latency tests poll once per event. A second event for the same completion makes them run ahead until their
# queue is full ("Couldn't post send"); after a missing event they sleep forever. WRITE has no -e in perftest.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/perftest_lib.sh
. /opt/urdma/tests/perftest_lib.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
mtu=$1
n=53

# sleeping PROGRAM SIZE OPTIONS...
sleeping() {
	run "$1" -e -m "$mtu" -s "$2" "${@:3}"
	results "$2" "$n"
}

sleeping ib_read_lat 65536 -o 1
if [ "${2-}" = full ]; then
	for size in 2 64 256 257 1024 1025 20000 307200; do
		for program in ib_send_bw ib_send_lat ib_read_bw ib_read_lat; do
			sleeping $program $size
		done
		sleeping ib_read_lat $size -o 1
	done
	for kind in FETCH_AND_ADD CMP_AND_SWAP; do
		sleeping ib_atomic_bw 8 -A $kind -o 1
		sleeping ib_atomic_lat 8 -A $kind -o 1
	done
	for size in 2 1000 65536; do
		run ib_send_bw -e -m "$mtu" -s $size -q 4
		run ib_send_bw -e -m "$mtu" -s $size -b
		run ib_read_bw -e -m "$mtu" -s $size -q 4
		run ib_read_bw -e -m "$mtu" -s $size -b
	done
else
	sleeping ib_send_bw 2
	sleeping ib_send_bw 20000
	sleeping ib_send_lat 2
	sleeping ib_send_lat 20000
	sleeping ib_read_bw 2
	sleeping ib_read_bw 20000
	sleeping ib_read_lat 2
fi
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	sleeping ib_atomic_bw 8 -A $kind
	sleeping ib_atomic_lat 8 -A $kind
done
n=5
for program in ib_send_bw ib_send_lat ib_read_bw ib_read_lat; do
	sleeping $program 307200
done
echo "all $runs ended with 0"
