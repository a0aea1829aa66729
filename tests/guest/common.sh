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

# net_of DEV: the net device of an RDMA device, as long as it is in this network namespace.
net_of() {
	local d
	for d in "/sys/class/infiniband/$1/device/net"/*; do
		[ ! -e "$d" ] || basename "$d"
	done
}

# namespaces: urdma0's net device goes to namespace a, as $na with 10.1.0.1 and fd01::1, urdma1's to b, as $nb with
# 10.1.0.2 and fd01::2, MTU 9000. At the end of the test they come back, with the addresses they had.
namespaces() {
	local i
	na=$(net_of urdma0) nb=$(net_of urdma1)
	if [ -z "$na" ] || [ -z "$nb" ]; then
		fail "the net devices are not in this namespace"
	fi
	trap namespaces_end EXIT
	for i in "a $na" "b $nb"; do
		# shellcheck disable=SC2086  # two words
		set -- $i
		ip netns add "$1" || fail "no network namespaces"
		ip link set "$2" netns "$1" || fail "$2 cannot be moved"
		ip -n "$1" link set lo up
		ip -n "$1" link set "$2" mtu 9000 up || fail "$2 does not come up"
	done
	addresses_ab
	for i in $(seq 100); do
		[ "$(cat /sys/class/infiniband/urdma[01]/ports/1/state | grep -c ACTIVE)" != 2 ] || return 0
		sleep 0.1
	done
	fail "after $i looks the ports are not both active"
}

addresses_ab() {
	ip -n a address replace 10.1.0.1/24 dev "$na"
	ip -n b address replace 10.1.0.2/24 dev "$nb"
	ip -n a address replace fd01::1/64 dev "$na" nodad
	ip -n b address replace fd01::2/64 dev "$nb" nodad
}

# shellcheck disable=SC2317,SC2329  # called by the trap
namespaces_end() {
	local status=$?
	trap - EXIT
	# shellcheck disable=SC2046
	kill $(ip netns pids a 2>/dev/null; ip netns pids b 2>/dev/null) 2>/dev/null
	# A net device of hardware goes home when its namespace ends.
	ip netns delete a
	ip netns delete b
	for _ in $(seq 100); do
		[ -e "/sys/class/net/$na" ] && [ -e "/sys/class/net/$nb" ] && break
		sleep 0.1
	done
	ip link set "$na" down mtu 1500
	ip link set "$nb" down mtu 1500
	/opt/urdma/guest/addresses
	devices_up 2 || echo "FAIL: the devices did not come back: $(rdma link show)"
	exit $status
}

in_a() { ip netns exec a "$@"; }
in_b() { ip netns exec b "$@"; }

# ping_ok STATUS FILE: every request was answered. With -w and -c ping goes on until it has the answers it wants, so when
# it ends as many requests may be under way as it says ever were ("pipe"), and no more.
ping_ok() {
	local sent received pipe
	sent=$(sed -n 's/^\([0-9]*\) packets transmitted.*/\1/p' "$2")
	received=$(sed -n 's/.*transmitted, \([0-9]*\) received.*/\1/p' "$2")
	pipe=$(sed -n 's/.*pipe \([0-9]*\).*/\1/p' "$2")
	[ "$1" = 0 ] && [ -n "$sent" ] && [ $((sent - received)) -le "${pipe:-1}" ]
}

# ping_ab OPTIONS... ADDRESS: from a; -c and -w have to be among them.
ping_ab() {
	local status=0
	in_a ping -q "$@" >/tmp/ping.log 2>&1 || status=$?
	if ! ping_ok $status /tmp/ping.log; then
		cat /tmp/ping.log
		counters_ab
		fail "ping $*"
	fi
}

# What the net devices and the NICs counted, for whoever looks for a lost frame.
counters_ab() {
	local k
	for k in "a $na" "b $nb"; do
		# shellcheck disable=SC2086  # two words
		set -- $k
		echo "--- $1, $2"
		ip -n "$1" -s link show "$2"
		ip netns exec "$1" ethtool -S "$2" | grep -v ': 0$'
	done
}

# iperf_ab OPTIONS...: iperf3 with its server in b and its client in a.
iperf_ab() {
	local server
	port=$((port + 1))
	in_b timeout 60 iperf3 -s -1 -p $port >/tmp/server.log 2>&1 &
	server=$!
	in_b bash -c ". /opt/urdma/tests/common.sh; wait_listen $port" ||
		fail "iperf3's server did not come up: $(cat /tmp/server.log)"
	if ! in_a timeout 60 iperf3 -p $port -f m "$@" >/tmp/client.log 2>&1; then
		cat /tmp/client.log /tmp/server.log
		counters_ab
		fail "iperf3 $*"
	fi
	wait $server || fail "iperf3's server: $(cat /tmp/server.log)"
	grep -E 'sender|receiver' /tmp/client.log | tail -n 2
}
