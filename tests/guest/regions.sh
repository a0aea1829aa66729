#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Kinds of memory regions that few programs use: runs regions.c on both devices.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

huge_pages 2
for d in urdma0 urdma1; do
	regions $d || fail "regions $d: status $?"
done
huge_pages 0
