#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# peer.sh [N [MTU [loss]]]: two NICs and the soft-RoCE peer on a switch, which talk to each other as server and as client:
# SEND, WRITE, READ, ATOMIC by the stock programs, N exchanges each, with that path MTU, on wires that are good or, as "loss"
# says, are not. Then, on good ones, the link of a NIC goes down and up.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

n=${1-50} mtu=${2-1024} lossy=${3-}
[ -z "$lossy" ] || limit=20

# half DEVICE COMMAND...: where that device is.
half() {
	local device=$1
	shift
	case $device in
	rxe*) on peer "$@" ;;
	*) "$@" ;;
	esac
}

# try PROGRAM SERVER CLIENT OPTIONS...: the two halves of a program on two devices; both have to end with 0.
try() {
	local program=$1 server=$2 client=$3 to=127.0.0.1 gid=-x pid
	local -a options=("${@:4}" -m "$mtu" -n "$n")
	case $server-$client in
	rxe0-*) to=peer ;;
	*-rxe0) to=192.168.126.1 ;;
	esac
	if [ "$program" = ibv_rc_pingpong ]; then gid=-g; else options+=(-F); fi
	port=$((port + 1))
	half "$server" timeout "$limit" "$program" -d "$server" $gid "$(gid_index "$server")" -p $port "${options[@]}" \
		>/tmp/server.log 2>&1 &
	pid=$!
	if ! half "$server" bash -c ". /opt/urdma/tests/common.sh; wait_listen $port"; then
		kill $pid 2>/dev/null
		fail "no server on $server: $(cat /tmp/server.log)"
	fi
	status=0 server_status=0
	half "$client" timeout "$limit" "$program" -d "$client" $gid "$(gid_index "$client")" -p $port "${options[@]}" $to \
		>/tmp/client.log 2>&1 || status=$?
	wait $pid || server_status=$?
	[ $status = 0 ] && [ $server_status = 0 ]
}

# lost_last_ack PROGRAM SERVER CLIENT: the one half has got all that it waits for and is gone; the other waits for an ACK
# that was lost, as pingpong_lossy of common.sh tells. urdma ends with a retry error then. rxe takes a retry count of 7,
# which the program asks for, as no limit (rxe_comp.c) and waits for ever. And rxe, when an acknowledgement comes while it sends
# again, sometimes falls silent with work to do: then both sides wait. What urdma did stands in the captures, which are judged.
lost_last_ack() {
	[ -n "$lossy" ] && [ "$1" = ibv_rc_pingpong ] || return 1
	case $2/$server_status-$3/$status in
	rxe0/124-*/0 | */0-rxe0/124 | rxe0/124-*/124 | */124-rxe0/124) return 0 ;;
	*/0-*/1 | */1-*/0) ;;
	*) return 1 ;;
	esac
	[ "$(cat /tmp/server.log /tmp/client.log | grep -c 'transport retry counter exceeded')" = 1 ]
}

meet() {
	local start
	start=$(cut -d. -f1 /proc/uptime)
	for _ in 1 2 3; do
		if try "$@"; then
			printf '%-16s %-36s server %s, client %s: ok, %s s\n' "$1" "${*:4}" "$2" "$3" \
				$(($(cut -d. -f1 /proc/uptime) - start))
			return 0
		fi
		lost_last_ack "$@" || break
		echo "once more: the last ACK was lost, or rxe fell silent"
	done
	cat /tmp/server.log /tmp/client.log
	fail "$*: server's status $server_status, client's $status (124: it hung)"
}

# both PROGRAM OPTIONS...: with the peer as server, and as client.
both() {
	meet "$1" urdma0 rxe0 "${@:2}"
	meet "$1" rxe0 urdma0 "${@:2}"
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

# The long form is that of the good wire with the usual MTU.
short=0
[ -z "$lossy" ] && [ "$mtu" = 1024 ] || short=1
both ibv_rc_pingpong -s 5000 -c
both ibv_rc_pingpong -s 64 -e
meet ibv_rc_pingpong rxe0 urdma1 -s 20000 -c
meet ibv_rc_pingpong urdma0 urdma1 -s 5000 -c
both ib_send_bw -s 10000
[ $short = 1 ] || both ib_send_lat -s 64
both ib_write_bw -s 10000
both ib_write_bw -s 500 -q 4
[ $short = 1 ] || both ib_write_lat -s 64
# No more READs and ATOMICs outstanding than both sides have.
both ib_read_bw -s 10000 -o 16
both ib_read_lat -s 64 -o 1
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	both ib_atomic_bw -A $kind -o 16
	[ $short = 1 ] || both ib_atomic_lat -A $kind -o 1
done
[ $short = 0 ] || exit 0

[ "$(cosim link 0)" = "ok up" ] || fail "the link of NIC 0 is not up"
cosim link 0 down || fail "the link cannot be taken down"
[ "$(cosim link 0)" = "ok down" ] || fail "the link of NIC 0 is not down"
for _ in $(seq 100); do
	grep -q DOWN /sys/class/infiniband/urdma0/ports/1/state && break
	sleep 0.1
done
grep -q DOWN /sys/class/infiniband/urdma0/ports/1/state || fail "the port of urdma0 does not follow its link"
net=$(ls /sys/class/infiniband/urdma0/device/net)
[ "$(cat "/sys/class/net/$net/carrier")" = 0 ] || fail "$net has a carrier without a link"
cosim link 0 up || fail "the link cannot be taken up"
cosim link 9 up && fail "a NIC that is not there has a link"
devices_up 2 || fail "a device does not come back after its link went down"
meet ibv_rc_pingpong rxe0 urdma0 -s 1000
cosim counters | grep -q '"unknown":' || fail "the switch has no counters"
