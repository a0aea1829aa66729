#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two guests on one wire: urdma0 of one guest talks to urdma0 of the other, and so do their net devices. No frame may be
# lost.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 1 || fail "an active device is expected here"
on 1 bash -c '. /opt/urdma/tests/common.sh; devices_up 1' || fail "an active device is expected in guest 1"
[ "$(on 1 hostname)" = host1 ] || fail "on 1 does not reach guest 1"
on 1 sh -c 'exit 9'
[ $? = 9 ] || fail "the exit status does not come back from guest 1"

g0=$(gid_index urdma0) g1=$(on 1 bash -c '. /opt/urdma/tests/common.sh; gid_index urdma0')
on 1 ibv_rc_pingpong -d urdma0 -g "$g1" -c -n 200 -s 4096 >/tmp/server.log 2>&1 &
server=$!
on 1 wait-listen 18515 || fail "no server: $(cat /tmp/server.log)"
ibv_rc_pingpong -d urdma0 -g "$g0" -c -n 200 -s 4096 host1 || fail "the client failed: $(cat /tmp/server.log)"
wait $server || fail "the server failed: $(cat /tmp/server.log)"
echo "ok: RDMA between two guests"

# ---- the net devices --------------------------------------------------------------------------
net=$(ls /sys/class/infiniband/urdma0/device/net) other=$(on 1 ls /sys/class/infiniband/urdma0/device/net)
ip address replace fd77::1/64 dev "$net" nodad
on 1 ip address replace fd77::2/64 dev "$other" nodad
# reach PING-OPTIONS...: as ping_ab.
reach() {
	ping -q "$@" >/tmp/ping.log 2>&1 || fail "ping $*: $(cat /tmp/ping.log)"
}
arping -q -c 3 -w 300 -I "$net" 10.77.0.2 || fail "arping"
if ! ip link set "$net" mtu 9000 || ! on 1 ip link set "$other" mtu 9000; then
	fail "no MTU of 9000"
fi
ip address replace fd77::1/64 dev "$net" nodad
for n in 0 56 1472 1473 4000 8972; do
	reach -c 3 -A -w 120 -M 'do' -s $n 10.77.0.2
done
for n in 0 56 1452 8952; do
	reach -c 3 -A -w 120 -M 'do' -s $n fd77::2
done
reach -f -c 500 -w 300 10.77.0.2
on 1 sh -c 'iperf3 -s -D --pidfile /run/iperf3 --logfile /tmp/iperf3.log' || fail "no iperf3 in guest 1"
on 1 wait-listen 5201 || fail "iperf3 does not listen"
for options in "-t 2" "-t 2 -R" "-t 2 -u -b 2M -l 1400" "-t 2 -u -b 2M -l 1400 -R"; do
	# On a busy machine iperf3's server sometimes times out a run that has just begun, and the client learns of it by the
	# control connection. The frames are checked below in any case.
	for try in 1 2 3; do
		# shellcheck disable=SC2086  # words
		timeout 60 iperf3 -c 10.77.0.2 $options >/tmp/iperf.log 2>&1 && break
		if [ $try = 3 ] || ! grep -q 'control message' /tmp/iperf.log; then
			fail "iperf3 $options: $(cat /tmp/iperf.log; on 1 tail -n 5 /tmp/iperf3.log)"
		fi
		echo "iperf3 $options, another try: $(tail -n 1 /tmp/iperf.log; on 1 tail -n 1 /tmp/iperf3.log)"
	done
	grep -E 'sender|receiver' /tmp/iperf.log
done
# shellcheck disable=SC2016  # for the other guest
on 1 sh -c 'kill "$(tr -d "\0" </run/iperf3)"'
# shellcheck disable=SC2016
vlan='ip link add link $1 name v9 type vlan id 9 && ip link set v9 up && ip address add $2/24 dev v9'
sh -c "$vlan" sh "$net" 10.9.0.1 || fail "VLAN"
on 1 sh -c "$vlan" sh "$other" 10.9.0.2 || fail "VLAN in guest 1"
reach -c 5 -A -w 120 10.9.0.2
# No frame was lost so far.
nothing_lost env "on 1"
# A guest that waits for a host CPU may have no buffer for a frame, and TCP retransmits: rx_no_buf is not a fault.
for h in "" "on 1"; do
	# shellcheck disable=SC2086
	lost=$($h ethtool -S "$([ -z "$h" ] && echo "$net" || echo "$other")" |
		grep -E '_(errors|dma_err)|nic_eth_(tx_bad|rx_length|rx_drop_full)' | grep -v ': 0$')
	[ -z "$lost" ] || fail "${h:-on 0}: frames were lost: $lost"
done
for h in "" "on 1"; do
	# shellcheck disable=SC2086
	$h ip link delete v9 || fail "the VLAN cannot be removed"
done

# The MTU changes under traffic, on both sides; nothing is lost as long as the frames fit.
ping -q -f -c 600 -w 300 -s 1000 10.77.0.2 >/tmp/background.log 2>&1 &
pinger=$!
for mtu in 1500 9000 1280 4200; do
	ip link set "$net" mtu $mtu || fail "MTU $mtu"
	on 1 ip link set "$other" mtu $mtu || fail "MTU $mtu in guest 1"
done
wait $pinger || fail "ping while the MTU changed: $(cat /tmp/background.log)"
nothing_lost env "on 1"

# Addresses are added and removed on both sides, and the GID tables follow.
far() { on 1 bash -c ". /opt/urdma/tests/common.sh; $*"; }
extra=0000:0000:0000:0000:0000:ffff:0a4d:0063
ip address add 10.77.0.99/24 dev "$net"
gid_comes urdma0 $extra
ip address delete 10.77.0.99/24 dev "$net"
gid_goes urdma0 $extra
on 1 ip address add 10.77.0.99/24 dev "$other"
far gid_comes urdma0 $extra || fail "guest 1: no GID of its new address"
on 1 ip address delete 10.77.0.99/24 dev "$other"
far gid_goes urdma0 $extra || fail "guest 1: the GID of an address that is gone"

ethtool -t "$net" offline >/tmp/test.log 2>&1 || fail "self test: $(cat /tmp/test.log)"
on 1 ethtool -t "$other" offline >/tmp/test.log 2>&1 || fail "self test in guest 1: $(cat /tmp/test.log)"

# The link of the other side goes down and up: by software there, then by the wire here.
on 1 ip link set "$other" down
far port_is urdma0 DOWN || fail "guest 1: the port of a device that is down is not"
on 1 ip link set "$other" up
far port_is urdma0 ACTIVE || fail "guest 1: the port does not come back"
reach -c 3 -A -w 120 10.77.0.2
cosim link 0 down || fail "the link cannot be taken down"
port_is urdma0 DOWN
cosim link 0 up || fail "the link cannot be taken up"
port_is urdma0 ACTIVE
reach -c 3 -A -w 120 10.77.0.2
reach -c 3 -A -w 120 -s 4000 10.77.0.2
echo "ok: Ethernet between two guests"
