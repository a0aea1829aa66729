# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the tests that run inside the guest.

port=18600
# Seconds for one pair of programs: after a lost message it would hang forever.
limit=240
[ ! -e /sys/kernel/debug/kmemleak ] || limit=1200
# Time limit, in tenths of a second, of things that must happen. On an idle machine they take a few tenths. The limit is long,
# so that a slow and busy machine does not fail.
patience=1200

fail() {
	echo "FAIL: $*"
	exit 1
}

# waits WHAT COMMAND...: until COMMAND succeeds.
waits() {
	local what=$1
	shift
	for _ in $(seq "$patience"); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	fail "$what: not after $((patience / 10)) s"
}

# huge_pages N: reserves N pages of 2 MB, even if memory is fragmented.
huge_pages() {
	local n=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
	echo 1 >/proc/sys/vm/compact_memory
	echo "$1" >$n
	[ "$(cat $n)" = "$1" ] || fail "$(cat $n) huge pages instead of $1"
}

# gids DEV: its RoCE v2 GIDs, one line each with index and GID as in sysfs. Unused entries cannot be read.
gids() {
	local d=/sys/class/infiniband/$1/ports/1 i type gid
	for i in {0..31}; do
		if read -r type && [ "$type" = "RoCE v2" ] && read -r gid <"$d/gids/$i"; then
			echo "$i $gid"
		fi <"$d/gid_attrs/types/$i"
	done 2>/dev/null
}

# gid_index DEV: index of the GID of the device's IPv4 address, or else of its first GID, the link-local one.
gid_index() {
	local i gid found=
	while read -r i gid; do
		case $gid in
		0000:0000:0000:0000:0000:ffff:*)
			echo "$i"
			return 0
			;;
		esac
		found=${found:-$i}
	done < <(gids "$1")
	[ -n "$found" ] && echo "$found"
}

# has_gid DEV GID: its index
has_gid() {
	gids "$1" | sed -n "s/ $2\$//p" | grep .
}

# hw_counter DEV NAME: the counter's value; 0 while the device is absent, as in a reset.
hw_counter() {
	local dir=/sys/class/infiniband/$1/ports/1/hw_counters
	cat "$dir/$2" 2>/dev/null && return
	if [ -d "$dir" ]; then
		echo "$1 has no counter $2" >&2
		return 1
	fi
	echo 0
}

# Per device: the prefix of a command that must run where the device is, and the index of the GID to use, if not that of
# gid_index. A test whose devices are in different places, or that needs a certain GID, sets them.
declare -A where=() gid_of=()

# pair PROGRAM ADDRESS SERVER CLIENT OPTIONS...: a pingpong of libibverbs or one of perftest's programs, its server on one
# device, its client on the other, which finds the server over TCP at ADDRESS. Returns 0 if both ended with 0. Their output is
# in /tmp/server.log and /tmp/client.log, their status in server_status and status: 124 for a program that hung until the limit,
# or for 20 s after the other had ended.
pair() {
	local program=$1 to=$2 server=$3 client=$4 option=-x d one other first ended=0
	local -a options=("${@:5}")
	local -A index=()
	# -F: a guest's clock frequency means nothing anyway
	if [[ $program = ibv_*_pingpong ]]; then option=-g; else options+=(-F); fi
	for d in "$server" "$client"; do
		index[$d]=${gid_of[$d]-$(gid_index "$d")}
		[ -n "${index[$d]}" ] || fail "$d has no RoCEv2 GID"
	done
	# A new port each time: the last one may still be in TIME_WAIT.
	port=$((port + 1))
	status=0 server_status=0
	# shellcheck disable=SC2086  # words
	${where[$server]-} timeout "$limit" "$program" -d "$server" $option "${index[$server]}" -p $port "${options[@]}" \
		>/tmp/server.log 2>&1 &
	one=$!
	# shellcheck disable=SC2086
	if ! ${where[$server]-} wait-listen $port; then
		kill $one 2>/dev/null
		fail "the server of $program on $server did not come up: $(cat /tmp/server.log)"
	fi
	# shellcheck disable=SC2086
	${where[$client]-} timeout "$limit" "$program" -d "$client" $option "${index[$client]}" -p $port "${options[@]}" "$to" \
		>/tmp/client.log 2>&1 &
	other=$!
	wait -n -p first $one $other || ended=$?
	if [ "$first" = $one ]; then
		server_status=$ended
		half_ends $other || status=$?
	else
		status=$ended
		half_ends $one || server_status=$?
	fi
	[ $status = 0 ] && [ $server_status = 0 ]
}

