#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cm_peer.sh [short]: the connection manager, UD, UC and multicast between a NIC and the soft-RoCE peer, as server and as
# client. A failure means that our NIC and another implementation do not understand each other's QP 1 messages or datagrams.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/cm_lib.sh
. /opt/urdma/tests/cm_lib.sh

devices_up 2 || fail "two active devices are expected"
where[rxe0]="on peer"
ours=10.77.0.1 theirs=10.77.0.100
on peer ping -q -c 1 -w 120 $ours >/dev/null || fail "the peer does not reach $ours"

# both WORDS: runs the same two commands with the peer as server and as client; TO stands for the server's address.
both() {
	local -a words
	server_at=(on peer) client_at=(env)
	read -ra words <<<"${*//TO/$theirs}"
	served "${words[@]}"
	server_at=(env) client_at=(on peer)
	read -ra words <<<"${*//TO/$ours}"
	served "${words[@]}"
}

both rping -s -a TO -C 5 -V -S 100 -- rping -c -a TO -C 5 -V -S 100
both udaddy -b TO -c 2 -C 5 -S 500 -- udaddy -s TO -c 2 -C 5 -S 500
[ "${1-}" != short ] || exit 0
both rping -s -a TO -C 3 -V -S 30000 -- rping -c -a TO -C 3 -V -S 30000
both ucmatose -b TO -c 4 -C 5 -S 3000 -- ucmatose -s TO -c 4 -C 5 -S 3000

# meets PROGRAM OPTIONS...
meets() {
	meet "$1" 192.168.126.1 urdma0 rxe0 -n 50 "${@:2}"
	meet "$1" peer rxe0 urdma0 -n 50 "${@:2}"
	echo "ok: $*"
}
meets ibv_uc_pingpong -s 3000
meets ibv_ud_pingpong -s 1000
meets ib_send_bw -c UC -s 3000 -m 1024
meets ib_write_bw -c UC -s 3000 -m 1024
meets ib_send_bw -c UD -s 1000 -m 1024
meets ib_send_lat -c UD -s 64 -m 1024

# Datagrams to a joined group arrive from the other side. The sender is not mckey, which does not wait for the completion of
# its datagrams (mcsend.c).
group=239.9.8.7
server_at=(on peer) client_at=(env)
served stdbuf -oL mckey -m $group -b $theirs -C 10 -- mcsend $ours $group 10
server_at=(env) client_at=(on peer)
served stdbuf -oL mckey -m $group -b $ours -C 10 -- mcsend $theirs $group 10
echo "ok: the connection manager, datagrams and UC with another implementation"
