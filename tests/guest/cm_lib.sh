# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, behind common.sh, by the tests of connection managers.
# shellcheck source=tests/guest/common.sh
[ -n "${limit-}" ] || . /opt/urdma/tests/common.sh

# served SERVER -- CLIENT: the first runs in a, and then the second in b; both have to end with 0.
served() {
	local server=() pid status=0
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout "$limit" ip netns exec a "${server[@]}" >/tmp/server.log 2>&1 &
	pid=$!
	# They listen by QP 1, so there is nothing in /proc/net to wait for.
	for _ in $(seq 100); do
		! rdma resource show cm_id | grep -q 'state LISTEN' || break
		[ "${server[0]#ib}" = "${server[0]}" ] || { wait_listen_a && break; }
		sleep 0.1
	done
	timeout "$limit" ip netns exec b "$@" >/tmp/client.log 2>&1 || status=$?
	wait $pid || status="$status, server's $?"
	[ "$status" = 0 ] || fail "$*: status $status
$(cat /tmp/server.log /tmp/client.log)"
	echo "ok: $*"
}

# Programs of libibverbs and perftest meet by TCP first.
wait_listen_a() {
	in_a grep -q ' 00000000:0000 0A\|00000000000000000000000000000000:0000 0A' /proc/net/tcp /proc/net/tcp6
}

index_in() {
	ip netns exec "$1" bash -c ". /opt/urdma/tests/common.sh; gid_index $2"
}
