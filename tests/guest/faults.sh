#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# faults.sh [SHARE]: memory allocations fail, by the debug kernel's fault injection: one by one while the driver is bound,
# while the function is reset, and in the calls of a program; at random under traffic of the net devices. The operation may
# fail with an error; it must leave nothing behind, and the next attempt without a fault must work. One in SHARE of the
# allocations of a bind and of a reset is tested (default 1 in 8), from a random one on. A failure means that the driver
# leaks, hangs or uses unallocated memory when the kernel has no memory.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

share=${1-8}
debug=/sys/kernel/debug
[ -e $debug/failslab ] || fail "the kernel has no fault injection: ./urdma run --kernel debug"
devices_up 2 || fail "two active devices are expected"
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma1/device)")
driver=/sys/bus/pci/drivers/urdma
net=$(net_of urdma1)

step() { echo "-- $* ($(cut -d' ' -f1 /proc/uptime))"; }

# inject FILE VALUE: for slabs and for pages.
inject() {
	echo "$2" >"$debug/failslab/$1" || fail "failslab/$1"
	echo "$2" >"$debug/fail_page_alloc/$1" || fail "fail_page_alloc/$1"
}

# in_driver: only allocations by the driver or a function that it calls: the driver's code is among the nearest frames on the
# stack. With more frames, faults hit code of the kernel that does not handle them all: it warns when an interrupt without a
# file in /proc is freed. The driver's own allocations are some frames deep.
in_driver() {
	inject stacktrace-depth 9
	local text
	text=$(awk '$4 == "[urdma]" && $3 ~ /^urdma_/ && tolower($2) == "t" { print $1 }' /proc/kallsyms | sort)
	inject require-start "0x$(head -n 1 <<<"$text")"
	inject require-end "0x$(printf '%x' $(((0x$(tail -n 1 <<<"$text")) + 4096)))"
}

# Pages of any order, also if the kernel may wait for them; no message for each.
inject ignore-gfp-wait N
inject verbose 0
inject times -1
echo 0 >$debug/fail_page_alloc/min-order
echo N >$debug/fail_page_alloc/ignore-gfp-highmem
in_driver

# write_with NTH VALUE FILE: writes VALUE; the NTH allocation fails. Prints how many were left, 0 if it has failed.
write_with() {
	bash -c 'echo "$1" >/proc/self/fail-nth
		echo "$2" 2>/dev/null >"$3"
		read -r left </proc/self/fail-nth
		echo 0 >/proc/self/fail-nth
		echo "$left"' bash "$@" 2>/dev/null
}

unbind() {
	[ ! -e "$driver/$pci" ] || echo "$pci" >$driver/unbind
}

# bound WHAT: a bind without a fault.
bound() {
	echo "$pci" >$driver/bind || fail "$1: the next bind fails"
	[ -n "$(net_of urdma1)" ] || fail "$1: after the next bind there is no net device"
}

many=1000000

step "a bind"
unbind
all=$((many - $(write_with $many "$pci" $driver/bind)))
[ "$all" -gt 20 ] || fail "a bind allocates $all times only"
[ -e "$driver/$pci" ] || fail "a bind without a fault fails"
tried=0 survived=0
for ((n = 1 + RANDOM % share; n <= all; n += share)); do
	unbind
	left=$(write_with $n "$pci" $driver/bind)
	# Their number varies slightly.
	[ "$left" = 0 ] || continue
	tried=$((tried + 1))
	if [ -e "$driver/$pci" ]; then
		survived=$((survived + 1))
		continue
	fi
	[ ! -e "/sys/bus/pci/devices/$pci/net" ] || fail "allocation $n: the net device is left"
	[ ! -e /sys/class/infiniband/urdma1 ] || fail "allocation $n: the RDMA device is left"
	grep -q "urdma-.*@$pci" /proc/interrupts && fail "allocation $n: interrupts are left"
done
unbind
bound "a bind"
echo "$tried of $all allocations failed, $survived of these binds worked all the same"
/opt/urdma/guest/addresses
devices_up 2 || fail "the devices did not come back: $(rdma link show)"

step "a reset"
all=$((many - $(write_with $many 1 "/sys/bus/pci/devices/$pci/reset")))
devices_up 2 || fail "the devices did not come back from a reset: $(rdma link show)"
tried=0
for ((n = 1 + RANDOM % share; n <= all; n += share)); do
	[ "$(write_with $n 1 "/sys/bus/pci/devices/$pci/reset")" = 0 ] && tried=$((tried + 1))
done
echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset"
ip link set "$net" up
/opt/urdma/guest/addresses
devices_up 2 || fail "a reset does not heal the device: $(rdma link show)"
echo "$tried of $all allocations failed"

step "calls of a program, in the driver"
baseline=$(resources)
faults urdma0 || fail "faults urdma0: status $?"
wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"

step "the net devices"
# In a subshell, at whose end the devices return to this namespace.
(
	namespaces
	ping_ab -c 2 -A -w 120 10.1.0.2
	in_a ping -q -f -c 100000 -w 20 -s 3000 10.1.0.2 >/tmp/flood.log 2>&1 &
	pinger=$!
	inject probability 10
	sleep 3
	for n in 64 512 1024; do
		in_a ethtool -G "$na" rx $n tx $n
		in_a ethtool -L "$na" combined $((n / 512 + 1))
		ip -n a link set "$na" mtu $((n + 1500))
		ip -n a link set "$na" down
		ip -n a link set "$na" up
	done >/tmp/ethtool.log 2>&1
	inject probability 0
	kill $pinger 2>/dev/null
	wait $pinger 2>/dev/null
	grep -c 'Cannot allocate' /tmp/ethtool.log | sed 's/$/ changes failed for want of memory/'
	for n in a b; do
		if [ $n = a ]; then set -- "$na"; else set -- "$nb"; fi
		ip -n $n link set "$1" down
		ip -n $n link set "$1" mtu 9000 up || fail "$1 does not come up again"
	done
	addresses_ab
	ping_ab -c 20 -A -w 300 -s 3000 10.1.0.2
	where[urdma0]="ip netns exec a" where[urdma1]="ip netns exec b"
	for d in urdma0 urdma1; do
		port_is $d ACTIVE
	done
	gid_comes urdma0 0000:0000:0000:0000:0000:ffff:0a01:0001
	gid_comes urdma1 0000:0000:0000:0000:0000:ffff:0a01:0002
	meet ibv_rc_pingpong 10.1.0.1 urdma0 urdma1 -c -n 20 -s 4096
) || exit 1

# DMA debugging disables itself when it has no memory, so read its results first.
modprobe -r urdma || fail "modprobe -r urdma: status $?"
modprobe urdma || fail "modprobe urdma: status $?"
/opt/urdma/guest/addresses
devices_up 2 || fail "the devices did not come back: $(rdma link show)"
step "calls of a program, anywhere in the kernel"
baseline=$(resources)
inject require-start 0
inject require-end 0xffffffffffffffff
# Only pages for which the kernel may not wait: otherwise the program's own pages would be included, and the kernel would
# kill it.
echo Y >$debug/fail_page_alloc/ignore-gfp-wait
faults urdma0 || fail "faults urdma0: status $?"
wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"
pingpong -c -n 10 -s 4096
echo "ok: faults"
