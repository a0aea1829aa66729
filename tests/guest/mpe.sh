#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mpe.sh [N]: FLUSH and ATOMIC WRITE between the two devices, N rounds of mpe.c, and the devices' capabilities.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected here"
for d in urdma0 urdma1; do
	# FLUSH_GLOBAL is bit 38 of the capabilities, ATOMIC_WRITE bit 40; FLUSH_PERSISTENT, bit 39, must not be set
	caps=$(ibv_devinfo -d $d -v | sed -n 's/.*device_cap_flags_ex: *//p')
	[ $((caps >> 38 & 7)) = 5 ] || fail "$d: capabilities $caps"
done
meet mpe 127.0.0.1 urdma0 urdma1 -n "${1-100}"
meet mpe 127.0.0.1 urdma1 urdma0 -n "${1-100}" -m 1024
cat /tmp/server.log