# half_ends PID: its status, for pair.
half_ends() {
	for _ in $(seq 400); do
		kill -0 "$1" 2>/dev/null || {
			wait "$1"
			return
		}
		sleep 0.05
	done
	kill "$1"
	wait "$1"
	return 124
}

# last_ack_lost PROGRAM [SERVER CLIENT]: did the pair fail because of a lost last ACK? On a wire that loses frames, one half of
# a ping-pong over a reliable connection ends when it has all its messages. If the ACK of the other half's last message was
# lost, it cannot be repeated, and that half ends with a retry error, on any NIC. rxe waits forever instead: it takes the
# program's retry count of 7 as no limit.
last_ack_lost() {
	case $1 in
	ibv_rc_pingpong | ibv_srq_pingpong | ibv_xsrq_pingpong) ;;
	*) return 1 ;;
	esac
	case ${2-}/$server_status-${3-}/$status in
	rxe0/124-*/0 | */0-rxe0/124) return 0 ;;
	*/0-*/1 | */1-*/0) ;;
	*) return 1 ;;
	esac
	[ "$(cat /tmp/server.log /tmp/client.log | grep -c 'transport retry counter exceeded')" = 1 ]
}

# counted NAME...: the sum of these counters over all NICs. It comes from the simulator, because the RDMA core shows hw_counters
# only in the first network namespace.
counted() {
	counted_of '' "$@"
}

# counted_of NIC NAME...: the same for one NIC.
counted_of() {
	local names nic=$1
	shift
	names=$(IFS='|' && echo "$*")
	# shellcheck disable=SC2086  # none is no word
	cosim counters $nic | grep -oE "\"($names)\": *[0-9]+" | awk -F: '{ n += $2 } END { print n + 0 }'
}

# meet PROGRAM ADDRESS SERVER CLIENT OPTIONS...: a pair that must succeed. On a wire that loses frames (variable lossy), the
# last ACK may be lost: then the pair is repeated. This happens to one pair in a hundred, so more than three in one run are a
# fault. The captures are judged in any case.
met_again=0
meet() {
	until pair "$@"; do
		if [ -z "${lossy-}" ] || [ $met_again = 3 ] || ! last_ack_lost "$1" "$3" "$4"; then
			cat /tmp/server.log /tmp/client.log
			fail "$*: server's status $server_status, client's $status (124: it hung); $met_again pairs were tried again"
		fi
		met_again=$((met_again + 1))
		echo "once more, time $met_again: the last ACK was lost"
	done
}

# pingpong OPTIONS...: one ibv_rc_pingpong between urdma0 (server) and urdma1 (client); the programs connect over the loopback,
# their messages go over the wire.
pingpong() {
	meet ibv_rc_pingpong 127.0.0.1 urdma0 urdma1 "$@"
	cat /tmp/client.log
}

# gid_comes DEV GID, gid_goes DEV GID: waits for a change, because the core updates GIDs in a work queue.
gid_comes() {
	for _ in $(seq "$patience"); do
		has_gid "$1" "$2" >/dev/null && return 0
		sleep 0.1
	done
	fail "$1 has no GID $2: $(grep . "/sys/class/infiniband/$1/ports/1/gids/"* | grep -v ':0000:0000:0000$')"
}
gid_goes() {
	for _ in $(seq "$patience"); do
		has_gid "$1" "$2" >/dev/null || return 0
		sleep 0.1
	done
	fail "$1 still has GID $2"
}

# port_is DEV STATE
port_is() {
	for _ in $(seq "$patience"); do
		grep -q "$2" "/sys/class/infiniband/$1/ports/1/state" && return 0
		sleep 0.1
	done
	fail "the port of $1 is not $2: $(cat "/sys/class/infiniband/$1/ports/1/state")"
}

