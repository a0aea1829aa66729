#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Under traffic, the function is reset with its driver bound, its slot reports a fatal PCI error, and the devices go through
# system sleep. Programs lose their objects and are notified; then both devices work again with their old addresses. A
# failure means that a reset, an error, suspend or hibernation leaves a NIC that reports itself up but does nothing.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma0/device)")
net=$(net_of urdma0)
mac=$(cat "/sys/class/net/$net/address")
address=$(ip -o -4 address show dev "$net" | awk '{ print $4 }')
ip link add link "$net" name vlan7 type vlan id 7 || fail "no VLAN device"
ip link set vlan7 up

# index: the number of the RDMA device, which a new device of the same name does not have.
index() {
	rdma dev show urdma0 | sed -n 's/^\([0-9]*\):.*/\1/p'
}

# traffic: starts two pairs of programs that run until stopped, one waiting for events, one polling, whose QPs on urdma0 have
# a counter; frames; and a program that writes to all of the device memory. Returns when each pair has its QPs in RTS and
# packets have arrived: a server that still waits for its client is not notified of anything.
traffic() {
	local g0 g1 mode before
	device=$(index)
	g0=$(gid_index urdma0) g1=$(gid_index urdma1)
	rdma statistic qp set link urdma0/1 auto type on || fail "no counters of QPs: status $?"
	programs=()
	for mode in -e ""; do
		port=$((port + 1))
		before=$(hw_counter urdma0 rcvd_pkts)
		# shellcheck disable=SC2086  # an option or none
		ibv_rc_pingpong -d urdma0 -g "$g0" -p $port -n 100000000 $mode >/tmp/server$mode.log 2>&1 &
		programs+=($!)
		wait-listen $port || fail "the server did not come up: $(cat /tmp/server$mode.log)"
		# shellcheck disable=SC2086
		ibv_rc_pingpong -d urdma1 -g "$g1" -p $port -n 100000000 $mode 127.0.0.1 >/tmp/client$mode.log 2>&1 &
		programs+=($!)
		for _ in $(seq "$patience"); do
			! connected "${programs[@]: -2}" || [ $(($(hw_counter urdma0 rcvd_pkts) - before)) -lt 20 ] || continue 2
			sleep 0.1
		done
		fail "no traffic: $(cat /tmp/server$mode.log /tmp/client$mode.log)"
	done
	rdma statistic qp show link urdma0/1 | grep -q LQPN || fail "QPs without a counter: $(rdma statistic qp mode)"
	ping -q -i 0.2 -I "$net" 10.77.0.250 >/dev/null 2>&1 &
	programs+=($!)
	dm urdma0 hold >/tmp/dm.log 2>&1 &
	programs+=($!)
	for _ in $(seq "$patience"); do
		! grep -q '^held' /tmp/dm.log || return 0
		sleep 0.1
	done
	fail "no device memory: $(cat /tmp/dm.log)"
}

# connected PID PID: both have a QP in RTS.
connected() {
	[ "$(rdma resource show qp | grep -cE "state RTS .*pid ($1|$2) ")" = 2 ]
}

# told WHAT: the program that waits for an event of urdma0 is notified that its device is gone, and ends. Its peer on urdma1
# may wait forever, if all its messages were acknowledged.
told() {
	for _ in $(seq "$patience"); do
		kill -0 "${programs[0]}" 2>/dev/null || return 0
		sleep 0.1
	done
	fail "$1: a program that waits for an event was not told: $(tail -n 3 /tmp/server-e.log)"
}

