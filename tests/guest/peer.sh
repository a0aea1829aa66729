#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two NICs and the soft-RoCE peer on a switch: each talks to each, as server and as client. Then the
# link of a NIC goes down and up.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

# meet SERVER CLIENT OPTIONS...: ibv_rc_pingpong between two devices, wherever they are.
meet() {
	local server=$1 client=$2 to=127.0.0.1 status=0 server_status=0 pid
	local -a at_server=() at_client=()
	shift 2
	case $server-$client in
	rxe0-*) at_server=(on peer) to=peer ;;
	*-rxe0) at_client=(on peer) to=192.168.126.1 ;;
	esac
	port=$((port + 1))
	"${at_server[@]}" timeout "$limit" ibv_rc_pingpong -d "$server" -g "$(gid_index "$server")" -p $port "$@" \
		>/tmp/server.log 2>&1 &
	pid=$!
	"${at_server[@]}" bash -c ". /opt/urdma/tests/common.sh; wait_listen $port" ||
		fail "no server on $server: $(cat /tmp/server.log)"
	"${at_client[@]}" timeout "$limit" ibv_rc_pingpong -d "$client" -g "$(gid_index "$client")" -p $port "$@" $to ||
		status=$?
	wait $pid || server_status=$?
	if [ $status != 0 ] || [ $server_status != 0 ]; then
		cat /tmp/server.log
		fail "server $server, client $client: server's status $server_status, client's $status (124: it hung)"
	fi
	echo "ok: server $server, client $client $*"
}

devices_up 2 || fail "two active devices are expected here"
[ "$(cat /sys/class/infiniband/rxe0/ports/1/state)" = "4: ACTIVE" ] || fail "rxe0 is not there"
on peer test -e /sys/class/net/peer0 || fail "on peer does not reach the peer"
on peer test -e /sys/class/net/side0 && fail "the peer is in the same network namespace"
on peer sh -c 'exit 9'
[ $? = 9 ] || fail "the exit status does not come back from the peer"

meet urdma0 rxe0 -n 50 -m 1024 -s 5000 -c
meet rxe0 urdma0 -n 50 -m 1024 -s 5000 -c
meet rxe0 urdma1 -n 50 -m 1024 -s 64
meet urdma0 urdma1 -n 50 -m 1024 -s 5000 -c

[ "$(cosim link 0)" = "ok up" ] || fail "the link of NIC 0 is not up"
cosim link 0 down || fail "the link cannot be taken down"
[ "$(cosim link 0)" = "ok down" ] || fail "the link of NIC 0 is not down"
cosim link 0 up || fail "the link cannot be taken up"
cosim link 9 up && fail "a NIC that is not there has a link"
devices_up 2 || fail "a device does not come back after its link went down"
meet rxe0 urdma0 -n 20 -m 1024 -s 1000
cosim counters | grep -q '"unknown":' || fail "the switch has no counters"
