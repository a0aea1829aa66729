#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The checkers of the debug kernel find mistakes: the module tests/guest/plant makes one in each guest, and the test in
# which it does so has to fail, because the kernel complains of that function and of nothing else. A failure means that
# a clean run with the debug kernel does not say much.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
bad=0

# plant WHAT COMPLAINT SURROUNDINGS: two patterns, of the first complaint, and of a line of the console.
plant() {
	local what=$1 name=plant-$1 out first start=$SECONDS
	out=$top/build/guest/tests/$name
	if "$top/tests/guest/host/in-guest.sh" "$name" --kernel debug --nics 0 -- modprobe plant what="$what" >"$tmp" 2>&1; then
		echo "FAIL: $what: not found; the results are in $out"
		bad=1
		return
	fi
	first=$(jq -r '.kernel_complaints[0] // "no complaint"' "$out/summary.json")
	if ! grep -q "the guest's kernel complained" "$tmp" || [[ ! $first =~ $2 ]] || ! grep -qaE "$3" "$out/console.log"; then
		tail -n 20 "$tmp"
		echo "FAIL: $what: not as it should be, but: $first; the results are in $out"
		bad=1
		return
	fi
	echo "ok: $what ($((SECONDS - start)) s): ${first#host 0: }"
}

tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
plant uaf 'BUG: KASAN: slab-use-after-free in plant_uaf' 'Freed by task'
plant locks 'WARNING: possible circular locking dependency' 'plant_lock_[ab]'
plant leak 'kmemleak: .* new suspected memory leaks' 'plant_(leak|init)'
plant shift 'UBSAN: shift-out-of-bounds in .*plant\.c' 'plant_shift'
plant sleep 'BUG: sleeping function called from invalid context' 'plant_sleep'
plant dma 'WARNING: .*|DMA-API: platform plant' 'DMA-API: .*free DMA memory it has not allocated'
exit $bad
