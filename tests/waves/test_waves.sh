#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_waves.sh DIR: waves of an engine test and of urdma-cosim, with the models of build/waves, which are built if necessary.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
prog=test_waves
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
dir=$1
rm -rf "$dir"
mkdir -p "$dir"
waves=$top/tools/waves.sh
files=$top/out/waves/engine.lumina
case='=duplicate READs are executed again'

fail() {
	echo "FAIL: $*" >&2
	exit 1
}
python() {
	PYTHONPATH=$wellen_dir/python /usr/bin/python3 "$@"
}

# refused WORDS ARGUMENT...: exits with 2 and gives the reason.
refused() {
	local words=$1 status=0
	shift
	"$waves" "$@" >"$dir/out" 2>&1 || status=$?
	if [ $status != 2 ] || ! grep -q -e "$words" "$dir/out"; then
		fail "waves.sh $*: status $status: $(cat "$dir/out")"
	fi
}
refused 'TEST is missing'
refused "there is no test 'rtl.none'" rtl.none
refused "there is no test 'engine.none'" engine.none
refused 'neither a block test' guest_pingpong
refused 'runs many seeds: take rtl.cq' rtl.cq.full
refused 'runs more than one program' engine.skip.loss
refused "BEFORE: 'soon'" --before soon rtl.cq
refused "WINDOW: '5'" --window 5 rtl.cq
refused "unknown option '--after'" --after 5 rtl.cq

# A test that passes: frames cross the MAC in the cycle that the capture has.
URDMA_TEST_CAPTURE=$dir "$waves" --window 0:0 engine.lumina "$case" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
grep -q '^\[waves\] status 0, from 0 ns on' "$dir/out" || fail "$(cat "$dir/out")"
for nic in urdma0 urdma1; do
	tshark -n -r "$dir/$nic.pcapng" -T fields -e frame.time_epoch -e frame.packet_flags_direction 2>/dev/null |
		awk -v dir="$dir" '{ sub(/\./, "", $1); print $1 + 0 >(dir ($2 ~ /2$/ ? "/sent" : "/received")) }'
	python "$top/tests/waves/check_waves.py" "$files/$nic.fst" $nic "$dir/sent" "$dir/received" || fail "waves of $nic"
	grep -qF "gtkwave $files/$nic.gtkw, or surfer -c $files/$nic.sucl $files/$nic.fst" "$dir/out" || fail "$(cat "$dir/out")"
	python "$top/tests/waves/check_view.py" "$top" $nic "$files/$nic.fst" || fail "view of $nic"
done

# A test that fails names the moment, and leaves waves of the time before.
URDMA_TEST_CAPTURE=$dir/none "$waves" engine.lumina "$case" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
grep -q '^\[waves\] status 1, from' "$dir/out" || fail "a test that fails: $(cat "$dir/out")"
grep -qE 'it fails at [1-9][0-9]* ns of model or rig 0$' "$dir/out" || fail "a test that fails: $(cat "$dir/out")"
for nic in urdma0 urdma1; do
	python -c 'import pywellen, sys; assert len(pywellen.Waveform(sys.argv[1])[sys.argv[2] + ".clk"].tv) > 10' \
		"$files/$nic.fst" $nic || fail "$nic has no waves"
done