# works_again WHAT
works_again() {
	local now
	if [ ${#programs[@]} != 0 ]; then
		told "$1"
		[ "$(index)" != "$device" ] || fail "$1: the RDMA device is the one of before"
		kill -0 "${programs[-1]}" || fail "$1: the program that has device memory has ended: $(cat /tmp/dm.log)"
		# The program has lost its mapping.
		dm urdma0 all || fail "$1: device memory: status $?"
	fi
	# Programs that poll do not read device events, so they are stopped.
	kill -KILL "${programs[@]}" 2>/dev/null
	wait "${programs[@]}" 2>/dev/null
	[ -d "/sys/class/net/$net" ] || fail "$1: the net device is gone"
	devices_up 2 || fail "$1: the devices did not come back: $(rdma link show; dmesg | tail -n 5)"
	[ "$(cat "/sys/class/net/$net/address")" = "$mac" ] || fail "$1: another MAC address"
	now=$(ip -o -4 address show dev "$net" | awk '{ print $4 }')
	[ "$now" = "$address" ] || fail "$1: the address was $address, is $now"
	[ "$(rdma resource show qp | grep -c 'type GSI state RTS')" = 2 ] || fail "$1: QP 1: $(rdma resource show qp)"
	[ -z "$(rdma statistic qp show link urdma0/1)" ] || fail "$1: a counter is left: $(rdma statistic qp show)"
	! rdma resource show qp | grep -qv 'type GSI' || fail "$1: QPs are left: $(rdma resource show qp)"
	pingpong -c -n 50 -s 4096 >/tmp/next.log || fail "$1: messages do not pass: $(cat /tmp/next.log)"
	pingpong -e -c -n 50 -s 100 >/tmp/next.log || fail "$1: with events messages do not pass: $(cat /tmp/next.log)"
	ethtool -t "$net" offline >/tmp/test.log || fail "$1: the self test: $(cat /tmp/test.log)"
	devices_up 2 || fail "$1: the devices did not come back from the self test"
	echo "ok: $1"
}

packets() {
	cat "/sys/class/net/$net/statistics/$1"
}

for round in 1 2 3; do
	traffic
	before=$(packets rx_packets)
	echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset"
	works_again "reset $round"
	[ "$(packets rx_packets)" -ge "$before" ] || fail "the net device's statistics went back"
done

# With the net device down; it comes up afterwards.
ip link set "$net" down
echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset while the net device is down"
/opt/urdma/guest/addresses
programs=()
works_again "reset while down"

# A reset recovers a dead device.
setpci -s "$pci" COMMAND=0
ibv_devinfo -d urdma0 -v >/dev/null 2>&1
pingpong_dead=$(timeout "$limit" ibv_rc_pingpong -d urdma0 -g 1 2>&1)
[ -n "$pingpong_dead" ] || fail "a program does not notice that its device is dead"
setpci -s "$pci" COMMAND=2
echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset of a dead device"
works_again "reset of a dead device"

# A fatal error of the slot's port, under traffic. The core resets the slot; if that fails because the link of an emulated
# port does not come up again, a function reset recovers the device.
traffic
before=$(packets rx_packets)
modprobe aer_inject || fail "the kernel cannot inject PCI errors"
slot=$(basename "$(readlink -f "/sys/bus/pci/devices/$pci/..")")
aer_inject "$slot" || fail "no error of $slot: status $?"
for _ in $(seq "$patience"); do
	ended=$(dmesg | grep -o 'AER: device recovery [a-z]*' | tail -n 1)
	[ -z "$ended" ] || break
	sleep 0.1
done
case $ended in
*successful) ;;
*failed) echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset after $ended" ;;
*) fail "no recovery from an error of $slot: $(dmesg | tail -n 5)" ;;
esac
works_again "PCI error, $ended"
[ "$(packets rx_packets)" -ge "$before" ] || fail "the net device's statistics went back"
modprobe -r aer_inject

# Seconds of sleep.
echo 1 >/sys/module/suspend/parameters/pm_test_delay
for level in devices platform; do
	echo $level >/sys/power/pm_test || fail "the kernel has no test of suspend"
	traffic
	before=$(packets rx_packets)
	echo freeze >/sys/power/state || fail "no suspend, $level"
	works_again "suspend, $level"
	[ "$(packets rx_packets)" -ge "$before" ] || fail "the net device's statistics went back"
done
echo devices >/sys/power/pm_test
traffic
echo disk >/sys/power/state 2>/tmp/disk.log || fail "no hibernation: $(cat /tmp/disk.log)"
works_again "hibernation, devices"
echo none >/sys/power/pm_test
ip link delete vlan7
echo "ok: resets and sleep"
