#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pcie.sh GT/S LANES MPS MRRS [NICS]: the configuration space of this guest's NICs (2) has the values given to the
# simulator, after the kernel and the driver have configured it. A failure means that PCIe options of the simulator
# do not reach the guest, or that the guest changes them.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

nics=${5-2}
devices_up "$nics" || fail "$nics active devices are expected: $(rdma link show 2>&1)"
seen=0
for device in $(lspci -d 1234:5244 | cut -d' ' -f1); do
	lspci -vv -s "$device" >/tmp/lspci
	for words in "LnkCap:.*Speed $1GT/s, Width x$2," "LnkSta:.*Speed $1GT/s.*, Width x$2" \
		"MaxPayload $3 bytes, MaxReadReq $4 bytes"; do
		grep -q "$words" /tmp/lspci || fail "$device has no '$words': $(cat /tmp/lspci)"
	done
	seen=$((seen + 1))
done
[ $seen = "$nics" ] || fail "$seen NICs instead of $nics: $(lspci)"
echo "PCIe: $1 GT/s x$2, payload $3, read requests $4"
