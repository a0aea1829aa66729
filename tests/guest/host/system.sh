#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# system.sh [launcher options]: two guests from a file of --system (tests/guest/system.sh), and what the run leaves of it. A
# failure means that settings of a NIC do not reach its guest, or that a run could not be repeated from its results.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
out=$top/build/guest/tests/system
cosim=$top/build/cosim/urdma-cosim
file=$top/examples/systems/slow-slot.json
"$top/tests/guest/host/in-guest.sh" system --system "$file" "$@" -- bash /opt/urdma/tests/system.sh || exit 1

bad=0
check() {
	local what=$1
	shift
	"$@" >/dev/null && return
	echo "FAIL: $what; the results are in $out"
	bad=1
}
# system FILE OPTIONS...: what the simulator makes of them.
system() {
	"$cosim" --check "${@:2}" --system "$1" --out "$out" | jq -S .system
}
check "system.json is not what the file comes to" diff <(system "$file" ${SEED:+--seed "$SEED"}) <(jq -S . "$out/system.json")
check "system.json does not repeat itself" diff <(system "$out/system.json") <(jq -S . "$out/system.json")
check "cosim.json has another system" diff <(jq -S .settings.system "$out/cosim.json") <(jq -S . "$out/system.json")
check "summary.json does not say which guest has the NICs" jq -e '.hosts == 2 and .nics == [1, 1]' "$out/summary.json"
# The smaller maximum payload takes more TLPs: data that both have written is in more pieces at the slow slot.
check "the NICs have the same maximum payload" jq -e \
	'[.nics[].pcie | .dma_write_bytes / .dma_writes] | .[0] < .[1]' "$out/cosim.json"
exit $bad