# resources: the number of objects per device, from the RDMA core.
resources() {
	rdma resource show | grep -E '^[0-9]+: urdma' | sort
}

# wait_resources BASELINE: waits until the counts are those of BASELINE again.
wait_resources() {
	for _ in $(seq "$patience"); do
		[ "$(resources)" != "$1" ] || return 0
		sleep 0.1
	done
	return 1
}

# devices_up N: waits until there are N devices with an active port.
devices_up() {
	for _ in $(seq "$patience"); do
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

# namespaces: moves urdma0's net device to namespace a, as $na with 10.1.0.1 and fd01::1, and urdma1's to b, as $nb with
# 10.1.0.2 and fd01::2, MTU 9000. At the end of the test both return with their former addresses.
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
	for i in $(seq "$patience"); do
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
	# A hardware net device returns to the initial namespace when its namespace ends.
	ip netns delete a
	ip netns delete b
	for _ in $(seq "$patience"); do
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

# ping_ab OPTIONS... ADDRESS: pings from a until -c answers have come. -w must be given too: until then ping sends more
# requests, so a slow machine does not fail. With -A about one request is in flight; with -i a slow machine may have more long
# ones in flight than fit the kernel's sockets, which drop them. nothing_lost, not ping, reports losses, because ping ends with
# requests in flight.
ping_ab() {
	if ! in_a ping -q "$@" >/tmp/ping.log 2>&1; then
		cat /tmp/ping.log
		counters_ab
		fail "ping $*"
	fi
}

# echoes COMMAND...: echo requests sent and received, and answers sent and received, of ICMP and ICMPv6, in the network
# namespace in which COMMAND runs a program, since its creation.
echoes() {
	"$@" cat /proc/net/snmp /proc/net/snmp6 | awk '
		$1 == "Icmp:" && !named { named = split($0, name); next }
		$1 == "Icmp:" { for (i = 2; i <= NF; i++) n[name[i]] += $i }
		sub(/^Icmp6/, "", $1) { sub(/Replies$/, "Reps", $1); n[$1] += $2 }
		END { print n["OutEchos"], n["InEchos"], n["OutEchoReps"], n["InEchoReps"] }'
}

# nothing_lost A B, two commands as for echoes: B received and answered every request that A has sent, and A received the
# answer.
nothing_lost() {
	local a b
	for _ in $(seq "$patience"); do
		# shellcheck disable=SC2086  # words
		a=$(echoes $1) b=$(echoes $2)
		# shellcheck disable=SC2086
		set -- "$1" "$2" $a $b
		[ "$3" -gt 0 ] && [ "$3 $3 $3" = "$8 $9 $6" ] && return 0
		sleep 0.2
	done
	[ -z "${na-}" ] || counters_ab
	fail "echo requests sent, received, answers sent, received: here $a, at the other side $b"
}
nothing_lost_ab() { nothing_lost in_a in_b; }

# Counters of the net devices and the NICs, to find a lost frame.
counters_ab() {
	local k
	for k in "a $na" "b $nb"; do
		# shellcheck disable=SC2086  # two words
		set -- $k
		echo "--- $1, $2"
		ip -n "$1" -s link show "$2"
		tc -n "$1" -s qdisc show dev "$2"
		ip netns exec "$1" ethtool -S "$2" | grep -v ': 0$'
	done
}

# iperf_ab OPTIONS...: iperf3 with its server in b and its client in a.
iperf_ab() {
	local server
	port=$((port + 1))
	in_b timeout "$limit" iperf3 -s -1 -p $port >/tmp/server.log 2>&1 &
	server=$!
	in_b wait-listen $port ||
		fail "iperf3's server did not come up: $(cat /tmp/server.log)"
	if ! in_a timeout "$limit" iperf3 -p $port -f m "$@" >/tmp/client.log 2>&1; then
		cat /tmp/client.log /tmp/server.log
		counters_ab
		fail "iperf3 $*"
	fi
	wait $server || fail "iperf3's server: $(cat /tmp/server.log)"
	grep -E 'sender|receiver' /tmp/client.log | tail -n 2
}
