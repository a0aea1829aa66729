# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the tests of connection managers.
# shellcheck source=tests/guest/common.sh
[ -n "${limit-}" ] || . /opt/urdma/tests/common.sh

# Command prefixes for the places where the two halves run.
server_at=(ip netns exec a) client_at=(ip netns exec b)

# halves SERVER -- CLIENT: the two commands, as arrays of the caller.
halves() {
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	client=("$@")
}

# is_up SERVER...: does it wait for its client? Programs of libibverbs and perftest listen on TCP; with -R they listen by QP
# 1, as those of librdmacm do. mckey does not listen, but prints when it has joined its group. 18515 is the TCP port of the
# programs of libibverbs and perftest.
is_up() {
	[[ "$*" != *mckey* ]] || { grep -q 'receiving data' /tmp/server.log && return; }
	"${server_at[@]}" rdma resource show cm_id | grep -q 'state LISTEN' ||
		{ [ "${1#ib}" != "$1" ] && "${server_at[@]}" wait-listen 18515 0; }
}

is_down() {
	! is_up "$@"
}

# begin SERVER...: starts it in the background, as server_pid. Returns when it waits for its client.
begin() {
	: >/tmp/server.log # is_up must not read the last one's
	# A stopped program in guest 1 may end later than the command here that started it.
	waits "the end of the server before" is_down "$@"
	timeout "$limit" "${server_at[@]}" "$@" >/tmp/server.log 2>&1 &
	server_pid=$!
	for _ in $(seq "$patience"); do
		! is_up "$@" || break
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.1
	done
}

# served SERVER -- CLIENT: starts the first at server_at, then the second at client_at; both must end with 0.
#
# On a wire that loses frames (variable lossy), the half that ends first may leave the other waiting. A client that ends
# destroys its connection, so a lost disconnect request is not repeated and the server would wait forever: it is stopped. A
# half of a ping-pong destroys its QP (last_ack_lost). More than three such cases in one run are a fault.
left_alone=0
served() {
	local server=() client=() server_pid status=0 server_status=0
	halves "$@"
	begin "${server[@]}"
	timeout "$limit" "${client_at[@]}" "${client[@]}" >/tmp/client.log 2>&1 || status=$?
	if [ "${lossy-}" ]; then
		half_ends "$server_pid" || server_status=$?
		if [ $server_status-$status = 124-0 ]; then
			! alone "a disconnect request" || server_status=0
		elif last_ack_lost "${server[0]}"; then
			! alone "the last acknowledgement" || server_status=0 status=0
		fi
	else
		wait "$server_pid" || server_status=$?
	fi
	[ "$status-$server_status" = 0-0 ] || fail "${client[*]}: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	echo "ok: ${client[*]}"
}

# datagrams SERVER -- CLIENT: as served, for programs of UD and UC. On a wire that loses frames they may wait forever for a
# lost message. So both are stopped if packets were lost and none has passed for `silence` seconds. If no packet was lost,
# both must end with 0.
silence=4
unreliable_lost=0 unreliable_stopped=0
datagrams() {
	local server=() client=() server_pid client_pid status=0 server_status=0 before now last='' since=0 lost end=''
	[ "${lossy-}" ] || {
		served "$@"
		return
	}
	halves "$@"
	before=$(lost_packets)
	begin "${server[@]}"
	timeout "$limit" "${client_at[@]}" "${client[@]}" >/tmp/client.log 2>&1 &
	client_pid=$!
	while kill -0 "$server_pid" 2>/dev/null || kill -0 $client_pid 2>/dev/null; do
		now=$(counted tx_rdma_pkts rx_rdma_pkts)
		if [ "$now" != "$last" ]; then
			last=$now
			since=$SECONDS
		elif [ $((SECONDS - since)) -ge $silence ] && [ "$(lost_packets)" != "$before" ]; then
			end=', stopped'
			kill "$server_pid" $client_pid 2>/dev/null
			break
		fi
		sleep 0.2
	done
	wait $client_pid || status=$?
	wait "$server_pid" || server_status=$?
	lost=$(($(lost_packets) - before))
	[ "$end" ] || [ "$status-$server_status" = 0-0 ] || fail "${client[*]}: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	unreliable_lost=$((unreliable_lost + lost))
	[ -z "$end" ] || unreliable_stopped=$((unreliable_stopped + 1))
	echo "ok: ${client[*]}: $lost packets lost$end"
}

# lost_packets: RoCE packets that the NICs have sent but not received, on a wire that does not corrupt any. For multicast
# datagrams, which the sender's NIC also receives, only those from client to server count: group_from and group_to name these
# NICs.
group_from='' group_to=''
lost_packets() {
	if [ "$group_from" ]; then
		echo $(($(counted_of "$group_from" tx_rdma_pkts) - $(counted_of "$group_to" rx_rdma_pkts)))
	else
		echo $(($(counted tx_rdma_pkts) - $(counted rx_rdma_pkts)))
	fi
}

# alone WHAT: WHAT was lost; checks that it is not lost too often.
alone() {
	[ $left_alone -lt 3 ] || return 1
	left_alone=$((left_alone + 1))
	echo "$1 was lost, time $left_alone"
}

index_in() {
	ip netns exec "$1" bash -c ". /opt/urdma/tests/common.sh; gid_index $2"
}
