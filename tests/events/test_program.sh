#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_program.sh URDMA_EVENTS MAKE_EVENTS URDMA_SAMPLES: tests the command lines, with good files and bad ones.
set -u

events=$1 make_events=$2 samples=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

# expect STATUS TEXT COMMAND...: checks the exit status, and a text in the output.
expect() {
	local want=$1 text=$2 status=0
	shift 2
	"$@" >"$dir/out" 2>&1 || status=$?
	if [ "$status" != "$want" ] || { [ "$text" ] && ! grep -qF -- "$text" "$dir/out"; }; then
		echo "$*: status $status, not $want, or no '$text' in:"
		head -n 20 "$dir/out"
		bad=1
	fi
}

check() {
	"$@" || {
		echo "failed: $*"
		bad=1
	}
}

"$make_events" "$dir/good" || exit 1

# Options.
expect 2 "which file" "$events"
expect 2 "unexpected argument" "$events" a b
expect 2 "unrecognized option" "$events" --other "$dir/good"
expect 0 "urdma-events" "$events" --version
expect 0 "--perfetto=FILE" "$events" --help

# The table, and all files in one reading of the events.
expect 0 "largest stage" "$events" "$dir/good"
check grep -q '^urdma0 * 2 ' "$dir/out"
expect 0 "" "$events" --csv "$dir/csv" --json "$dir/json" --perfetto "$dir/perfetto" "$dir/good"
check [ ! -s "$dir/out" ]
check [ "$(wc -l <"$dir/csv")" = 2001 ]
check jq -e '.complete and (.nics | length) == 2 and ([.nics[].messages] | add) == 2000' "$dir/json" >/dev/null
check jq -e '.nics[0].retries["time-out"] > 0 and (.slowest | length) == 10' "$dir/json" >/dev/null
check [ "$(stat -c %s "$dir/perfetto")" -gt 500000 ]

# Traces of the moments of the slowest messages.
expect 0 "" "$events" --moments "$dir/moments" "$dir/good"
check [ ! -s "$dir/out" ]
check [ "$(jq -r '.slowest[].window_ns[0]' "$dir/json" | sort -u | sed 's/$/.perfetto/')" = "$(ls "$dir/moments")" ]
expect 1 "cannot make $dir/none/x: No such file" "$events" --moments "$dir/none/x" "$dir/good"
expect 1 "cannot write $dir/out/" "$events" --moments "$dir/out" "$dir/good"
expect 1 "cannot write $dir/moments/" bash -c "ulimit -f 8; exec $events --moments $dir/moments $dir/good"

# A part of the time gives the same as a file that has only that part. The rest after its end is not read.
"$make_events" "$dir/window" 100000 200000 || exit 1
expect 0 "" "$events" --json "$dir/want" "$dir/window"
expect 0 "" "$events" --json "$dir/json" --from 400us --to 800000ns "$dir/good"
check cmp "$dir/want" "$dir/json"
check jq -e '.from_ns >= 400000 and .to_ns < 800000 and .complete and .events > 1000' "$dir/json" >/dev/null
# Moments, too, if the part ends soon after the slowest message.
to=$(($(jq '.slowest[0].moments_ns[-1]' "$dir/want") + 200))
"$make_events" "$dir/short" 100000 $((to / 4)) || exit 1
expect 0 "" "$events" --moments "$dir/want.moments" "$dir/short"
expect 0 "" "$events" --moments "$dir/part.moments" --from 400us --to ${to}ns "$dir/good"
check diff -r "$dir/want.moments" "$dir/part.moments"
expect 1 "there are no events from 5000000000 ns on; the file has those from" "$events" --from 5s "$dir/good"
expect 1 "there are no events from 1 ns on until 2 ns; the next one is at" "$events" --from 1ns --to 2ns "$dir/good"
expect 2 "--from 3: not a time" "$events" --from 3 "$dir/good"
expect 2 "--to 3usx: not a time" "$events" --to 3usx "$dir/good"
expect 2 "there is no time between them" "$events" --from 2us --to 2us "$dir/good"

