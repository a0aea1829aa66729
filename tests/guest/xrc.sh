#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# xrc.sh: two processes of one XRC domain (xrc.c), with urdma0 for the target and with urdma1. A failure means that a target QP
# does not belong to all processes that opened it, or that XRC SRQs do not work correctly.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
baseline=$(resources)
for round in 1 2; do
	xrc urdma0 "$(gid_index urdma0)" urdma1 "$(gid_index urdma1)" || fail "xrc to urdma0: status $?, round $round"
	xrc urdma1 "$(gid_index urdma1)" urdma0 "$(gid_index urdma0)" || fail "xrc to urdma1: status $?, round $round"
done
wait_resources "$baseline" || fail "objects are left: $(resources), before $baseline"
echo "ok: target QPs and SRQs of two processes"
