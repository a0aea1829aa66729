#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The output of `make run`: the devices as the stock tools see them, then ibv_rc_pingpong between
# the two NICs of this guest, each with the received data compared.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

title() {
	printf '\n== %s\n' "$*"
}

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
title "ibv_devices"
ibv_devices || fail "ibv_devices: status $?"
title "rdma link show"
rdma link show || fail "rdma link show: status $?"
title "ibv_devinfo"
for d in urdma0 urdma1; do
	ibv_devinfo -d $d || fail "ibv_devinfo -d $d: status $?"
done

n=${1-1000}
title "ibv_rc_pingpong: $n exchanges of 4096 bytes, polling"
pingpong -c -n "$n" -s 4096
title "ibv_rc_pingpong: $n exchanges of 4096 bytes, with events"
pingpong -c -e -n "$n" -s 4096
title "ibv_rc_pingpong: $n exchanges of 64 bytes, polling"
pingpong -c -n "$n" -s 64
title "ibv_rc_pingpong: $n exchanges of 64 bytes, with events"
pingpong -c -e -n "$n" -s 64
