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
bad 'NIC 1 has a wire already' --socket "$s" --socket "$s.1" --out "$dir/o" --wire 0-1 --wire 1-0
bad "no --port has this name" --socket "$s" --out "$dir/o" --wire 0-peer
bad "no --wire and no --switch has it" --socket "$s" --out "$dir/o" --port peer=tap:x
bad "peer has a wire already" --socket "$s" --socket "$s.1" --out "$dir/o" --port peer=tap:x --wire 0-peer --switch 1,peer
bad "'' is no NIC" --socket "$s" --out "$dir/o" --switch 0,
bad 'counted from 0' --socket "$s" --out "$dir/o" --switch 0,1
bad 'the name has to be' --socket "$s" --out "$dir/o" --port 1=tap:x
bad 'is none of stream' --socket "$s" --out "$dir/o" --port a=serial:x
bad 'of this name already' --socket "$s" --out "$dir/o" --port a=tap:x --port a=tap:y
bad 'not a number' --socket "$s" --out "$dir/o" --switch-queue 100
bad 'not a number' --socket "$s" --out "$dir/o" --switch-latency 0
bad 'not a number' --socket "$s" --out "$dir/o" --switch-age 0
bad 'tell it what' --tell "$dir/nobody"
bad 'cannot connect' --tell "$dir/nobody" time
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

# A switch with NICs and other ports, and the control socket. The replay is of the capture above.
start() {
	"$program" "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
	for _ in $(seq 200); do
		grep -q ready "$dir/out" && return
		kill -0 $pid 2>/dev/null || return
		sleep 0.05
	done
}

# tell WORDS COMMAND...: its answer has to begin like that.
tell() {
	local words=$1 answer
	shift
	answer=$("$program" --tell "$dir/control" "$@")
	case $answer in
	"$words"*) ;;
	*) fail "$* answers: $answer" ;;
	esac
}

start --socket "$dir/s0" --out "$dir/o" --wire 0-r --port "r=replay:$dir/o/urdma0.pcapng"
wait $pid
[ $? = 1 ] || fail "a replay of an empty capture does not exit 1"
grep -q 'no frame in it is fit' "$dir/err" || fail "it says: $(cat "$dir/err")"

# A capture of one frame of 60 bytes: section header, interface, packet.
{
	printf '\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0'
	printf '\x01\0\0\0\x14\0\0\0\x01\0\0\0\0\0\0\0\x14\0\0\0'
	printf '\x06\0\0\0\x5c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x3c\0\0\0\x3c\0\0\0'
	printf '\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x88\xb5'
	head -c 46 /dev/zero
	printf '\x5c\0\0\0'
} >"$dir/one.pcapng"

start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --trace pcap --control "$dir/control" \
	--port "q=stream:unix:$dir/q,listen" --port "r=replay:$dir/one.pcapng,hold" --switch 0,1,q,r
for i in s0 s1 q control; do
	[ -S "$dir/$i" ] || fail "no socket $i: $(cat "$dir/err")"
done
tell 'ok up' link 0
tell ok link urdma0 down
tell 'ok down' link 0
tell ok start r
tell 'error it has begun' start r
tell 'error it is not a replay' start q
tell 'error urdma1 is a NIC' start urdma1
tell ok link 0 up
tell 'error there is no NIC' link 7 up
tell 'error not a command' link 0 sideways
tell 'error not a command' reboot
tell 'ok {"urdma0":{' counters
tell 'ok {' counters 1
tell 'ok ' time
"$program" --tell "$dir/control" nonsense >/dev/null && fail "--tell exits 0 after an error"
kill -TERM $pid
wait $pid || fail "exit status $? after SIGTERM: $(cat "$dir/err")"
for key in '"group": 1' '"kind": "stream"' '"no_peer": 1' '"capture": "r.pcapng"' '"to": "q"' '"lost_link_down": 1'; do
	grep -q -- "$key" "$dir/o/cosim.json" || fail "cosim.json lacks $key: $(cat "$dir/o/cosim.json")"
done
[ -s "$dir/o/r.pcapng" ] || fail "no capture r.pcapng"
[ -e "$dir/control" ] && fail "control socket left behind"
exit $failed
