#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# urdma-cosim as a program: bad options exit 2 and say why; with good ones it listens, says so, and
# leaves its reports when it is told to end. Usage: test_program.sh PROGRAM
set -u
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# bad WORDS ARGUMENT...: must exit 2 with WORDS on stderr.
bad() {
	local words=$1 status
	shift
	"$program" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ $status = 2 ] || fail "$* exits $status"
	grep -q -- "$words" "$dir/err" || fail "$* says: $(cat "$dir/err")"
}

s=$dir/s
bad 'no --socket' --out "$dir/o"
bad '--out is missing' --socket "$s"
bad 'needs a value' --socket
bad 'unknown option' --socket "$s" --out "$dir/o" --frobnicate
bad 'unexpected argument' --socket "$s" --out "$dir/o" extra
bad 'only pcap' --socket "$s" --out "$dir/o" --trace fst
bad 'form A-B' --socket "$s" --out "$dir/o" --wire 0:1
bad 'with itself' --socket "$s" --out "$dir/o" --wire 0-0
bad 'counted from 0' --socket "$s" --out "$dir/o" --wire 0-1
bad 'has a wire already' --socket "$s" --out "$dir/o" --wire 0-1 --wire 1-2
bad 'not a rate' --socket "$s" --out "$dir/o" --rate fast
bad 'not a rate' --socket "$s" --out "$dir/o" --rate 0
bad 'not a number' --socket "$s" --out "$dir/o" --delay -5
bad 'not a number' --socket "$s" --out "$dir/o" --pcie-latency 0
for option in loss dup reorder corrupt ecn; do
	bad "--$option 101: not a number of percent" --socket "$s" --out "$dir/o" --$option 101
	bad 'not a number of percent' --socket "$s" --out "$dir/o" --$option -1
	bad 'not a number of percent' --socket "$s" --out "$dir/o" --$option a
done
bad 'not a number' --socket "$s" --out "$dir/o" --seed x
bad 'is not drop' --socket "$s" --out "$dir/o" --fault lose
bad "no value for 'psn'" --socket "$s" --out "$dir/o" --fault drop,psn=x
many=()
for _ in $(seq 65); do
	many+=(--fault drop)
done
bad 'more than 64 faults' --socket "$s" --out "$dir/o" "${many[@]}"
bad 'not a power of two' --socket "$s" --out "$dir/o" --mps 300
bad 'not a number' --socket "$s" --out "$dir/o" --mps 4096
bad 'excludes' --socket "$s" --out "$dir/o" --pcie-gbps 50 --pcie-lanes 8
bad 'below the read completion boundary' --socket "$s" --out "$dir/o" --rcb 128 --completion 64
"$program" --help >"$dir/out" || fail "--help fails"
grep -q Usage "$dir/out" || fail "--help says nothing"

mkdir "$dir/o"
"$program" --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --trace pcap --rate 99.5 \
	--reorder-completions 3 --loss 1 --dup 0.5 --fault drop,side=1,nth=2 --seed 9 >"$dir/out" 2>"$dir/err" &
pid=$!
for _ in $(seq 200); do
	grep -q ready "$dir/out" && break
	sleep 0.05
done
grep -qx ready "$dir/out" || fail "no ready: $(cat "$dir/err")"
for i in 0 1; do
	[ -S "$dir/s$i" ] || fail "no socket s$i"
done
kill -TERM $pid
wait $pid
status=$?
[ $status = 0 ] || fail "exit status $status after SIGTERM: $(cat "$dir/err")"
for key in simulated_ns cycles_simulated cycles_skipped wall_seconds cycles_per_second tx_frames \
	'"capture": "urdma1.pcapng"' '"error": null' '"seed": 9' '"reorder": 0'; do
	grep -q -- "$key" "$dir/o/cosim.json" || fail "cosim.json lacks $key"
done
grep -q '"tx_frames": 0' "$dir/o/counters.json" || fail "counters.json lacks tx_frames"
for i in 0 1; do
	[ -s "$dir/o/urdma$i.pcapng" ] || fail "no capture urdma$i.pcapng"
done
[ -e "$dir/o/faults.log" ] || fail "no faults.log"
[ -e "$dir/s0" ] && fail "socket left behind"
exit $failed
