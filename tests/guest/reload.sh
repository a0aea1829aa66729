#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The driver is unloaded and loaded again, 20 times; at the end messages still pass. A failure means
# that the driver or the NIC keeps old state.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

for round in $(seq "${1-20}"); do
	modprobe -r urdma || fail "round $round: modprobe -r: status $?"
	[ ! -e /sys/module/urdma ] || fail "round $round: the module is still there"
	[ -z "$(ls /sys/class/infiniband)" ] || fail "round $round: a device is still there"
	modprobe urdma || fail "round $round: modprobe: status $?"
	/opt/urdma/guest/addresses
	devices_up 2 || fail "round $round: the devices did not come back: $(rdma link show)"
done
pingpong -c -n 100 -s 4096
echo "ok: reloaded $round times"
