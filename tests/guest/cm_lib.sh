# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, behind common.sh, by the tests of connection managers.
# shellcheck source=tests/guest/common.sh
[ -n "${limit-}" ] || . /opt/urdma/tests/common.sh

# Where the two halves run: words in front of a command.
server_at=(ip netns exec a) client_at=(ip netns exec b)

# served SERVER -- CLIENT: the first runs at server_at, and then the second at client_at; both have to end with 0.
#
# On a wire that loses frames, which lossy says, the half that ends first may leave the other alone. A client that ends takes
# its connection with it, so nobody repeats a lost disconnect request, and the server waits for ever: it is stopped. A half
# of a ping-pong takes its QP with it, so nobody repeats the acknowledgement of the other's last message, and the other
# ends with a retry error. More than three of these in one run are a fault.
left_alone=0
served() {
	local server=() pid status=0 server_status=0
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout "$limit" "${server_at[@]}" "${server[@]}" >/tmp/server.log 2>&1 &
	pid=$!
	# They listen by QP 1, so there is nothing in /proc/net to wait for.
	for _ in $(seq "$patience"); do
		! "${server_at[@]}" rdma resource show cm_id | grep -q 'state LISTEN' || break
		[ "${server[0]#ib}" = "${server[0]}" ] || { wait_listen_a && break; }
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	timeout "$limit" "${client_at[@]}" "$@" >/tmp/client.log 2>&1 || status=$?
	if [ "${lossy-}" ]; then
		half_ends $pid || server_status=$?
		case ${server[0]}/$server_status-$status in
		*/124-0) alone "a disconnect request" && server_status=0 ;;
		ibv_*pingpong/0-1 | ibv_*pingpong/1-0)
			[ "$(cat /tmp/server.log /tmp/client.log | grep -c 'transport retry counter exceeded')" != 1 ] ||
				! alone "the last acknowledgement" || server_status=0 status=0
			;;
		esac
	else
		wait $pid || server_status=$?
	fi
	[ "$status-$server_status" = 0-0 ] || fail "$*: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	echo "ok: $*"
}

# alone WHAT: that was lost, as often as it may be.
alone() {
	[ $left_alone -lt 3 ] || return 1
	left_alone=$((left_alone + 1))
	echo "$1 was lost, time $left_alone"
}

# Programs of libibverbs and perftest meet by TCP first.
wait_listen_a() {
	"${server_at[@]}" grep -q ' 00000000:0000 0A\|00000000000000000000000000000000:0000 0A' /proc/net/tcp /proc/net/tcp6
}

index_in() {
	ip netns exec "$1" bash -c ". /opt/urdma/tests/common.sh; gid_index $2"
}