# urdma-cosim: one instance, from one command to another.
"$top/tools/host-build.sh" --waves urdma-cosim || fail "urdma-cosim"
cosim=$top/build/waves/cosim/urdma-cosim
# An instance that does not exist is refused before anything is created, with the names that exist.
no_scope() {
	local scope=$1 words=$2 check status
	for check in '' --check; do
		status=0
		rm -rf "$dir/o"
		timeout 60 "$cosim" $check --socket "$dir/s0" --out "$dir/o" --trace "fst,scope=$scope" >"$dir/out" 2>&1 || status=$?
		[ $status = 2 ] || fail "scope=$scope $check: status $status: $(cat "$dir/out")"
		grep -q -e "--trace 'scope=$scope': there is no such instance; $words" "$dir/out" || fail "scope=$scope $check: $(cat "$dir/out")"
		! grep -q ready "$dir/out" || fail "scope=$scope $check: $(cat "$dir/out")"
		[ ! -e "$dir/o" ] || fail "scope=$scope $check made $dir/o"
	done
}
no_scope bogus 'names begin with nic$'
no_scope nic.bogus 'nic has .*, tx$'
no_scope nic.tx. 'nic.tx has '
no_scope nic.bogus.tx 'nic has .*, tx$'
no_scope nic.reset.bogus 'nic.reset has none inside$'
no_scope nic.t 'nic has .*, tx$'
# Each instance that can be named has signals.
sed -n 's/^URDMA_SCOPE("\(.*\)")$/\1/p' "$top/build/waves/sim/gen/scopes.inc" >"$dir/scopes"
python -c 'import pywellen, sys
names = {v.full_name for v in pywellen.Waveform(sys.argv[1]).all_vars()}
have = {n[:i] for n in names for i, c in enumerate(n) if c == "."}
scopes = open(sys.argv[2]).read().split()
none = [s for s in scopes if "urdma0.urdma_sim_top." + s not in have]
assert len(scopes) > 100 and not none, none[:5]' "$files/urdma0.fst" "$dir/scopes" || fail "instances without signals"
"$cosim" --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --control "$dir/control" --trace fst=hold,scope=nic.tx \
	>"$dir/out" 2>&1 &
pid=$!
for _ in $(seq 600); do
	[ ! -S "$dir/control" ] || break
	sleep 0.1
done
for way in on off; do
	[ "$("$cosim" --tell "$dir/control" waves $way)" = ok ] || fail "waves $way"
done
kill -TERM $pid
wait $pid || fail "urdma-cosim: $(cat "$dir/out")"
for nic in urdma0 urdma1; do
	python -c 'import pywellen, sys
names = {v.full_name for v in pywellen.Waveform(sys.argv[1]).all_vars()}
others = [n for n in names if not n.startswith(sys.argv[2] + ".urdma_sim_top.nic.tx.")]
assert names and not others, others[:5]' \
		"$dir/o/$nic.fst" $nic || fail "signals of $nic"
	python "$top/tests/waves/check_view.py" "$top" $nic "$dir/o/$nic.fst" nic.tx || fail "view of a part of $nic"
