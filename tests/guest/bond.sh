#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bond.sh: the net devices of urdma0 and urdma1 in one bond (active-backup), that of urdma2 in a separate network namespace,
# all on a switch. The RDMA core gives the bond's address to the active device, and removes it when another one becomes
# active. RDMA must work over the active device, by GID and by the connection manager.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 3 || fail "three active devices are expected"
n0=$(net_of urdma0) n1=$(net_of urdma1) n2=$(net_of urdma2)
baseline=$(resources)
here=0000:0000:0000:0000:0000:ffff:0a09:0001 there=0000:0000:0000:0000:0000:ffff:0a09:0002

ip netns add b || fail "no network namespace"
ip link set "$n2" netns b || fail "$n2 cannot be moved"
ip -n b link set lo up
ip -n b address add 10.9.0.2/24 dev "$n2"
ip -n b link set "$n2" up
modprobe bonding max_bonds=0 || fail "no bonding"
ip link add bond0 type bond mode active-backup miimon 20 || fail "no bond"
for n in $n0 $n1; do
	ip link set "$n" down
	ip address flush dev "$n"
	ip link set "$n" master bond0 || fail "$n does not become a slave"
done
ip address add 10.9.0.1/24 dev bond0
ip link set bond0 up
where[urdma2]="ip netns exec b"
gid_comes urdma2 $there
gid_of[urdma2]=$(has_gid urdma2 $there)

listens() {
	rdma resource show cm_id | grep -q LISTEN
}
# active DEV OTHER: the bond and RDMA send through DEV, which has the bond's GID.
active() {
	waits "$1 is the active slave" grep -qx "$(net_of "$1")" /sys/class/net/bond0/bonding/active_slave
	gid_comes "$1" $here
	gid_goes "$2" $here
	waits "ping through $1" ping -q -c 1 -W 5 10.9.0.2
	gid_of[$1]=$(has_gid "$1" $here)
	meet ibv_rc_pingpong 10.9.0.2 urdma2 "$1" -n 100
	ip netns exec b timeout "$limit" rping -s -a 10.9.0.2 -C 5 -V >/tmp/rping.log 2>&1 &
	waits "rping listens" listens
	timeout "$limit" rping -c -a 10.9.0.2 -C 5 -V >/tmp/rping-c.log 2>&1 || fail "rping through $1: $(cat /tmp/rping-c.log)"
	wait $! || fail "rping's server: $(cat /tmp/rping.log)"
	echo "ok: through $1"
}
# in_turn DEV: DEV becomes the active slave.
in_turn() {
	net_of "$1" >/sys/class/net/bond0/bonding/active_slave
}
in_turn urdma0
active urdma0 urdma1
# The active slave changes by command, and after a link failure.
in_turn urdma1
active urdma1 urdma0
cosim link 1 down >/dev/null || fail "the link stays up"
active urdma0 urdma1
cosim link 1 up >/dev/null

ip link set bond0 down
ip link delete bond0
wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"
echo "ok"
