#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_same.sh DIR VARIABLE=VALUE PROGRAM [ARGUMENT...]: checks that a test does the same in every cycle with this variable in
# its environment. The variable makes NICs be clocked through all waiting, or evaluated in threads. Without skipping, seconds of
# simulated time in which nothing happens take hours. So URDMA_TEST_SHORT_WAITS asks the test to leave out cases that wait that
# long. A test that takes long then runs only part of its cases, chosen by SEED.
set -euo pipefail
dir=$1 variable=$2
shift 2
rm -rf "$dir"
mkdir -p "$dir"
[[ $variable != URDMA_TEST_NO_SKIP=* ]] || export URDMA_TEST_SHORT_WAITS=1
run() {
	local digest=$1
	shift
	if ! env URDMA_TEST_DIGEST="$digest" "$@" >"$digest.log" 2>&1; then
		cat "$digest.log"
		exit 1
	fi
}
run "$dir/without" "$@"
run "$dir/with" env "$variable" "$@"
if ! [ -s "$dir/without" ] || ! cmp "$dir/without" "$dir/with"; then
	echo "The two runs differ: $dir/without and $dir/with ($variable) have a line for each NIC."
	diff "$dir/without" "$dir/with" | head -20
	exit 1
fi
echo "$(wc -l <"$dir/without") NICs did the same in every cycle"
