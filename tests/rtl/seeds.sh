#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run a random block test with one seed after another: seeds.sh PROGRAM [CPU-SECONDS].
#
# The seeds are SEED (1 if there is none), SEED + 1, and so on. They end when the runs have used 20 s of
# CPU time, or as many as asked for: how fast the machine is says how many seeds there are, and nothing
# about any of them. The first failure ends it, with the seed that repeats it.
set -u
program=$1
limit=${2:-20}
seed=${SEED:-1}
runs=0
spent=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# CPU time of the runs so far: user and system time of children, in whole seconds. Not in a subshell,
# which has children of its own.
used() {
	times >"$log"
	spent=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$log")
}

while :; do
	if ! SEED=$seed "$program" >"$log" 2>&1; then
		cat "$log"
		echo "failed: SEED=$seed $program"
		exit 1
	fi
	runs=$((runs + 1))
	used
	[ "$spent" -lt "$limit" ] || break
	seed=$((seed + 1))
done
echo "$runs seeds, ${SEED:-1} to $seed, $spent s of CPU time"
