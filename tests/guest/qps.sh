#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# qps.sh [N [MB]]: overload on a good wire: small WRITEs on 64, 128 and 256 QPs from one NIC to the other, N per QP with
# 32 outstanding, and a SEND from each NIC to itself: of MB megabytes with the largest path MTU, and of a quarter of that,
# which is about as many packets, with an MTU of 1024. A receiver with all its buffers posted keeps pace, so no packet is
# dropped for lack of room, no ACK comes too late, and nothing is retransmitted.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/perftest_lib.sh
. /opt/urdma/tests/perftest_lib.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
n=${1-320}
mb=${2-1024}
limit=3600
bad=()

# undisturbed WHAT: since the last call nothing was dropped, late or retransmitted, and there was traffic.
declare -A before=([rx_drop_full]=0 [tx_timeout]=0 [tx_retrans]=0 [rx_rdma_pkts]=0)
undisturbed() {
	local name now
	local -A more=()
	for name in "${!before[@]}"; do
		now=$(counted "$name")
		more[$name]=$((now - before[$name]))
		before[$name]=$now
	done
	echo "$1: ${more[rx_rdma_pkts]} packets received, ${more[rx_drop_full]} dropped, ${more[tx_timeout]} time-outs," \
		"${more[tx_retrans]} sent again"
	[ "${more[rx_rdma_pkts]}" -gt 0 ] || fail "no traffic"
	[ "${more[rx_drop_full]} ${more[tx_timeout]} ${more[tx_retrans]}" = "0 0 0" ] || bad+=("$1")
}

for qps in 64 128 256; do
	run ib_write_bw -s 32 -t 32 -q $qps
	results 32 $((n * qps))
	undisturbed "$qps QPs"
done

# own DEVICE MB: sends a SEND from DEVICE to itself.
own() {
	timeout "$limit" long_send "$1" "$(gid_index "$1")" "$2" || fail "long_send on $1: status $?"
	undisturbed "a SEND of $2 MB from $1 to itself"
}
own urdma1 $((mb / 4))
# With the largest path MTU the NIC sends the most bytes per second.
ip link set "$(net_of urdma0)" mtu 9000 || fail "no MTU of 9000"
own urdma0 "$mb"
ip link set "$(net_of urdma0)" mtu 1500
[ ${#bad[@]} = 0 ] || fail "disturbed: $(printf '%s; ' "${bad[@]}")"
echo "nothing was dropped, late or sent again"
