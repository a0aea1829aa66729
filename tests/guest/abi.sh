#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The rules of urdma-abi.h for kernels and providers of different ages; and a registration anew that the NIC refuses. A
# failure of the first means that the next version of the driver breaks the providers in use, of the second that a
# region is found in a PD that its owner does not know of.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

abi urdma0 || fail "abi urdma0: status $?"
modprobe failat func=urdma_cmd_exec nth=2 value=-22 scope=urdma_rereg_user_mr || fail "no probe can be set"
abi urdma0 rereg || fail "abi urdma0 rereg: status $?"
[ "$(cat /sys/module/failat/parameters/failed)" = 1 ] || fail "no fault was injected"
modprobe -r failat
pingpong -c -n 10 -s 64
echo "ok: the ABI, and a registration anew that fails"
