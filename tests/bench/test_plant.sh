#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# test_plant.sh URDMA_BENCH: a planted figure above 100 % makes the program fail, with its status
# and the row's name. The same run without it exits with 0. Nothing is measured.
bench=$1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "$1" >&2
	exit 1
}

"$bench" --only 'no such row' >/dev/null || fail "a run without rows ends with $?"
"$bench" --only 'no such row' --plant --output "$tmp/rows.json" >"$tmp/out" 2>"$tmp/err"
status=$?
[ "$status" = 1 ] || fail "a planted figure above 100 % ends with $status"
grep -q 'planted.*101.00.*ABOVE THE LIMIT' "$tmp/out" || fail "the planted row is not marked"
grep -q 'planted: 1.010 Gb/s is 101.000 %' "$tmp/err" || fail "the planted row is not told"
"$bench" --sweep "$tmp/points.csv" --only 'no such row' >/dev/null || fail "sweeps without points end with $?"
"$bench" --sweep "$tmp/points.csv" --only 'no such row' --plant >/dev/null 2>&1
[ $? = 1 ] || fail "a planted figure among the sweeps does not end with 1"
grep -q '^sweep,x_unit,series,x,value,unit,limit,by,percent' "$tmp/points.csv" || fail "the points have no header"
"$bench" --sweep "$tmp/none/points.csv" --only 'no such row' >/dev/null 2>"$tmp/err"
[ $? = 2 ] || fail "a file that cannot be written does not end with 2"
grep -q 'points.csv cannot be written' "$tmp/err" || fail "it does not say which file cannot be written"
grep -q '"percent": 101' "$tmp/rows.json" || fail "the planted row has no percentage in the JSON"
"$bench" --only 'no such row' --plant --update "$tmp/table.json" >/dev/null 2>&1 &&
	fail "a table takes the planted row"
! grep -q planted "$tmp/table.json" || fail "the planted row is in the table"
