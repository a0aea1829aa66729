#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_long.sh TEST_LONG URDMA_EVENTS DIR: memory use with events. The simulator runs a billion cycles, then urdma-events makes
# all of its files from them. Neither may use more than 200 MB.
set -eu
run=$1 events=$2 dir=$3

mkdir -p "$dir"
rm -f "$dir"/*
"$run" "$dir"
python3 - "$events" "$dir" <<'END'
import resource
import subprocess
import sys

events, dir = sys.argv[1:]
subprocess.run([events, '--json', f'{dir}/json', '--csv', f'{dir}/csv', '--perfetto', f'{dir}/perfetto',
                f'{dir}/events.urdma'], check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f'urdma-events: {most} KB')
sys.exit(most > 200000)
END
jq -e '.complete and ([.nics[].messages] | add) == 64000 and ([.nics[].incomplete[]] | add) == 0' "$dir/json" >/dev/null || {
	echo "lives are not complete:" >&2
	jq -c '.nics[] | [.messages, .incomplete]' "$dir/json" >&2
	exit 1
}
rm "$dir/csv" "$dir/perfetto"
