#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# smc.sh short|full: stream sockets of SMC-R version 2 between two guests. A server in guest 1 echoes the data; lengths and
# bytes are compared. SMC silently falls back to TCP if it cannot use RDMA, so the test checks for its QPs and packets.
#
# The guests talk across subnets, as through a router. Within a subnet Linux 6.12 needs a NIC with RoCE v1 too: a client that
# offers only version 2 omits its MAC address from the proposal, and the server sends to 00:00:00:00:00:00.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

case ${1-} in
short) connections=2 messages=16 rounds=2 ;;
full) connections=8 messages=40 rounds=2 ;;
*) fail "usage: smc.sh short|full" ;;
esac

# Where SMC's client and server are.
smc_client=10.78.0.1 smc_server=10.79.0.2

# move OWN FAR: gives this guest another address, and a route to the other guest's through a gateway. It keeps no other address:
# SMC uses the first IPv4 GID that it finds.
move() {
	local net
	net=$(device_net)
	ip -4 address flush dev "$net"
	ip address add "$1/24" dev "$net" || fail "no address $1"
	ip route add "${2%.*}.0/24" via "$2" dev "$net" onlink || fail "no route to $2"
}

# move_back OWN: restores its first address.
move_back() {
	local net
	net=$(device_net)
	ip -4 address flush dev "$net"
	ip address add "$1/24" dev "$net" || fail "no address $1"
}

# talk: runs a server and a client, and counts the QPs of SMC. Sets queues and packets.
talk() {
	local before
	before=$(counted tx_rdma_pkts)
	on 1 timeout 1500 smc server $smc_server $connections $messages >/tmp/server.log 2>&1 &
	server_pid=$!
	waits "the server" grep listening /tmp/server.log
	coproc talker { timeout 1500 smc client $smc_server $connections $messages 2>&1; }
	talker_pid=$!
	# shellcheck disable=SC2154  # coproc sets it
	read -r line <&"${talker[0]}"
	[ "$line" = connected ] || fail "the client: $line"
	queues=$(rdma resource show qp | grep -c "link $(device)/1 .*type RC state RTS .*comm \[smc\]")
	echo >&"${talker[1]}"
	wait $talker_pid || fail "the client has failed, and the server says: $(cat /tmp/server.log)"
	wait $server_pid || fail "the server: $(cat /tmp/server.log)"
	packets=$(($(counted tx_rdma_pkts) - before))
}

beginning
move $smc_client $smc_server
far move $smc_server $smc_client
modprobe smc || fail "no smc"
far modprobe smc || fail "no smc in guest 1"
talk
[ "$queues" = 0 ] || fail "$queues QPs without an enterprise ID"
phase "no enterprise ID: TCP"
smc eid URDMA || fail "no enterprise ID"
on 1 smc eid URDMA || fail "no enterprise ID in guest 1"
for _ in $(seq $rounds); do
	talk
	[ "$queues" -ge 1 ] || fail "not over RDMA: $(rdma resource show qp)"
	[ $packets -ge $((connections * messages)) ] || fail "these were not packets of RDMA: $packets"
done
phase "$rounds times $connections connections of $messages messages there and back, $queues QPs, $packets packets of RDMA"
move_back "$client"
far move_back "$server" || fail "guest 1 has not its address"
ending smc smc
echo "ok: SMC-R"