done
# no_room KB WORDS: if the disk does not take all waves, that is neither success nor a crash. (A limit on file size stands for
# the disk.) With the smallest limit not even the files for the viewers fit, and the run does not start.
no_room() {
	local status=0
	rm -f "$dir/control"
	(
		trap '' XFSZ
		ulimit -f "$1"
		exec "$cosim" --socket "$dir/s0" --out "$dir/full" --control "$dir/control" --trace fst
	) >"$dir/out" 2>&1 &
	pid=$!
	until [ -S "$dir/control" ]; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill -TERM $pid 2>/dev/null
	wait $pid || status=$?
	[ $status = 1 ] || fail "waves with room for $1 KB: status $status: $(cat "$dir/out")"
	grep -q "$2" "$dir/out" || fail "waves with room for $1 KB: $(cat "$dir/out")"
	! grep -q FST_CHECK "$dir/out" || fail "waves with room for $1 KB: $(cat "$dir/out")"
}
no_room 4 "cannot write $dir/full/urdma0.fst: "
no_room 64 'urdma0.fst could not be written whole: File too large'
# A view with a signal that the RTL does not have, or that cannot be parsed, is not built.
command=$(ninja -C "$top/build/waves" -t commands sim/gen/view.inc | grep -F /view.sh)
command=${command//"$top/build/waves/sim/gen/view.inc"/"$dir/view.inc"}
command=${command//"$top/tools/waves/view.def"/"$dir/view.def"}
no_view() {
	printf 'group A\n%s\n' "$2" >"$dir/view.def"
	! bash -c "$command" >"$dir/out" 2>&1 || fail "there is a view of '$2'"
	[ "$(cat "$dir/out")" = "$dir/view.def:2: $1" ] || fail "$2: $(cat "$dir/out")"
}
no_view 'the RTL has no signal nic.tx.seg.gone_reg' 'enum nic.tx.seg.gone_reg'
no_view 'the RTL has no signal nic.tx.trace_pkt.gone' 'hex nic.tx.trace_pkt.gone'
no_view 'the RTL has no signal nic.gone.clk' 'hex nic.gone.clk'
no_view 'there is no lane gone' 'lane nic.tx gone'
no_view 'not understood: hec clk' 'hec clk'
# Around a trigger: both files of a NIC have the time before it, and nothing after the window.
{
	printf '\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0'
	printf '\x01\0\0\0\x14\0\0\0\x01\0\0\0\0\0\0\0\x14\0\0\0'
	for ((i = 0; i < 40; i++)); do
		# A frame of 60 bytes every 50 us
		t=$(printf '%08x' $((i * 50)))
		printf '\x06\0\0\0\x5c\0\0\0\0\0\0\0\0\0\0\0'
		# shellcheck disable=SC2059  # bytes
		printf "\\x${t:6:2}\\x${t:4:2}\\x${t:2:2}\\x${t:0:2}"
		printf '\x3c\0\0\0\x3c\0\0\0\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x88\xb5'
		head -c 46 /dev/zero
		printf '\x5c\0\0\0'
	done
} >"$dir/paced.pcapng"
# triggered BEFORE AFTER OFFSET...: a run with waves around the tenth frame. They contain the frames at these ns from it.
triggered() {
	local before=$1 after=$2 at
	shift 2
	rm -rf "$dir/o"
	"$cosim" --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --control "$dir/control" --trace "fst=trigger:${before}ns-${after}ns" \
		--trigger '20*rx_end' --port "r=replay:$dir/paced.pcapng" --switch 0,1,r >"$dir/out" 2>&1 &
	pid=$!
	until grep -q 'the trigger' "$dir/out"; do
		kill -0 $pid 2>/dev/null || fail "urdma-cosim: $(cat "$dir/out")"
		sleep 0.1
	done
	[ "$("$cosim" --tell "$dir/control" waves off)" = 'error the waves of this run are those around its trigger' ] || fail "waves off"
	at=$(sed -n 's/.* came at \([0-9]*\) ns$/\1/p' "$dir/out")
	# Until a frame has arrived that is not in the window.
	until [ "$("$cosim" --tell "$dir/control" time | tr -dc 0-9)" -gt $((at + after + 100000)) ]; do
		kill -0 $pid 2>/dev/null || fail "urdma-cosim: $(cat "$dir/out")"
		sleep 0.1
	done
	kill -TERM $pid
	wait $pid || fail "urdma-cosim: $(cat "$dir/out")"
	for nic in urdma0 urdma1; do
		python "$top/tests/waves/check_trigger.py" $nic "$at" "$before" "$after" "$@" -- "$dir/o/$nic".*fst || fail "$nic"
	done
}
triggered 120000 60000 -100000 -50000 0 50000
triggered 0 50000 0 50000
settings() {
	local trigger=
	case $1 in
	*trigger*) trigger=--trigger=error ;;
	esac
	"$cosim" --check --socket "$dir/s0" --out "$dir/o" --trace "$1" $trigger | jq -c '[.captures, .waves]'
}
want() {
	local got
	got=$(settings "$1")
	[ "$got" = "$2" ] || fail "--trace $1: $got"
}
want pcap,fst '[true,{"from_ns":0,"to_ns":null,"hold":false,"last_ns":null,"scope":null}]'
want fst=20us-1ms '[false,{"from_ns":20000,"to_ns":1000000,"hold":false,"last_ns":null,"scope":null}]'
want fst=5ns-,pcap '[true,{"from_ns":5,"to_ns":null,"hold":false,"last_ns":null,"scope":null}]'
want fst=last:2s,scope=nic.rx '[false,{"from_ns":0,"to_ns":null,"hold":false,"last_ns":2000000000,"scope":"nic.rx"}]'
want fst=trigger:20us-1ms,scope=nic.rx '[false,{"before_ns":20000,"after_ns":1000000,"last_ns":null,"scope":"nic.rx"}]'
echo "ok"
