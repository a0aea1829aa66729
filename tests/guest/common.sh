# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests that run inside the guest.

port=18600
# Seconds for one ibv_rc_pingpong: a lost message would hang it for ever.
limit=${URDMA_PINGPONG_LIMIT:-60}

fail() {
	echo "FAIL: $*"
	exit 1
}

# gid_index DEV: of the RoCEv2 GID of the device's IPv4 address, or else of its link-local one.
gid_index() {
	local d=/sys/class/infiniband/$1/ports/1 i found=
	for i in $(seq 0 31); do
		[ "$(cat "$d/gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ] || continue
		case $(cat "$d/gids/$i") in
		0000:0000:0000:0000:0000:ffff:*)
			echo "$i"
			return 0
			;;
		*) found=${found:-$i} ;;
		esac
	done
	[ -n "$found" ] && echo "$found"
}

# hw_counter DEV NAME
hw_counter() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2" 2>/dev/null ||
		cat "/sys/class/infiniband/$1/hw_counters/$2" 2>/dev/null || echo 0
}

# wait_listen PORT: until somebody listens there, 20 s at most.
wait_listen() {
	local hex
	hex=$(printf ':%04X 00000000:0000 0A' "$1")
	for _ in $(seq 200); do
		grep -q "$hex" /proc/net/tcp && return 0
		grep -q "$(printf ':%04X 00000000000000000000000000000000:0000 0A' "$1")" /proc/net/tcp6 && return 0
		sleep 0.1
	done
	return 1
}

# between PROGRAM SERVER-OPTIONS -- CLIENT-OPTIONS: a program that finds its other half over TCP, the server
# on urdma0, the client on urdma1; the two meet on the loopback, what they send goes over the wire. Both
# have to end with 0.
between() {
	local program=$1 server status=0 server_status=0
	local -a for_server=() for_client=()
	shift
	while [ "$1" != -- ]; do
		for_server+=("$1")
		shift
	done
	shift
	for_client=("$@")
	# A port of its own each time: the last one may still be in TIME_WAIT.
	port=$((port + 1))
	timeout "$limit" "$program" -d urdma0 -p $port "${for_server[@]}" >/tmp/server.log 2>&1 &
	server=$!
	if ! wait_listen $port; then
		kill $server 2>/dev/null
		cat /tmp/server.log
		fail "the server of $program did not come up"
	fi
	timeout "$limit" "$program" -d urdma1 -p $port "${for_client[@]}" 127.0.0.1 || status=$?
	if [ $status != 0 ]; then
		kill $server 2>/dev/null
	fi
	wait $server || server_status=$?
	if [ $status != 0 ] || [ $server_status != 0 ]; then
		echo "--- the server's output (status $server_status):"
		cat /tmp/server.log
		fail "$program ${for_client[*]}: client's status $status, server's $server_status (124: it hung)"
	fi
}

# gids: of both devices, into g0 and g1.
gids() {
	g0=$(gid_index urdma0) || fail "urdma0 has no RoCEv2 GID"
	g1=$(gid_index urdma1) || fail "urdma1 has no RoCEv2 GID"
}

# pingpong OPTIONS...: one ibv_rc_pingpong between urdma0 (server) and urdma1 (client).
pingpong() {
	local g0 g1
	gids
	between ibv_rc_pingpong -g "$g0" "$@" -- -g "$g1" "$@"
}

# pingpong_lossy OPTIONS...: the same on a wire that loses frames. The program ends as soon as it has all that it
# waits for; when the ACK of the other side's very last message was lost, nobody is left to repeat it, and that side
# ends with a retry error, on any NIC. In this case alone, and while the other side ended with 0, it is tried again.
pingpong_lossy() {
	local round
	for round in 1 2 3; do
		if (pingpong "$@") >/tmp/pingpong.log 2>&1; then
			cat /tmp/pingpong.log
			return 0
		fi
		if [ "$(grep -c 'transport retry counter exceeded' /tmp/pingpong.log)" != 1 ] ||
			! grep -qE "client's status (0, server's 1|1, server's 0) " /tmp/pingpong.log; then
			break
		fi
		echo "round $round: the last ACK was lost"
		port=$((port + 1))
	done
	cat /tmp/pingpong.log
	return 1
}

# perftest PROGRAM OPTIONS...: likewise one of perftest's programs.
perftest() {
	local program=$1 g0 g1
	shift
	gids
	# -F: the clock of a guest is no measure anyway
	between "$program" -F -x "$g0" "$@" -- -F -x "$g1" "$@"
}

# resources: how many objects the RDMA core knows of, of each device.
resources() {
	rdma resource show | grep -E '^[0-9]+: urdma' | sort
}

# wait_resources BASELINE: until the counts are again what they were, 10 s at most.
wait_resources() {
	for _ in $(seq 100); do
		[ "$(resources)" != "$1" ] || return 0
		sleep 0.1
	done
	return 1
}

# devices_up N: until N devices are there with their port active, 20 s at most.
devices_up() {
	for _ in $(seq 200); do
		[ "$(cat /sys/class/infiniband/urdma*/ports/1/state 2>/dev/null | grep -c ACTIVE)" = "$1" ] &&
			return 0
		sleep 0.1
	done
	return 1
}
