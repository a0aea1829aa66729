#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# in-guest.sh NAME [launcher options] -- COMMAND: a guest test, run on the host: the command's status
# has to be 0 and no guest's kernel may have complained.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
out=$top/build/guest/tests/$1
shift
mkdir -p "$out"
# Everything is built when ctest runs.
export URDMA_NO_BUILD=1
"$top/urdma" run --out "$out" "$@"
status=$?
if [ $status != 0 ]; then
	echo "FAIL: status $status; the results are in $out" >&2
	exit 1
fi
if ! jq -e '.kernel_complaints == []' "$out/summary.json" >/dev/null; then
	echo "FAIL: the guest's kernel complained; see $out/console*.log" >&2
	exit 1
fi
# Every frame that a NIC has sent or received is judged from outside.
shopt -s nullglob
captures=("$out"/urdma*.pcapng)
if [ ${#captures[@]} != 0 ]; then
	"$top/tests/wire/check_capture.sh" "${captures[@]}" || exit 1
fi
