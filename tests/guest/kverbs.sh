#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kverbs.sh [PARAMETER=VALUE...]: kernel verbs. The module kverbs is a kernel consumer that creates QPs
# between urdma0 and urdma1 and runs its list of checks with each polling method. Then a device dies
# while the module waits for completions, and at the end the driver is unloaded while the module is
# attached. A failure means that storage and file systems over RDMA in the kernel would not work; the
# output names the check and the reason.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

# load PARAMETER...: runs the checks and shows their output.
load() {
	local status=0 before
	before=$(dmesg | wc -l)
	timeout 600 modprobe kverbs "$@" || status=$?
	dmesg | tail -n +$((before + 1)) | sed -n 's/.*kverbs: //p'
	[ $status = 0 ] || fail "kverbs $*: status $status"
}

# The driver is loaded again: every device is in its power-up state.
reload() {
	modprobe -r urdma || fail "modprobe -r urdma with kverbs attached: status $?"
	modprobe urdma || fail "modprobe urdma: status $?"
	/opt/urdma/guest/addresses
	devices_up 2 || fail "the devices did not come back: $(rdma link show)"
}

devices_up 2 || fail "two active devices are expected"
load "$@"
passed=$(cat /sys/module/kverbs/parameters/passed)
[ "$passed" -gt 0 ] || fail "no check has run"
rdma resource show qp | grep -q '\[kverbs\]' && fail "objects are left: $(rdma resource show qp)"
reload
modprobe -r kverbs || fail "modprobe -r kverbs: status $?"

# A device that no longer decodes its addresses reads as all ones, like a removed device.
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma0/device)")
(
	for _ in $(seq "$patience"); do
		dmesg | grep -q 'kverbs: waiting for the end' && break
		sleep 0.1
	done
	setpci -s "$pci" COMMAND=0
) &
load dead=1
wait
reload
modprobe -r kverbs || fail "modprobe -r kverbs: status $?"
pingpong -c -n 10 -s 4096
echo "ok: $passed checks of kernel verbs, and a device that died"
