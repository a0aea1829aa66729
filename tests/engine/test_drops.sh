#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_drops.sh DIR PROGRAM exact|home COUNTER...: runs an engine test with captures in DIR. Each of its rigs compares the
# comments on dropped frames with its counters (drops.h). The captures together must have a comment for each COUNTER.
set -u
dir=$1 program=$2 how=$3
shift 3
rm -rf "$dir"
mkdir -p "$dir"
if ! URDMA_TEST_DROPS=$how URDMA_TEST_CAPTURE=$dir "$program" >"$dir/output" 2>"$dir/errors"; then
	echo "FAIL: $program" >&2
	tail -n 20 "$dir/errors" >&2
	exit 1
fi
for counter; do
	if ! grep -q "^drops: $counter " "$dir/output"; then
		echo "FAIL: $program: no comment with $counter" >&2
		exit 1
	fi
done
sed -n 's/^drops: //p' "$dir/output" | awk '{ n[$1] += $2 } END { for (c in n) print c, n[c] }' | sort
