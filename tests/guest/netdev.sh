#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The net devices of two NICs on one wire, each in its own network namespace: ARP and ND, ping of all lengths, flood,
# iperf3, VLANs, MTU changes under traffic, link down and up, another MAC address, promiscuous mode; and the RDMA
# functions that depend on them: GID table, ports, and connections over addresses resolved by ARP and ND. No frame may
# be lost: the wire is good. A failure prints the counters of both sides.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

for p in iperf3 arping ping ethtool; do
	command -v $p >/dev/null || fail "the guest has no $p: --packages 'iperf3 iputils-arping'"
done
devices_up 2 || fail "two active devices are expected"
namespaces
where[urdma0]="ip netns exec a" where[urdma1]="ip netns exec b"

# halves PROGRAM GID-OF-A GID-OF-B OPTIONS...: runs a pair with the server on urdma0, in a, and those GIDs.
halves() {
	gid_of[urdma0]=$(has_gid urdma0 "$2") || fail "urdma0 has no GID $2"
	gid_of[urdma1]=$(has_gid urdma1 "$3") || fail "urdma1 has no GID $3"
	meet "$1" 10.1.0.1 urdma0 urdma1 "${@:4}"
}

# snapshot NAME: writes the statistics of both sides to /tmp/a.NAME and /tmp/b.NAME, at a time without frames: the
# kernel sometimes sends by itself, and the two are not read at the same time.
snapshot() {
	for _ in $(seq 50); do
		sleep 0.2
		in_a ethtool -S "$na" >"/tmp/a.$1"
		in_b ethtool -S "$nb" >"/tmp/b.$1"
		{
			in_a ethtool -S "$na"
			in_b ethtool -S "$nb"
		} | grep nic_eth >/tmp/again
		cat "/tmp/a.$1" "/tmp/b.$1" | grep nic_eth | cmp -s - /tmp/again && return 0
	done
	fail "the net devices do not come to rest"
}

# The counts so far, from power-up on.
snapshot before

step() { echo "-- $* ($(cut -d' ' -f1 /proc/uptime))"; }

step "ARP and ND"
in_a arping -q -c 3 -w 300 -I "$na" 10.1.0.2 || fail "arping"
ping_ab -c 1 -w 300 10.1.0.2
ping_ab -c 1 -w 300 fd01::2
in_a ip neighbour show 10.1.0.2 | grep -q lladdr || fail "no neighbour: $(in_a ip neighbour)"

step "ping of all lengths"
for n in 0 1 17 18 19 22 46 63 64 65 127 500 1023 1472 1473 3669 3670 3671 4096 7381 7382 7383 8191 8971 8972; do
	ping_ab -c 2 -A -w 120 -M 'do' -s $n 10.1.0.2
done
for n in 0 1 14 64 1452 1453 3649 3650 3651 4096 7361 7363 8951 8952; do
	ping_ab -c 2 -A -w 120 -M 'do' -s $n fd01::2
done
# Longer than the MTU: sent in fragments.
ping_ab -c 2 -A -w 120 -s 40000 10.1.0.2
nothing_lost_ab

step "flood"
ping_ab -f -c 1000 -w 300 10.1.0.2
ping_ab -A -c 300 -w 300 -s 8000 fd01::2
nothing_lost_ab

step "iperf3"
iperf_ab -c 10.1.0.2 -t 2
iperf_ab -c 10.1.0.2 -t 2 -R
iperf_ab -c fd01::2 -t 2 -P 4
iperf_ab -c 10.1.0.2 -t 2 -u -b 20M -l 1400
iperf_ab -c 10.1.0.2 -t 2 -u -b 20M -l 1400 -R

step "VLANs"
for v in 7 4094; do
	ip -n a link add link "$na" name "v$v" type vlan id $v
	ip -n b link add link "$nb" name "v$v" type vlan id $v
	ip -n a link set "v$v" up
	ip -n b link set "v$v" up
	ip -n a address add "10.2.$((v % 256)).1/24" dev "v$v"
	ip -n b address add "10.2.$((v % 256)).2/24" dev "v$v"
done
ping_ab -c 3 -A -w 120 10.2.7.2
ping_ab -c 3 -A -w 120 -M 'do' -s 8972 10.2.254.2
# VLAN tags by the CPU instead of the NIC, and without the VLAN filter.
in_b ethtool -K "$nb" rxvlan off txvlan off rx-vlan-filter off
ping_ab -c 3 -A -w 120 10.2.7.2
in_b ethtool -K "$nb" rxvlan on txvlan on rx-vlan-filter on
ping_ab -c 3 -A -w 120 10.2.7.2

step "GIDs follow addresses"
v4a=0000:0000:0000:0000:0000:ffff:0a01:0001 v4b=0000:0000:0000:0000:0000:ffff:0a01:0002
v6a=fd01:0000:0000:0000:0000:0000:0000:0001 v6b=fd01:0000:0000:0000:0000:0000:0000:0002
vla=0000:0000:0000:0000:0000:ffff:0a02:0701 vlb=0000:0000:0000:0000:0000:ffff:0a02:0702
for g in $v4a $v6a $vla; do gid_comes urdma0 "$g"; done
for g in $v4b $v6b $vlb; do gid_comes urdma1 "$g"; done
extra=0000:0000:0000:0000:0000:ffff:0a01:0063
ip -n a address add 10.1.0.99/24 dev "$na"
gid_comes urdma0 $extra
ip -n a address delete 10.1.0.99/24 dev "$na"
gid_goes urdma0 $extra