# The trigger of a run, in the whole file and in a part of it.
"$make_events" -t "$dir/triggered" || exit 1
expect 0 "trigger: urdma0:acked.cause=time-out, at " "$events" "$dir/triggered"
expect 0 "trigger: urdma0:acked.cause=time-out, not among these events" "$events" --to 10us "$dir/triggered"
expect 0 "" "$events" --csv "$dir/csv.1" --json "$dir/json" --perfetto "$dir/perfetto.1" "$dir/triggered"
check cmp "$dir/csv" "$dir/csv.1"
check jq -e '.trigger | .what == "urdma0:acked.cause=time-out" and .nic == "urdma0" and .at_ns > 20000' "$dir/json" >/dev/null
check grep -qaF 'trigger: urdma0:acked.cause=time-out' "$dir/perfetto.1"
check jq -e '.trigger == null' "$dir/want" >/dev/null
check [ "$(grep -caF trigger "$dir/perfetto")" = 0 ]

# A window: lives that are not completely in it are counted.
expect 0 "that began before the file does" "$events" "$dir/window"
check grep -q 'that had not ended' "$dir/out"

# Not a file of events, or one of another version.
expect 1 "cannot read $dir/none" "$events" "$dir/none"
expect 1 "is no file of events" "$events" "$0"
"$make_events" "$dir/empty" 0 0 || exit 1
expect 0 "0 events" "$events" "$dir/empty"
zstd -q -d <"$dir/empty" | head -c -1 | sed 's/"version":[0-9]*/"version":9/' | zstd -q >"$dir/other"
expect 1 "was written by another version" "$events" "$dir/other"

# Without the writer's last record, as while the simulation goes on.
zstd -q -d <"$dir/empty" | head -c -1 | zstd -q >"$dir/going_on"
expect 1 "is not complete" "$events" "$dir/going_on"

# Cut off, and damaged: the readable part is in the outputs.
size=$(stat -c %s "$dir/good")
head -c $((size / 2)) "$dir/good" >"$dir/cut"
expect 1 "the results are those of" "$events" --json "$dir/json" "$dir/cut"
check jq -e '(.complete | not) and ([.nics[].messages] | add) > 100' "$dir/json" >/dev/null
{
	head -c $((size / 2)) "$dir/good"
	head -c 4000 /dev/zero | tr '\0' 'x'
} >"$dir/damaged"
expect 1 "is damaged" "$events" "$dir/damaged"
check grep -q '^urdma0 * 2 ' "$dir/out"

# Files that cannot be written, or not completely.
for kind in csv json perfetto; do
	expect 1 "cannot write $dir/none/x: No such file" "$events" --$kind "$dir/none/x" "$dir/good"
	expect 1 "cannot write $dir/x: File too large" bash -c "ulimit -f 8; exec $events --$kind $dir/x $dir/good"
	expect 1 "cannot write /dev/full" "$events" --$kind /dev/full "$dir/good"
done
expect 1 "cannot write the table" bash -c "exec $events $dir/good >/dev/full"

# Counters over time.
for ((i = 1; i <= 1000; i++)); do
	echo "{\"ns\":$((i * 10000)),\"urdma0\":{\"port\":{\"tx_frames\":$((i * 3))}}}"
done >"$dir/samples"
expect 0 '"tx_frames":[24,24,' "$samples" 10us "$dir/samples"
check jq -e '.slice_ns == 80000 and (.slices_ns | length) == 125 and (.nics.urdma0.port.tx_frames | add) == 3000' "$dir/out" >/dev/null
expect 0 "TIME SAMPLES" "$samples" --help
expect 0 "urdma-samples" "$samples" --version
expect 2 "it needs the time of a sample" "$samples"
expect 2 "it needs the time of a sample" "$samples" 10us
expect 2 "unexpected argument 'x'" "$samples" 10us "$dir/samples" x
for time in 10 us 10usx 0us 999ns -1us; do
	expect 2 "'$time' is not the time of a sample" "$samples" -- $time "$dir/samples"
done
expect 1 "cannot read $dir/none: No such file" "$samples" 10us "$dir/none"
expect 1 "cannot read $dir: Is a directory" "$samples" 10us "$dir"
head -c -5 "$dir/samples" >"$dir/cut"
expect 1 "$dir/cut: line 1000 is no sample of counters" "$samples" 10us "$dir/cut"
expect 1 "cannot write the slices" bash -c "exec $samples 10us $dir/samples >/dev/full"

exit $bad
