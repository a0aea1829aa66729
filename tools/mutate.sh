#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mutate.sh [N...]: plants the faults of tests/mutate/faults, or those with these numbers, one after another, and
# checks which tests fail.
#
# The models are built once, in build/mutate, with all faults; URDMA_FAULT selects the active one. The block tests
# whose models have the file run against each fault, then the engine tests. The first failing test has caught the
# fault, and the others are skipped; its program ends at its first failing case. A test that hangs has caught it too:
# each test may take four times its CPU time without a fault, plus 10 s. Prints a line for each fault, with its
# duration in seconds, and a table by folder. build/mutate/result keeps the lines.
#
# The exit status is 1 if less than 90 % of all faults are caught, or less than 75 % by block tests; if a fault
# survives for which the list has no reason; or if one is caught for which it has.
set -euo pipefail
top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=mutate
. "$top/tools/lib.sh"
dir=$top/build/mutate
jobs=${JOBS:-$(nproc)}
# Cheap ones first.
engine="commands errors cq qp_cnt lanes events loopback eth ring opcodes crossing unrel mcast srq xrc dm many matrix send rc lumina status refill loss mix"
cd "$top"

# models_of FILE: the models of block tests that have the file, the smallest one first. The test of the
# block itself is faster than those of what contains it, and more likely to fail.
models_of() {
	find "$dir/tests/rtl" -name '*__verFiles.dat' -exec grep -lZF "\"$dir/rtl/$1\"" {} + |
		xargs -0r grep -c '\.sv"' /dev/null | sed '/^.dev.null:/d; s,^\(.*\)/[^/:]*:\([0-9]*\)$,\2 \1,' |
		sort -n | cut -d' ' -f2-
}

# tests MODEL...: lines "NAME PROGRAM", the tests of these models, then the engine tests.
tests() {
	local model name
	for model; do
		name=${model##*/V_}
		name=${name%_model}
		[ ! -x "${model%/*}/$name" ] || echo "rtl.$name ${model%/*}/$name"
	done
	for name in $engine; do
		echo "engine.$name $dir/tests/engine/test_$name"
	done
}

# without NAME PROGRAM: runs the test without a fault, once per build. Stores its CPU seconds in time/NAME.
without() {
	local TIMEFORMAT='%U'
	[ "$dir/time/$1" -nt "$2" ] && return
	cd "$dir/log"
	if ! { time URDMA_FAULT=0 "$2" >"0.$1" 2>&1; } 2>"time.$1"; then
		echo "$1 fails without a fault; see $dir/log/0.$1" >&2
		return 1
	fi
	mv "time.$1" "$dir/time/$1"
}

# passes N NAME PROGRAM: runs the test with fault N. Its output goes to log/N.NAME.
passes() {
	local seconds
	seconds=$(cat "$dir/time/$2")
	[ -n "$seconds" ] || exit 255
	(cd "$dir/log" && ulimit -c 0 -t $((10 + 4 * ${seconds%.*})) &&
		CMOCKA_TEST_ABORT=1 URDMA_FAULT=$1 exec "$3") >"$dir/log/$1.$2" 2>&1
}

# caught_by N FILE: prints the test that fails with fault N.
caught_by() {
	local name test models
	mapfile -t models < <(models_of "$2")
	while read -r name test; do
		passes "$1" "$name" "$test" || { echo "$name" && return; }
	done < <(tests "${models[@]}")
	echo -
}

# one LINE of the list
one() {
	local n file what survives by start=$SECONDS
	IFS=$'\t' read -r n file what survives <<<"$1"
	by=$(caught_by "$n" "$file") || exit 255
	printf '%s\t%s\t%s\t%s\t%s\n' "$n" "$file" "$by" "$what" "$survives" >>"$dir/result"
	printf '%3d  %-32s %-18s %4d s  %s\n' "$n" "$file" "$by" $((SECONDS - start)) "$what"
}

for n; do
	[[ $n =~ ^[1-9][0-9]*$ ]] || die "'$n' is not the number of a fault; usage: tools/mutate.sh [N...]"
done
mkdir -p "$dir/log" "$dir/time"
cmake -S . -B "$dir" -G Ninja -DURDMA_MUTATE=ON -DURDMA_PGO=OFF >"$dir.log" 2>&1 || die "cmake failed; see $dir.log"
cmake --build "$dir" --target tests/rtl/all tests/engine/all >>"$dir.log" 2>&1 || die "the build failed; see $dir.log"
export -f models_of tests without passes caught_by one
export dir engine
if [ $# != 0 ]; then
	for n; do
		awk -F'\t' -v n="$n" '$1 == n {print; found = 1} END {exit !found}' "$dir/rtl/list" ||
			die "there is no fault $n; $dir/rtl/list has the numbers"
	done
else
	cat "$dir/rtl/list"
fi >"$dir/chosen"
# The tests must pass without a fault.
mapfile -t models < <(find "$dir/tests/rtl" -type d -name 'V_*_model')
# shellcheck disable=SC2016  # for the inner shells
tests "${models[@]}" | tr '\n' '\0' | xargs -0 -n1 -P "$jobs" bash -c 'without "${1%% *}" "${1#* }"' - ||
	die "the tests fail without a fault"
: >"$dir/result"
# shellcheck disable=SC2016
tr '\n' '\0' <"$dir/chosen" | xargs -0 -n1 -P "$jobs" bash -c 'one "$1"' -
awk -F'\t' -v all="$#" '
{
	folder = $2
	sub(/\/[^\/]*$/, "/", folder) || folder = "."
	n[folder]++
	block[folder] += $3 ~ /^rtl/
	engine[folder] += $3 ~ /^engine/
	N++
	B += $3 ~ /^rtl/
	E += $3 ~ /^engine/
	if ($3 == "-" && $5 == "")
		bad = bad "fault " $1 " survives\n"
	if ($3 != "-" && $5 != "")
		bad = bad "fault " $1 " is caught, and has a reason to survive in the list\n"
}
END {
	printf "\n%-12s%8s%18s%18s%10s\n", "", "faults", "block tests", "engine tests", "survive"
	for (f in n)
		printf "%-12s%8d%18d%18d%10d\n", f, n[f], block[f], engine[f], n[f] - block[f] - engine[f] | "sort"
	close("sort")
	printf "%-12s%8d%10d %6.1f%%%10d %6.1f%%%10d\n", "in all", N, B, 100 * B / N, E, 100 * E / N, N - B - E
	if (!all && B + E < 0.9 * N)
		bad = bad "less than 90 % are caught\n"
	if (!all && B < 0.75 * N)
		bad = bad "less than 75 % are caught by block tests\n"
	printf "%s", bad
	exit bad != ""
}' "$dir/result"
