#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Make the profile OUT by short loads of a benchmark that is linked with an instrumented model:
#
#   train-model.sh BENCHMARK LLVM-PROFDATA OUT
#
# A model under development may fail a load or hang in it. The profile only makes the simulator faster,
# so the build continues: with the other loads, or with an empty file for no profile.
set -euo pipefail
bench=$1 profdata=$2 out=$3
runs=$out.runs
rm -rf -- "$runs" "$out"
mkdir -p "$runs"
# Large messages in both directions, small ones on many QPs, Ethernet of both sizes, the path of one
# message.
loads=("WRITE 64 bytes, 16 QPs" "WRITE 64 KB, MTU 4096" "READ 64 KB, MTU 1024"
	"Ethernet 1500 bytes, 1 queue" "Ethernet 64 bytes, 1 queue")
export bench runs
# Status 1 means a figure beyond its limit, which the tests check.
# shellcheck disable=SC2016  # for the inner shell
printf '%s\0' "${loads[@]}" |
	xargs -0 -P 2 -I{} sh -c '
		LLVM_PROFILE_FILE="$runs/%p.profraw" timeout 120 "$bench" --only "$1" >"$runs/$$.log" 2>&1
		[ $? -le 1 ] || echo "warning: no profile of \"$1\": $(tail -n 1 "$runs/$$.log")" >&2' sh {}
if ! "$profdata" merge -o "$out.part" "$runs"/*.profraw; then
	echo "warning: no profile, the model is compiled without one" >&2
	: >"$out.part"
fi
mv "$out.part" "$out"
