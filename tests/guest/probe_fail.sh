#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every step of binding the driver to a NIC fails once: for each function below, the module failat makes the first call fail,
# then the second, and so on, until a bind has fewer calls. Such a bind must end with an error at once, leave nothing behind and
# cause no complaint of the kernel, and the next bind must work. At the end the module can be unloaded. A failure means that an
# error path of probe leaks, hangs, or frees memory in use.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma1/device)")
driver=/sys/bus/pci/drivers/urdma
steps=0

# bind: returns 0 if the driver is bound. A bind that hangs fails the test.
bind() {
	echo "$pci" >$driver/bind &
	local writer=$!
	for _ in $(seq "$patience"); do
		if ! kill -0 $writer 2>/dev/null; then
			wait $writer 2>/dev/null
			[ -e "$driver/$pci" ]
			return
		fi
		sleep 0.1
	done
	dmesg | tail -n 20
	fail "the bind hangs: $(cat /proc/$writer/stack 2>/dev/null)"
}

# bound_works: the NIC has both of its devices after it is bound again.
bound_works() {
	bind || fail "$1: the next bind fails"
	[ -n "$(net_of urdma1)" ] || fail "$1: after the next bind there is no net device"
}

# each VALUE FUNCTION...: each call of these functions fails once, and returns VALUE.
each() {
	local value=$1 func nth calls
	shift
	for func; do
		for nth in $(seq 40); do
			[ ! -e "$driver/$pci" ] || echo "$pci" >$driver/unbind
			modprobe failat func="$func" nth="$nth" value="$value" || fail "no probe can be set on $func"
			bind 2>/dev/null
			calls=$(cat /sys/module/failat/parameters/calls)
			modprobe -r failat || fail "failat cannot be unloaded"
			if [ "$calls" -lt "$nth" ]; then
				[ "$nth" != 1 ] || fail "binding does not call $func"
				[ -e "$driver/$pci" ] || fail "the bind fails without a fault"
				break
			fi
			if [ -e "$driver/$pci" ]; then
				# The core registers a device even if its first GID cannot be set (SET_GID) or the MAD layer
				# cannot create QP 1; all else must be there.
				[ "$func" = urdma_cmd_exec ] || ! rdma resource show qp | grep -q '^link urdma1/1 .*type GSI' ||
					fail "$func $nth: fails, and the bind does not"
				echo "$func $nth: not needed"
				continue
			fi
			[ ! -e "/sys/bus/pci/devices/$pci/net" ] || fail "$func $nth: the net device is left"
			[ ! -e /sys/class/infiniband/urdma1 ] || fail "$func $nth: the RDMA device is left"
			grep -q "urdma-.*@$pci" /proc/interrupts && fail "$func $nth: interrupts are left"
			bound_works "$func $nth"
			steps=$((steps + 1))
		done
		echo "$func: $((nth - 1)) calls"
	done
}

each -12 pci_enable_device_mem pci_request_selected_regions dma_set_mask pci_alloc_irq_vectors urdma_cmd_exec \
	request_threaded_irq register_netdev ib_device_set_netdev ib_register_device register_netdevice_notifier
each 0 pci_iomap pci_iomap_range _ib_alloc_device dma_alloc_attrs alloc_etherdev_mqs bitmap_zalloc alloc_workqueue
[ -e "$driver/$pci" ] || bound_works "the end"
modprobe -r urdma || fail "modprobe -r urdma: status $?"
modprobe urdma || fail "modprobe urdma: status $?"
/opt/urdma/guest/addresses
devices_up 2 || fail "the devices did not come back: $(rdma link show)"
pingpong -c -n 10 -s 4096
echo "ok: a bind failed in $steps ways"
