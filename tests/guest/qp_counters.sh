#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Counters of QPs, through `rdma statistic`: bound manually and by rule, shared, unbound, and shown for the port. They must
# match the operations of the program qp_counters. A failure means that a counter is wrong, or counts for another QP.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"

# begin: starts the program and gets the numbers of its QPs.
begin() {
	local word
	coproc program { exec qp_counters urdma0 "$(gid_index urdma0)" urdma1 "$(gid_index urdma1)"; }
	# shellcheck disable=SC2154  # coproc sets it
	pid=$program_PID
	read -r -t "$limit" word from0 _ to0 to1 <&"${program[0]}" || word=
	[ "$word" = ready ] || fail "qp_counters does not come up"
}

# work PAIR OPERATION NUMBER BYTES
work() {
	local answer
	echo "$*" >&"${program[1]}"
	read -r -t "$limit" answer <&"${program[0]}" || answer=
	[ "$answer" = "done" ] || fail "qp_counters does not do $*"
}

# end: ends the program, with its QPs.
end() {
	eval "exec ${program[1]}>&-"
	wait "$pid" || fail "qp_counters ends with $?"
}

stat() {
	rdma statistic "$@" || fail "rdma statistic $*: status $?"
}

refused() {
	! rdma statistic "$@" 2>/dev/null || fail "rdma statistic $* is not refused"
}

# counter DEVICE LQPN: the QP's counter as one line. The filter of the program rdma only considers a counter's first QP.
counter() {
	rdma statistic qp show link "$1/1" | tr '\n' ' ' | awk -v qp="$2" -v RS='link ' \
		'$0 ~ "LQPN: <([0-9]+,)*" qp "(,[0-9]+)*>"'
}

# value LINE NAME
value() {
	awk -v name="$2" '{ for (i = 1; i < NF; i++) if ($i == name) { print $(i + 1); exit } }' <<<"$1"
}

# want WHAT LINE NAME VALUE...
want() {
	local what=$1 line=$2 got
	shift 2
	while [ $# -gt 0 ]; do
		got=$(value "$line" "$1")
		[ "$got" = "$2" ] || fail "$what: $1 is ${got:-not there} instead of $2: $line"
		shift 2
	done
}

# All counters of the port: those that the NIC counts for the port, and the sums over all QPs.
port_shown=$(rdma statistic show link urdma0/1)
[ -n "$(value "$port_shown" rcvd_pkts)" ] || fail "the port shows: $port_shown"
[ -n "$(value "$port_shown" rx_bad_qkey)" ] || fail "the port does not show all: $port_shown"
for name in out_of_buffer duplicate_request out_of_sequence local_ack_timeout_err req_cqe_flush_error; do
	[ -n "$(value "$port_shown" $name)" ] || fail "the port does not show $name: $port_shown"
	[ -e "/sys/class/infiniband/urdma0/ports/1/hw_counters/$name" ] || fail "there is no hw_counters/$name"
done

# ---- by hand
begin
work 0 write 5 100
stat qp bind link urdma0/1 lqpn "$from0"
stat qp bind link urdma1/1 lqpn "$to0"
want "a new counter" "$(counter urdma0 "$from0")" sent_pkts 0 rx_pkts 0 tx_bytes 0
refused qp bind link urdma0/1 lqpn "$from0"
refused qp bind link urdma0/1 lqpn 4000
refused qp unbind link urdma0/1 cntn 200 lqpn "$from0"

work 0 send 30 1000
work 0 write 20 3000
work 0 read 10 2500
work 0 atomic 4 8
work 1 write 7 50
sent=$(counter urdma0 "$from0")
came=$(counter urdma1 "$to0")
echo "sent: $sent"
echo "came: $came"
want "requester" "$sent" tx_bytes $((30 * 1000 + 20 * 3000)) rx_bytes $((10 * 2500)) rx_send_requests 0 \
	retransmitted_pkts 0 req_cqe_error 0 local_ack_timeout_err 0
want "responder" "$came" rx_send_requests 30 rx_write_requests 20 rx_read_requests 10 rx_atomic_requests 4 \
	rx_bytes $((30 * 1000 + 20 * 3000)) tx_bytes $((10 * 2500)) duplicate_request 0 out_of_buffer 0 out_of_sequence 0 \
	rx_pkts "$(value "$sent" sent_pkts)" sent_pkts $(($(value "$sent" rx_pkts) + $(value "$sent" rx_ack_pkts)))

# two QPs, one counter
stat qp bind link urdma1/1 lqpn "$to1" cntn "$(value "$came" cntn)"
work 1 send 3 64
work 0 send 2 64
want "two QPs" "$(counter urdma1 "$to1")" rx_send_requests 35 rx_write_requests 20

# unbound; the port counts all QPs, with and without a counter
stat qp unbind link urdma0/1 cntn "$(value "$sent" cntn)" lqpn "$from0"
work 0 write 9 100
[ -z "$(counter urdma0 "$from0")" ] || fail "the QP still has a counter: $(counter urdma0 "$from0")"
want "the port" "$(rdma statistic show link urdma0/1)" \
	tx_bytes $(($(value "$port_shown" tx_bytes) + 14 * 100 + 30 * 1000 + 20 * 3000 + 7 * 50 + 5 * 64))

# again: from 0 on
stat qp bind link urdma0/1 lqpn "$from0"
work 0 write 6 100
want "bound again" "$(counter urdma0 "$from0")" tx_bytes 600 sent_pkts 6

# The QPs are destroyed, and their counters with them.
end
for d in urdma0 urdma1; do
	[ -z "$(rdma statistic qp show link $d/1)" ] || fail "left: $(rdma statistic qp show link $d/1)"
done

# ---- by rule
stat qp set link urdma1/1 auto type on
rdma statistic qp mode link urdma1/1 | grep -q 'auto.*on' || fail "mode: $(rdma statistic qp mode link urdma1/1)"
begin
work 0 send 10 500
work 1 send 5 500
came=$(counter urdma1 "$to0")
want "all of a type" "$came" rx_send_requests 15 rx_bytes 7500
[ "$(value "$came" cntn)" = "$(value "$(counter urdma1 "$to1")" cntn)" ] || fail "two counters for one type"
refused qp bind link urdma1/1 lqpn "$to0"
end
stat qp set link urdma1/1 auto off
[ -z "$(rdma statistic qp show link urdma1/1)" ] || fail "left: $(rdma statistic qp show link urdma1/1)"

# ---- programs that do not know of it
stat qp set link urdma0/1 auto pid,type on
before=$(rdma statistic show link urdma0/1)
pair ibv_rc_pingpong 127.0.0.1 urdma0 urdma1 -n 200 -s 2000 || fail "pingpong: $(cat /tmp/server.log /tmp/client.log)"
after=$(rdma statistic show link urdma0/1)
stat qp set link urdma0/1 auto off
want "pingpong" "$after" rx_send_requests $(($(value "$before" rx_send_requests) + 200))
[ "$(cat /sys/class/infiniband/urdma0/ports/1/hw_counters/rx_send_requests)" = "$(value "$after" rx_send_requests)" ] ||
	fail "hw_counters and rdma statistic differ"
[ "$(value "$after" rcvd_pkts)" -gt "$(value "$before" rcvd_pkts)" ] || fail "the port did not count"
echo "ok: counters of QPs"
