#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs of examples/, built into /share. Each must end with status 0, print what its page shows, and leave no object
# behind. A failure means that the examples that users start from do not work.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/cm_lib.sh
. /opt/urdma/tests/cm_lib.sh

# says LINE COMMAND...: the command succeeds and prints only LINE.
says() {
	local want=$1 output status=0
	shift
	output=$(timeout "$limit" "$@" 2>&1) || status=$?
	[ "$status:$output" = "0:$want" ] || fail "$*: status $status: $output"
	echo "ok: $output"
}

# refuses COMMAND...: it ends with 2 and prints its usage.
refuses() {
	local output status=0
	output=$(timeout "$limit" "$@" 2>&1) || status=$?
	[[ $status = 2 && $output = *usage:* ]] || fail "$*: status $status: $output"
}

# echoed ADDRESS COUNT DEVICE: runs the two halves of cm_echo at server_at and client_at. DEVICE is the server's.
echoed() {
	served /share/cm_echo/cm_echo -s -- /share/cm_echo/cm_echo -n "$2" "$1"
	grep -qx "client on urdma[01]: $2 messages to $1 and back: all right" /tmp/client.log ||
		fail "cm_echo: $(cat /tmp/client.log)"
	grep -qx "server on $3: $2 messages sent back, the client has disconnected" /tmp/server.log ||
		fail "cm_echo -s: $(cat /tmp/server.log)"
}

# loads COUNT PARAMETER...: the module reports COUNT correct messages on both devices, and has its objects there.
loads() {
	local before d count=$1
	shift
	before=$(dmesg | wc -l)
	insmod /share/kernel_loop/kernel_loop.ko "$@" || fail "insmod: status $?"
	dmesg | tail -n +$((before + 1)) | grep 'kernel_loop: ' >/tmp/kernel_loop.log
	for d in urdma0 urdma1; do
		grep -q "kernel_loop: $d: $count messages of 4096 bytes: all right\$" /tmp/kernel_loop.log ||
			fail "kernel_loop $*: $(cat /tmp/kernel_loop.log)"
		[ "$(rdma resource show qp link $d/1 | grep -cF '[kernel_loop]')" = 2 ] ||
			fail "kernel_loop has not two QPs on $d: $(rdma resource show qp)"
	done
	[ "$(wc -l </tmp/kernel_loop.log)" = 2 ] || fail "kernel_loop $*: $(cat /tmp/kernel_loop.log)"
	echo "ok: kernel_loop $*"
}

none_left() {
	wait_resources "$baseline" || fail "$1: objects are left: $(rdma resource show)"
}

devices_up 2 || fail "two active devices are expected"
baseline=$(resources)

says "100 WRITEs of 4096 bytes from urdma0 to urdma1: all right" /share/rc_write/rc_write
says "20 WRITEs of 100001 bytes from urdma1 to urdma0: all right" /share/rc_write/rc_write -n 20 -s 100001 urdma1 urdma0
says "3 WRITEs of 1 bytes from urdma0 to urdma0: all right" /share/rc_write/rc_write -n 3 -s 1 urdma0 urdma0
refuses /share/rc_write/rc_write -n 0
none_left rc_write

says "4000 WRITEs of 64 bytes, 32 a doorbell: all right" /share/slow_write/slow_write
says "300 WRITEs of 1000 bytes, 1 a doorbell: all right" /share/slow_write/slow_write -n 300 -s 1000 -b 1 -w 1 -r 8 -t 14
huge_pages 2
says "300 WRITEs of 64 bytes, 8 a doorbell: all right" /share/slow_write/slow_write -n 300 -b 8 -r 2 -H
huge_pages 0
refuses /share/slow_write/slow_write -b 32 -w 8
refuses /share/slow_write/slow_write -n 1x
none_left slow_write

says "100 datagrams of 1024 bytes from urdma0 to urdma1, each answered: all right" /share/ud_ah/ud_ah
says "20 datagrams of 17 bytes from urdma1 to urdma0, each answered: all right" /share/ud_ah/ud_ah -n 20 -s 17 urdma1 urdma0
refuses /share/ud_ah/ud_ah a b c
none_left ud_ah

# In one network namespace a device's address is routed to the loopback, so both halves use that device.
server_at=() client_at=()
echoed 10.77.0.2 100 urdma1
refuses /share/cm_echo/cm_echo
none_left cm_echo

loads 100
rmmod kernel_loop || fail "rmmod: status $?"
none_left kernel_loop
loads 7 messages=7
# Unload the driver first, with the devices that the module uses.
modprobe -r urdma || fail "modprobe -r urdma with kernel_loop attached: status $?"
rmmod kernel_loop || fail "rmmod: status $?"
modprobe urdma || fail "modprobe urdma: status $?"
/opt/urdma/guest/addresses
devices_up 2 || fail "the devices did not come back: $(rdma link show)"

# Over the wire. The devices have new numbers, so take a new count of their objects.
namespaces
# The captures of a run are judged with one path MTU, that of rc_write.
ip -n a link set "$na" mtu 1500
ip -n b link set "$nb" mtu 1500
devices_up 2 || fail "the devices are not up again"
baseline=$(resources)
server_at=(ip netns exec a) client_at=(ip netns exec b)
echoed 10.1.0.1 20 urdma0
none_left "cm_echo between namespaces"
echo "ok: the examples"
