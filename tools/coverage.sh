#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh: the coverage of the tests of blocks, engine, simulator and provider. It builds all of them in build/coverage,
# runs them, and prints for each file of rtl/:
#
#	lines      lines of which a statement was carried out, in any model
#	branches   sides of branches taken
#	toggles    bits of signals that rose and fell, each way for itself
#	covers     cover properties that were seen
#
# and for each file of cosim/ and provider/ its lines and branches, by gcovr. build/coverage/holes lists lines of the RTL
# that were not reached. The exit status is 1 if a test failed, or if less than 90 % of the lines of rtl/ are reached.
set -euo pipefail
top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
. "$top/tools/lib.sh"
dir=$top/build/coverage
limit=90
jobs=${JOBS:-$(nproc)}
cd "$top"

mkdir -p "$dir"
cmake -S . -B "$dir" -G Ninja -DURDMA_COVERAGE=ON -DCMAKE_C_COMPILER=clang-19 >"$dir.log" ||
	die "cmake failed; see $dir.log"
cmake --build "$dir" >>"$dir.log" 2>&1 || die "the build failed; see $dir.log"
rm -rf "$dir/counts"
mkdir "$dir/counts"
find "$dir" -name '*.gcda' -delete
status=0
# Tests that compare programs or count instructions are not useful here. Runs with other settings of the simulator reach the
# same lines of the RTL. The counters make a NIC more than ten times as slow, so long tests run only some of their cases
# (tests/engine/test_same.sh). engine.drops.loss would miss the cases that are left out.
export URDMA_TEST_SHORT_WAITS=1
ctest --test-dir "$dir" -j "$jobs" -L '^(rtl|engine|cosim|provider)$' -LE full -E '^engine\.(skip\.|threads\.|drops\.loss)|instructions' --output-on-failure || status=$?

# points: a line "KIND FILE LINES NAME COUNT" for each counter of each model.
points() {
	local counts model
	for counts in "$dir"/counts/*; do
		model=$(find "$dir" -type d -name "V_${counts##*/}")
		od -An -v -w8 -tu8 "$counts" |
			awk 'NR == FNR { count[NR - 1] = $1; next } { print $2, $3, $4, $5, count[$1] + 0 }' \
				- <(awk -f tools/coverage/points.awk "$model"/*Slow.cpp)
	done
}
points | awk -v rtl="$top/rtl/" -v limit=$limit -v holes="$dir/holes" -f tools/coverage/table.awk || status=1

if command -v gcovr >/dev/null; then
	gcovr -r . --object-directory "$dir" --gcov-executable "llvm-cov-19 gcov" -f cosim/ -f provider/ \
		-e '.*/test_[^/]*' --exclude-unreachable-branches "$dir" | tee "$dir/c.txt"
fi
exit $status