step "RDMA over addresses found by ARP and ND, and in a VLAN"
in_a ip neighbour flush dev "$na"
in_b ip neighbour flush dev "$nb"
halves ibv_rc_pingpong $v4a $v4b -c -n 50 -s 4096
halves ibv_rc_pingpong $v6a $v6b -c -n 50 -s 10000 -m 1024
halves ibv_rc_pingpong $vla $vlb -c -n 50 -s 4096
halves ib_write_bw $v4a $v4b -n 50 -s 10000 -m 1024
halves ib_read_bw $v6a $v6b -n 50 -s 10000 -m 1024
halves ib_send_bw $vla $vlb -n 50 -s 10000 -m 1024
for v in 7 4094; do
	ip -n a link delete "v$v"
	ip -n b link delete "v$v"
done
gid_goes urdma0 $vla
gid_goes urdma1 $vlb

step "MTU changes under traffic"
in_a ping -q -f -c 1500 -w 300 -s 1000 10.1.0.2 >/tmp/background.log 2>&1 &
pinger=$!
for mtu in 1500 9000 1280 4200 2000 9000; do
	ip -n a link set "$na" mtu $mtu || fail "MTU $mtu"
	ip -n b link set "$nb" mtu $mtu || fail "MTU $mtu"
	sleep 0.2
done
wait $pinger || fail "ping while the MTU changed: $(cat /tmp/background.log)"
nothing_lost_ab
ip -n a link set "$na" mtu 9001 2>/dev/null && fail "an MTU of 9001 was taken"
ibv_devinfo -d urdma0 | grep -q 'active_mtu:.*4096' || fail "active MTU with MTU 9000: $(ibv_devinfo -d urdma0)"
ip -n a link set "$na" mtu 1500
ibv_devinfo -d urdma0 | grep -q 'active_mtu:.*1024' || fail "active MTU with MTU 1500: $(ibv_devinfo -d urdma0)"
ip -n a link set "$na" mtu 9000
addresses_ab

step "down and up"
for _ in 1 2 3; do
	ip -n a link set "$na" down
	port_is urdma0 DOWN
	ip -n a link set "$na" up
	addresses_ab
	port_is urdma0 ACTIVE
	ping_ab -c 2 -A -w 120 10.1.0.2
done
# Under traffic: frames are lost, but nothing else fails.
in_a timeout 60 ping -q -f -c 100000 -w 3 10.1.0.2 >/dev/null 2>&1 &
pinger=$!
for _ in 1 2 3 4 5; do
	ip -n b link set "$nb" down
	ip -n b link set "$nb" up
	sleep 0.2
done
wait $pinger
addresses_ab
ping_ab -f -c 100 -w 120 10.1.0.2
gid_comes urdma1 $v4b
halves ibv_rc_pingpong $v4a $v4b -c -n 20 -s 4096

step "another MAC address"
old=$(in_b cat "/sys/class/net/$nb/address")
ip -n b link set "$nb" address 02:12:34:56:78:9a || fail "the address cannot be set"
in_a ip neighbour flush dev "$na"
ping_ab -c 2 -A -w 120 10.1.0.2
gid_comes urdma1 $v4b
halves ibv_rc_pingpong $v4a $v4b -c -n 20 -s 4096
ip -n b link set "$nb" address "$old"
in_a ip neighbour flush dev "$na"
ping_ab -c 2 -A -w 120 10.1.0.2

step "more unicast addresses, and groups"
# A macvlan has its own address; 20 are more than the NIC has entries.
for n in $(seq 20); do
	ip -n b link add link "$nb" name "m$n" type macvlan mode bridge || fail "macvlan $n"
	ip -n b link set "m$n" up
	if [ "$n" = 3 ] || [ "$n" = 20 ]; then
		ip -n b address add "10.3.$n.2/24" dev "m$n"
		ip -n a address add "10.3.$n.1/24" dev "$na"
		ping_ab -c 2 -A -w 120 "10.3.$n.2"
	fi
done
for n in $(seq 20); do
	ip -n b link delete "m$n"
done
ping_ab -c 2 -A -w 120 10.1.0.2
# To all nodes: the only other node answers.
ping_ab -c 2 -A -w 120 -I "$na" ff02::1

# Counters of the NICs and the drivers: no frame was dropped, and each NIC has received every frame that the other
# sent.
snapshot stats
for f in /tmp/a.stats /tmp/b.stats; do
	if grep -E '_(errors|dma_err|dropped|alloc_fail)|nic_eth_(tx_bad|rx_length|rx_drop_full)' $f | grep -v ': 0$'; then
		fail "frames were lost in the NIC or the driver (above)"
	fi
done
# sum SIDE NAMES...: the sum of these counters since the start.
sum() {
	local side=$1 n=0 name
	shift
	for name; do
		n=$((n + $(sed -n "s/^ *nic_eth_$name: //p" "/tmp/$side.stats")))
		n=$((n - $(sed -n "s/^ *nic_eth_$name: //p" "/tmp/$side.before")))
	done
	echo $n
}
for k in "a b" "b a"; do
	# shellcheck disable=SC2086  # two words
	set -- $k
	sent=$(sum "$1" tx_frames)
	seen=$(sum "$2" rx_frames rx_filtered rx_no_buf)
	[ "$sent" = "$seen" ] || fail "$1 sent $sent frames, $2 has seen $seen"
	echo "$1 sent $sent frames, $2 received all; without a buffer: $(sum "$2" rx_no_buf)"
done
echo "ok: the net devices carry traffic, and RDMA follows them"
