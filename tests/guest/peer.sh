#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# peer.sh [N [MTU [loss]]]: two NICs and the soft-RoCE peer on a switch, which talk to each other as server and as client:
# SEND, WRITE, READ, ATOMIC by the stock programs, ATOMIC WRITE by mpe.c, N exchanges each, with that path MTU, on good
# wires or, with "loss", on wires that lose frames. Then, on good ones, the link of a NIC goes down and up.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

n=${1-50} mtu=${2-1024} lossy=${3-}

where[rxe0]="on peer"

# run PROGRAM SERVER CLIENT OPTIONS...: a pair between two devices.
run() {
	local start to=127.0.0.1
	start=$(cut -d. -f1 /proc/uptime)
	case $2-$3 in
	rxe0-*) to=peer ;;
	*-rxe0) to=192.168.126.1 ;;
	esac
	meet "$1" $to "${@:2}" -m "$mtu" -n "$n"
	printf '%-16s %-36s server %s, client %s: ok, %s s\n' "$1" "${*:4}" "$2" "$3" $(($(cut -d. -f1 /proc/uptime) - start))
}

# both PROGRAM OPTIONS...: with the peer as server, and as client.
both() {
	run "$1" urdma0 rxe0 "${@:2}"
	run "$1" rxe0 urdma0 "${@:2}"
}

devices_up 2 || fail "two active devices are expected here"
[ "$(cat /sys/class/infiniband/rxe0/ports/1/state)" = "4: ACTIVE" ] || fail "rxe0 is not there"
on peer test -e /sys/class/net/peer0 || fail "on peer does not reach the peer"
on peer test -e /sys/class/net/side0 && fail "the peer is in the same network namespace"
on peer sh -c 'exit 9'
[ $? = 9 ] || fail "the exit status does not come back from the peer"

if [ "$mtu" = 4096 ]; then
	for d in /sys/class/infiniband/urdma*/device/net/*; do
		ip link set "${d##*/}" mtu 9000 || fail "no MTU of 9000 on ${d##*/}"
	done
	on peer ip link set peer0 mtu 9000 || fail "no MTU of 9000 at the peer"
	devices_up 2 || fail "a device does not come back after its MTU was changed"
fi

# The transition to RTR waits one second for an ARP answer, and the kernel repeats a lost request only then (docs/guide.md).
# So both sides resolve each other's address before the first QP. If ARP gives up, so does ping.
reach() {
	for _ in 1 2 3 4 5; do
		"$@" -q -c 1 -w 10 >/tmp/ping.log 2>&1 && return 0
	done
	fail "$*: $(cat /tmp/ping.log)"
}
for k in 1 2; do
	reach on peer ping 10.77.0.$k
	reach ping -I "$(net_of urdma$((k - 1)))" 10.77.0.100
done

# The long form runs on the good wire with the default MTU.
short=0
[ -z "$lossy" ] && [ "$mtu" = 1024 ] || short=1
# ibv_rc_pingpong sends one message at a time: if ACKs are lost and a message has several packets, rxe may hang forever
# (docs/guide.md, rdma_rxe). perftest has a longer queue, so it sends long messages there too.
long=5000 longer=20000
[ -z "$lossy" ] || long=1000 longer=$mtu
both ibv_rc_pingpong -s $long -c
both ibv_rc_pingpong -s 64 -e
run ibv_rc_pingpong rxe0 urdma1 -s "$longer" -c
run ibv_rc_pingpong urdma0 urdma1 -s 5000 -c
both ib_send_bw -s 10000
[ $short = 1 ] || both ib_send_lat -s 64
both ib_write_bw -s 10000
both ib_write_bw -s 500 -q 4
[ $short = 1 ] || both ib_write_lat -s 64
# No more outstanding READs and ATOMICs than both sides support.
both ib_read_bw -s 10000 -o 16
both ib_read_lat -s 64 -o 1
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	both ib_atomic_bw -A $kind -o 16
	[ $short = 1 ] || both ib_atomic_lat -A $kind -o 1
done
# Without FLUSH: rxe computes another ICRC for it (docs/guide.md, rdma_rxe). rxe retransmits an ATOMIC WRITE to address 0.
# So its ACK time-out is 17 s: a busy host may delay an ACK by more than the usual 67 ms.
run mpe rxe0 urdma0 -a
[ -n "$lossy" ] || run mpe urdma0 rxe0 -a -t 22
[ $short = 0 ] || exit 0

[ "$(cosim link 0)" = "ok up" ] || fail "the link of NIC 0 is not up"
cosim link 0 down || fail "the link cannot be taken down"
[ "$(cosim link 0)" = "ok down" ] || fail "the link of NIC 0 is not down"
for _ in $(seq "$patience"); do
	grep -q DOWN /sys/class/infiniband/urdma0/ports/1/state && break
	sleep 0.1
done
grep -q DOWN /sys/class/infiniband/urdma0/ports/1/state || fail "the port of urdma0 does not follow its link"
net=$(ls /sys/class/infiniband/urdma0/device/net)
[ "$(cat "/sys/class/net/$net/carrier")" = 0 ] || fail "$net has a carrier without a link"
cosim link 0 up || fail "the link cannot be taken up"
cosim link 9 up && fail "a NIC that is not there has a link"
devices_up 2 || fail "a device does not come back after its link went down"
run ibv_rc_pingpong rxe0 urdma0 -s 1000
cosim counters | grep -q '"unknown":' || fail "the switch has no counters"
