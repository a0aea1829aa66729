#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/profile.sh [LOAD]: the host's cost of a clock of the NIC, by module of the RTL.
#
# Counts the instructions of one load of urdma-bench with callgrind. Unlike time, the count is reproducible.
# This model has separate functions per module, no profile, and code for any CPU, so its sum is higher than
# that of the normal model. Takes some minutes. build/profile keeps the build.
set -euo pipefail
top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=profile
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
load=${1:-WRITE 64 KB, MTU 4096}
dir=$top/build/profile

command -v valgrind >/dev/null || die "valgrind is missing: tools/setup.sh test installs it"
mkdir -p "$dir"
build() {
	cmake -S "$top" -B "$dir" -G Ninja -DURDMA_PROFILE=ON -DURDMA_PGO=OFF -DURDMA_NATIVE=OFF
	ninja -C "$dir" -j "$(nproc)" urdma-bench
}
(build) >"$dir/log" 2>&1 || {
	tail -n 20 "$dir/log" >&2
	die "the build failed; the whole output is in $dir/log"
}
rm -f "$dir/callgrind.out"
# Debian 12's valgrind does not read the debugging information of clang 19.
objcopy --strip-debug "$dir/tests/bench/urdma-bench" "$dir/urdma-bench"
valgrind --tool=callgrind --callgrind-out-file="$dir/callgrind.out" \
	"$dir/urdma-bench" --verbose --only "$load" >"$dir/run.log" 2>&1 || {
	tail -n 20 "$dir/run.log" >&2
	die "the load failed; the whole output is in $dir/run.log"
}
clocks=$(awk '/^cycles of both NICs: / { n += $5 } END { print n + 0 }' "$dir/run.log")
[ "$clocks" -gt 0 ] || die "no load is called '$load'; urdma-bench --help says what --only takes"
echo "$load: $clocks clocks of NICs; instructions a clock, by module:"
callgrind_annotate --threshold=100 "$dir/callgrind.out" | tr -d , | awk -v clocks="$clocks" '
	$1 !~ /^[0-9]+$/ || !/\(/ { next }
	{
		name = "the rest of the program"
		if (match($0, /__PROF__[a-z_0-9]+__l[0-9]/))
			name = substr($0, RSTART + 8, RLENGTH - 12)
		else if (/Parts::/)
			name = "sim/parts.h: which parts need a clock"
		else if (/___024root___eval|VerilatedContext|Vurdma_sim_top::/)
			name = "Verilator: triggers, calls"
		sum[name] += $1
	}
	/PROGRAM TOTALS/ { total = $1; sum["the rest of the program"] -= $1 }
	END {
		for (name in sum)
			printf "%9.0f %5.1f %%  %s\n", sum[name] / clocks, 100 * sum[name] / total, name | "sort -rn"
		close("sort -rn")
		printf "%9.0f          in all\n", total / clocks
	}'
