#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mutate.sh [--update] [N...]: plants the faults of tests/mutate/faults, or those with these numbers, one after another, and
# checks which tests fail.
#
# The models are built once, in build/mutate, with all faults; URDMA_FAULT selects the active one. The first failing test
# has caught the fault, and the others are skipped; its program ends at its first failing case. tests/mutate/caught has
# the program and the case that caught each fault before: that case runs first, alone. If it passes, all block tests run
# whose models have the file, then the engine tests. A test that hangs has caught the fault, too: each may take four times
# its CPU time without a fault, plus 10 s. Prints a line for each fault, with its duration in seconds, and a table by
# folder. build/mutate/result keeps the lines. --update writes the programs and cases that caught these faults to
# tests/mutate/caught.
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

# tests MODEL...: lines with name and program: the tests of these models, then the engine tests.
tests() {
	local model name
	for model; do
		name=${model##*/V_}
		name=${name%_model}
		[ ! -x "${model%/*}/$name" ] || printf '%s\t%s\n' "rtl.$name" "${model%/*}/$name"
	done
	for name in $engine; do
		printf '%s\t%s\n' "engine.$name" "$dir/tests/engine/test_$name"
	done
}

# tests_for FILE [NAME CASE]: lines with name and program: the block tests for a fault in the file, then the engine tests. The
# case of the test NAME, if there is one, comes before all tests of its level, as a third column.
tests_for() {
	local models
	mapfile -t models < <(models_of "$1")
	tests "${models[@]}" | NAME=${2-} CASE=${3-} awk -F'\t' -v OFS='\t' '
NR == FNR {
	program[$1] = $2
	next
}
!done && (ENVIRON["NAME"] in program) && substr($1, 1, 3) == substr(ENVIRON["NAME"], 1, 3) {
	done = 1
	print ENVIRON["NAME"], program[ENVIRON["NAME"]], ENVIRON["CASE"]
}
{ print }' "$dir/programs" -
}

# key NAME CASE: the name of files about a test, or about one case of it
key() {
	local case=${2//[^A-Za-z0-9_]/_}
	echo "$1${case:+.$case}"
}

# without LINE: runs the test, or the case of it, without a fault, once per build. Stores its CPU seconds in time/. A case
# that fails alone is not in time/, and is not used.
without() {
	local name program case key TIMEFORMAT='%U'
	IFS=$'\t' read -r name program case <<<"$1"
	key=$(key "$name" "$case")
	[ "$dir/time/$key" -nt "$program" ] && return
	rm -f "$dir/time/$key"
	cd "$dir/log"
	if { time URDMA_FAULT=0 URDMA_TEST=$case "$program" >"0.$key" 2>&1; } 2>"time.$key"; then
		mv "time.$key" "$dir/time/$key"
	elif [ -n "$case" ]; then
		echo "$name fails without a fault if it runs '$case' alone"
	else
		echo "$name fails without a fault; see $dir/log/0.$key" >&2
		return 1
	fi
}

# passes N NAME PROGRAM CASE: runs the test with fault N. Its output goes to log/N.NAME.
passes() {
	local seconds
	seconds=$(cat "$dir/time/$(key "$2" "$4")")
	[ -n "$seconds" ] || exit 255
	(cd "$dir/log" && ulimit -c 0 -t $((10 + 4 * ${seconds%.*})) &&
		CMOCKA_TEST_ABORT=1 URDMA_FAULT=$1 URDMA_TEST=$4 exec "$3") >"$dir/log/$1.$2" 2>&1
}

# caught_by N FILE NAME CASE: prints the test that fails with fault N.
caught_by() {
	local name program case
	while IFS=$'\t' read -r name program case; do
		[ -z "$case" ] || [ -e "$dir/time/$(key "$name" "$case")" ] || continue
		passes "$1" "$name" "$program" "$case" || { echo "$name" && return; }
	done < <(tests_for "$2" "$3" "$4")
	echo -
}

# one LINE of chosen
one() {
	local n file what survives name case by start=$SECONDS
	IFS=$'\x1f' read -r n file what survives name case <<<"${1//$'\t'/$'\x1f'}"
	by=$(caught_by "$n" "$file" "$name" "$case") || exit 255
	case=
	[ "$by" = - ] || case=$(sed -n 's/^\[ RUN      \] //p' "$dir/log/$n.$by" | tail -1)
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$n" "$file" "$by" "$what" "$survives" "$case" >>"$dir/result"
	printf '%3d  %-32s %-18s %4d s  %s\n' "$n" "$file" "$by" $((SECONDS - start)) "$what"
}

update=
if [ "${1-}" = --update ]; then
	update=1
	shift
fi
for n; do
	[[ $n =~ ^[1-9][0-9]*$ ]] || die "'$n' is not the number of a fault; usage: tools/mutate.sh [--update] [N...]"
done
mkdir -p "$dir/log" "$dir/time"
cmake -S . -B "$dir" -G Ninja -DURDMA_MUTATE=ON -DURDMA_PGO=OFF >"$dir.log" 2>&1 || die "cmake failed; see $dir.log"
cmake --build "$dir" --target tests/rtl/all tests/engine/all >>"$dir.log" 2>&1 || die "the build failed; see $dir.log"
export -f models_of tests tests_for key without passes caught_by one
export dir engine
mapfile -t models < <(find "$dir/tests/rtl" -type d -name 'V_*_model')
tests "${models[@]}" >"$dir/programs"
# The chosen lines of the list, with the program and the case of caught. Faults that survive take longest, and come first.
awk -F'\t' -v OFS='\t' -v chosen="$*" '
FILENAME == ARGV[1] {
	if ($1 !~ /^#/)
		caught[$3] = $1 OFS $2
	next
}
{ line[$1] = $0 OFS ($3 in caught ? caught[$3] : OFS); survives[$1] = $4 != "" }
END {
	N = split(chosen, numbers, " ")
	if (!N)
		while (N < FNR)
			numbers[++N] = N
	for (i = 1; i <= N; i++)
		if (!(numbers[i] in line)) {
			print "there is no fault " numbers[i] "; " FILENAME " has the numbers" >"/dev/stderr"
			exit 1
		}
	for (first = 1; first >= 0; first--)
		for (i = 1; i <= N; i++)
			if (survives[numbers[i]] == first)
				print line[numbers[i]]
}' tests/mutate/caught "$dir/rtl/list" >"$dir/chosen" || exit
# The tests must pass without a fault.
# shellcheck disable=SC2016  # for the inner shells
{
	cat "$dir/programs"
	awk -F'\t' -v OFS='\t' 'NR == FNR {program[$1] = $2; next} ($5 in program) && !seen[$5, $6]++ {print $5, program[$5], $6}' \
		"$dir/programs" "$dir/chosen"
} | tr '\n' '\0' | xargs -0 -n1 -P "$jobs" bash -c 'without "$1"' - || die "the tests fail without a fault"
: >"$dir/result"
# shellcheck disable=SC2016
tr '\n' '\0' <"$dir/chosen" | xargs -0 -n1 -P "$jobs" bash -c 'one "$1"' -
if [ -n "$update" ]; then
	awk -F'\t' -v OFS='\t' '
FILENAME == ARGV[1] {
	if ($1 ~ /^#/)
		print
	else
		caught[$3] = $0
	next
}
FILENAME == ARGV[2] {
	caught[$4] = $3 OFS $6 OFS $4
	if ($3 == "-" || $6 == "")
		delete caught[$4]
	next
}
$3 in caught { print caught[$3] }' tests/mutate/caught "$dir/result" "$dir/rtl/list" >"$dir/caught"
	mv "$dir/caught" tests/mutate/caught
fi
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
