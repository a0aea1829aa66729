#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Multicast between two devices: by verbs, over IPv4 and IPv6, with members on both or on one; by the RDMA CM, which also
# joins at the net device (mckey); members that are killed, and a reset of a device with a member. A failure means that
# groups, address handles of groups or the NIC's loopback do not work, or that a destroyed QP leaves something behind.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"

# index DEV 4|6: index of a GID of that family
index() {
	case $2 in
	4) gids "$1" | awk '$2 ~ /^0000:0000:0000:0000:0000:ffff:/ { print $1; exit }' ;;
	6) gids "$1" | awk '$2 !~ /^0000:/ { print $1; exit }' ;;
	esac
}

# by_verbs: runs the program for both families, and for a group whose MAC address is also another group's.
by_verbs() {
	local group family
	for group in 239.1.2.3 224.129.2.3 ff0e::1234 ff02::db8:1:2; do
		case $group in *:*) family=6 ;; *) family=4 ;; esac
		timeout "$limit" ip netns exec a mcast urdma0 "$(index_in a urdma0 $family)" urdma1 \
			"$(index_in b urdma1 $family)" $group || fail "mcast $group: status $?"
	done
}

index_in() {
	ip netns exec "$1" bash -c ". /opt/urdma/tests/common.sh; $(declare -f index); index $2 $3"
}

# receiver N NAMESPACE ADDRESS: starts a member in the background, which has joined when this returns.
receivers=()
receiver() {
	: >/tmp/mckey"$1".log
	timeout "$limit" ip netns exec "$2" stdbuf -oL mckey -m $group -b "$3" -C $count >/tmp/mckey"$1".log 2>&1 &
	receivers+=($!)
	for _ in $(seq "$patience"); do
		! grep -q 'receiving data' /tmp/mckey"$1".log || return 0
		sleep 0.1
	done
	fail "receiver $1 does not join: $(cat /tmp/mckey"$1".log)"
}

# sender NAMESPACE ADDRESS
sender() {
	timeout "$limit" ip netns exec "$1" mckey -m $group -b "$2" -s -C $count >/tmp/sender.log 2>&1 ||
		fail "sender: status $?: $(cat /tmp/sender.log)"
}

all_received() {
	local i
	for i in "${!receivers[@]}"; do
		wait "${receivers[i]}" || fail "receiver $i: status $?: $(cat /tmp/mckey*.log /tmp/sender.log)"
	done
	receivers=()
}

namespaces
baseline=$(resources)
by_verbs

group=239.9.8.7 count=10
# two on the other device, two beside the sender
receiver 0 a 10.1.0.1
receiver 1 a 10.1.0.1
receiver 2 b 10.1.0.2
receiver 3 b 10.1.0.2
ip -n a maddress show dev "$na" | grep -q $group || fail "the net device is not in the group"
sender b 10.1.0.2
all_received
echo "ok: mckey, four receivers"
# from a device without members
receiver 0 b 10.1.0.2
sender a 10.1.0.1
all_received
for _ in $(seq "$patience"); do
	ip -n b maddress show dev "$nb" | grep -q $group || break
	sleep 0.1
done
! ip -n b maddress show dev "$nb" | grep -q $group || fail "the net device is still in the group"
echo "ok: mckey, a sender without members"

# A killed member leaves; another one joins and receives.
receiver 0 a 10.1.0.1
kill -9 "$(pgrep -n mckey)"
wait "${receivers[0]}" 2>/dev/null
receivers=()
receiver 1 a 10.1.0.1
sender b 10.1.0.2
all_received
wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"
echo "ok: a member was killed"

# A reset of a device with a member; afterwards everything works as before.
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma0/device)")
receiver 0 a 10.1.0.1
echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset"
kill "${receivers[0]}" 2>/dev/null
wait "${receivers[0]}" 2>/dev/null
receivers=()
addresses_ab
devices_up 2 || fail "the devices did not come back"
gid_comes urdma0 0000:0000:0000:0000:0000:ffff:0a01:0001
by_verbs
receiver 0 a 10.1.0.1
receiver 1 b 10.1.0.2
sender a 10.1.0.1
all_received
for d in urdma0 urdma1; do
	for c in rx_drop_full rx_bad_qkey; do
		[ "$(hw_counter $d $c)" = 0 ] || fail "$d: $c is $(hw_counter $d $c)"
	done
done
echo "ok: multicast, a reset under a member"
