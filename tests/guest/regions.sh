#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Memory regions of kinds that few programs use: what regions.c does, on both devices.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

huge_pages 2
for d in urdma0 urdma1; do
	regions $d || fail "regions $d: status $?"
done
huge_pages 0
