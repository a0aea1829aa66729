#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ibv_rc_pingpong is killed under traffic, 20 times, one side or both: the kernel must free every
# object, and the next run must work. A failure means that objects leak when a process dies, or that
# the NIC still worked for a destroyed QP.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
g0=$(gid_index urdma0) g1=$(gid_index urdma1)
baseline=$(resources)
echo "$baseline"

for round in $(seq "${1-20}"); do
	port=$((port + 1))
	mode=$([ $((round % 2)) = 0 ] && echo -e)
	# shellcheck disable=SC2086  # an option or none
	ibv_rc_pingpong -d urdma0 -g "$g0" -p $port -n 100000000 $mode >/tmp/server.log 2>&1 &
	server=$!
	wait-listen $port || fail "round $round: the server did not come up: $(cat /tmp/server.log)"
	# shellcheck disable=SC2086
	ibv_rc_pingpong -d urdma1 -g "$g1" -p $port -n 100000000 $mode 127.0.0.1 >/tmp/client.log 2>&1 &
	client=$!
	before=$(hw_counter urdma0 rcvd_pkts)
	moving=
	for _ in $(seq "$patience"); do
		if [ $(($(hw_counter urdma0 rcvd_pkts) - before)) -ge 20 ]; then
			moving=1
			break
		fi
		sleep 0.05
	done
	[ -n "$moving" ] || fail "round $round: no traffic: $(cat /tmp/server.log /tmp/client.log)"
	case $((round % 3)) in
	0) kill -KILL $server $client ;;
	1) kill -KILL $server && sleep 0.1 && kill -KILL $client ;;
	2) kill -KILL $client && sleep 0.1 && kill -KILL $server ;;
	esac
	wait $server $client 2>/dev/null
	wait_resources "$baseline" || fail "round $round: objects were left behind:
$(rdma resource show)
$(rdma resource show qp)
$(rdma resource show mr)"
	pingpong -c -n 10 -s 4096 >/tmp/next.log || fail "round $round: the next run failed: $(cat /tmp/next.log)"
done
echo "ok: killed $round times, nothing left behind"
