#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# urdma-cosim as a program. With bad options it exits with 2 and names the reason. With good ones it listens, says so, and
# leaves its reports when it is told to end. Usage: test_program.sh PROGRAM URDMA_EVENTS URDMA_SAMPLES
set -u
program=$1
urdma_events=$2
urdma_samples=$3
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
	# A program that does not refuse runs until it is told to end.
	timeout 60 "$program" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ $status = 2 ] || fail "$* exits $status"
	grep -q -- "$words" "$dir/err" || fail "$* says: $(cat "$dir/err")"
}

s=$dir/s
bad 'no --socket' --out "$dir/o"
bad '--out is missing' --socket "$s"
bad '--out is missing' --socket "$s" --out ''
bad "'--socket' requires an argument" --socket
bad "unrecognized option '--frobnicate'" --socket "$s" --out "$dir/o" --frobnicate
bad "unexpected argument 'extra'" --socket "$s" --out "$dir/o" extra
bad "--trace '': it is none, or a list of" --socket "$s" --out "$dir/o" --trace ''
bad "--trace 'vcd': it is none, or a list of" --socket "$s" --out "$dir/o" --trace pcap,vcd
bad "--trace 'none': it is none, or a list of" --socket "$s" --out "$dir/o" --trace pcap,none
bad "scope=a.b is for waves" --socket "$s" --out "$dir/o" --trace pcap,scope=a.b
bad "--trace 'scope=nic.tx': there is scope=nic.rx already" --socket "$s" --out "$dir/o" --trace fst,scope=nic.rx,scope=nic.tx
for window in '' 5 5us 5us-4us 5us-5us -5us 5-6 5us-6 last last: last:0us last:5 5ks- held 99999999999999999999s- \
	trigger trigger: trigger:5us trigger:5us- trigger:-5us trigger:5-6us trigger:5us-6 trigger:5us-6us,7 trigger:5us-6us-; do
	bad "--trace '\(fst=${window%,*}\|7\)': \(a window is FROM-TO, FROM-, last:TIME, hold, or trigger:BEFORE-AFTER\|it is none\)" --socket "$s" --out "$dir/o" --trace "fst=$window"
done
window_is='a window is FROM-TO, FROM-, hold, or trigger:BEFORE-AFTER, with times as 20us'
for window in '' 5 5us 5us-4us 5us-5us -5us 5-6 5us-6 last last:5us held trigger trigger:5us trigger:5us- trigger:5us-6 triggers:5us-6us; do
	bad "--trace 'events=$window': $window_is" --socket "$s" --out "$dir/o" \
		--trace "events=$window"
done
for kind in csv= perfetto=5us csv=last:5us events=5us-,csv=; do
	bad "--trace '${kind#*,}': $window_is" --socket "$s" --out "$dir/o" --trace "$kind"
done
bad "--trace 'csv=6us-': events, csv and perfetto have one window; give it once" --socket "$s" --out "$dir/o" \
	--trace events=5us-,csv=6us-
for kind in csvs perfettos eventss; do
	bad "--trace '$kind': it is none, or a list of pcap, events, csv, perfetto, fst and scope=NAME" --socket "$s" \
		--out "$dir/o" --trace "$kind"
done
bad "--trace 'csv=trigger:5us-6us': events, csv and perfetto have one window; give it once" --socket "$s" --out "$dir/o" \
	--trace perfetto=trigger:6us-6us,csv=trigger:5us-6us --trigger error
bad "a window waits for a trigger, and --trigger is missing" --socket "$s" --out "$dir/o" --trace csv=trigger:5us-6us
for trace in pcap events csv,perfetto=20us-50us events=hold none; do
	bad "--trigger 'error': nothing is written around it: --trace needs a window such as events=trigger:20us-50us" \
		--socket "$s" --out "$dir/o" --trace $trace --trigger error
done
# bad_trigger WORDS TRIGGER [ARGUMENT...]
bad_trigger() {
	local words=$1 trigger=$2
	shift 2
	bad "--trigger '${trigger//\*/\\*}': $words" --socket "$s" --socket "$s.1" --out "$dir/o" --trace events=trigger:5us-6us \
		--trigger="$trigger" "$@"
}
bad_trigger "there is no event ''" ''
bad_trigger "there is no event 'ack'" ack
bad_trigger "there is no NIC 'urdma2'" urdma2:reset
bad_trigger "there is no NIC ''" :reset
bad_trigger "there is no NIC '3'" '3:urdma0:reset'
bad_trigger "there is no NIC 'p'" p:reset --port p=tap:x --switch 0,1,p
bad_trigger "there is no event 'urdma0:reset'" 0:urdma0:reset
bad_trigger "acked has no field 'qp'" '1:3*acked.qp=1'
bad_trigger "rsp.psn=0x1000000 never comes: psn has 24 bits, its largest value is 0xffffff" rsp.psn=0x1000000
bad_trigger "a fault is of a wire, not of a NIC" urdma1:fault --loss 1
bad_trigger "there are no faults: --fault, --loss" fault=3
# The program of the ordinary build writes no waves, and names the build that does.
for kind in fst pcap,fst fst=5us-6us fst=5us- fst=last:5ms fst=hold fst=trigger:5us-6us fst,scope=nic.tx; do
	bad "built without waves; tools/host-build.sh --waves" --socket "$s" --out "$dir/o" --trace "$kind"
done
bad 'form A-B' --socket "$s" --out "$dir/o" --wire 0:1
bad 'with itself' --socket "$s" --out "$dir/o" --wire 0-0
bad 'counted from 0' --socket "$s" --out "$dir/o" --wire 0-1
bad 'NIC 1 has a wire already' --socket "$s" --socket "$s.1" --out "$dir/o" --wire 0-1 --wire 1-0
bad "no port has this name" --socket "$s" --out "$dir/o" --wire 0-peer
bad "no wire and no switch has it" --socket "$s" --out "$dir/o" --port peer=tap:x
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
for rate in '' . 0 .5 1. -1 1e3 1000.001 20000000000000000000000 0x10; do
	bad "--rate '$rate': not a rate from 0.1 to 1000 Gb/s" --socket "$s" --out "$dir/o" --rate "$rate"
done
bad "--rate '200': a NIC takes at most 128 Gb/s, 512 bits in each cycle" --socket "$s" --out "$dir/o" --rate 200
bad "--rate '25.1234': more than three digits behind the point" --socket "$s" --out "$dir/o" --rate 25.1234
bad "--pcie-gbps '1.0000': more than three digits" --socket "$s" --out "$dir/o" --pcie-gbps 1.0000
bad 'not a number' --socket "$s" --out "$dir/o" --delay -5
bad 'not a number' --socket "$s" --out "$dir/o" --pcie-latency 0
for option in loss dup reorder corrupt ecn; do
	bad "--$option '101': not a number of percent" --socket "$s" --out "$dir/o" --$option 101
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
bad 'not a number from 1 to' --socket "$s" --out "$dir/o" --sample-us 0
bad 'not a number from 1 to 5' --socket "$s" --out "$dir/o" --pcie-gen 6
bad 'not a power of two' --socket "$s" --out "$dir/o" --pcie-lanes 12
bad 'no wire for the faults' --socket "$s" --out "$dir/o" --loss 1
bad 'no wire for the faults' --socket "$s" --socket "$s.1" --wire none --out "$dir/o" --fault drop

# good NAME ARGUMENT...: exits 0; its output is in $dir/out.
good() {
	local name=$1
	shift
	timeout 60 "$program" "$@" >"$dir/out" 2>"$dir/err" || fail "$name exits $?: $(cat "$dir/err")"
	[ -s "$dir/err" ] && fail "$name says on stderr: $(cat "$dir/err")"
}
good --help --help
# The help has every option, with its default where there is one.
for option in system socket out control tell check port wire switch rate delay switch-queue switch-latency switch-age loss dup \
	reorder corrupt ecn seed fault pcie pcie-gen pcie-lanes pcie-gbps pcie-latency mps mrrs rcb completion \
	reorder-completions pcie-stall trace trigger sample-us live stall-us no-skip threads slow-clock verbose version; do
	grep -q -e "--$option\b" "$dir/out" || fail "--help does not tell --$option"
done
# The options that the launcher shows: settings of any run, without those that it sets itself.
good --help-settings --help-settings
grep -q -e '--pcie-gen=N' "$dir/out" || fail "--help-settings lacks --pcie-gen"
grep -qE -e '--(system|socket|out|control|tell|check|wire|switch|port)\b[^-]' "$dir/out" && fail "--help-settings tells too much"
good --version --version
grep -qxE 'urdma-cosim [0-9]+\.[0-9]+\.[0-9]+ \(hardware contract 1\.[0-9]+\)' "$dir/out" ||
	fail "--version says $(cat "$dir/out")"

# --check prints the resulting settings, creates nothing, and refuses whatever a run would.
check() {
	good "--check $*" --check --socket "$s" --socket "$s.1" --out "$dir/checked" "$@"
	[ -e "$dir/checked" ] && fail "--check made its --out"
	[ -e "$s" ] && fail "--check made a socket"
}
# has PATTERN: the last output has this, white space aside.
has() {
	tr -d ' \n' <"$dir/out" | grep -q -e "$1" || fail "it lacks $1: $(cat "$dir/out")"
}
check
has '"nics":2,"wires":\[\["urdma0","urdma1"\]\],"switches":\[\]'
has '{"wire":"urdma0-urdma1","rate":100,"delay":250}'
has '"pcie-gen":3,"pcie-lanes":16,"pcie-latency":500,"mps":256,"mrrs":4096,"rcb":64,"pcie-stall":0}'
has '"faults":\[\],"seed":1},"captures":false,"events":null,"csv":false,"perfetto":false,"waves":null'
check --rate 25.125 --pcie-gen 4 --pcie-lanes=8 --pcie-latency 700 --mps 512 --mrrs 1024 --rcb 128 --completion 128 \
	--reorder-completions 9 --pcie-stall 5 --loss 1 --dup 0 --trace pcap --port p=tap:x --switch 0,1,p --no-skip
has '"wires":\[\],"switches":\[\["urdma0","urdma1","p"\]\]'
has '"switch":"urdma0,urdma1,p",.*"p":{"rate":25.125,"delay":250}}'
for _ in 0 1; do
	nic='{"pcie-gen":4,"pcie-lanes":8,"pcie-latency":700,"mps":512,"mrrs":1024,"rcb":128,"completion":128,"reorder-completions":9,"pcie-stall":5}'
	nics=${nics:+$nics,}$nic
done
has "\"nics\":\[$nics\]"
has '"faults":\["drop,p=1"\],"seed":1},"captures":true,"events":null,"csv":false,"perfetto":false,"waves":null,"trigger":null,"sample_us":null,"live":false,"stall_us":1000,"skip":false'
check --trace events
has '"captures":false,"events":{"from_ns":0,"to_ns":null,"hold":false},"csv":false,"perfetto":false,"waves":null'
check --trace pcap,events=20us-1ms
has '"captures":true,"events":{"from_ns":20000,"to_ns":1000000,"hold":false}'
for kind in csv,perfetto=20us-1ms csv=20us-1ms,perfetto events=20us-1ms,csv,perfetto csv=20us-1ms,perfetto=20us-1ms; do
	check --trace "$kind"
	has '"captures":false,"events":{"from_ns":20000,"to_ns":1000000,"hold":false},"csv":true,"perfetto":true'
done
check --trace csv=hold
has '"events":{"from_ns":0,"to_ns":null,"hold":true},"csv":true,"perfetto":false'
check --trace perfetto
has '"events":{"from_ns":0,"to_ns":null,"hold":false},"csv":false,"perfetto":true'
check --trace events=trigger:20us-50us,csv,perfetto=trigger:20us-50us --trigger 'urdma1:3*acked.qpn=17.cause=time-out'
has '"events":{"before_ns":20000,"after_ns":50000},"csv":true,"perfetto":true,"waves":null,"trigger":"urdma1:3\*acked.qpn=17.cause=time-out"'
check --trace csv=trigger:0ns-0ns --trigger fault=3 --loss 1
has '"events":{"before_ns":0,"after_ns":0},.*"trigger":"fault=3"'
check --trace events=hold,csv --trace none
has '"trigger":null'
has '"captures":false,"events":null'
# A leading zero does not mean octal.
check --delay 0250 --stall-us 0x100
has '"delay":250}'
has '"stall_us":256,'
check --socket "$s.2" --nics-of-hosts 1,0,2
has '"hosts":\[{"nics":\[{[^]]*}\]},{"nics":\[\]},{"nics":\[{[^]]*},{[^]]*}\]}\]'
for hosts in 1 1,2 3 '' ',' '1,' ',2' -1,3 x 1,x 1x1 "2$(printf ",0%.0s" {1..20})"; do
	bad "--nics-of-hosts '$hosts': not a list of numbers that add up to 2" --check --socket "$s" --socket "$s.1" --out "$dir/o" \
		--nics-of-hosts "$hosts"
done
check --pcie-gbps 50.5
has '"pcie-gbps":50.5,'
check --pcie gen4x8
has '"pcie-gen":4,"pcie-lanes":8,'
bad 'excludes' --check --socket "$s" --out "$dir/o" --pcie-gbps 50 --pcie gen4x8
bad "neither a slot" --check --socket "$s" --out "$dir/o" --pcie gen4
bad 'excludes' --check --socket "$s" --out "$dir/o" --pcie-gbps 50 --pcie-gen 4
bad 'no --socket' --check --out "$dir/o"

# start ARGUMENT...: runs the program until it is ready or has ended. Its output is emptied here: otherwise a shell that opens
# it late would leave the "ready" of the run before.
start() {
	: >"$dir/out"
	"$program" "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
	until grep -q ready "$dir/out"; do
		kill -0 $pid 2>/dev/null || return
		sleep 0.05
	done
}

# The terminal goes away: the reports are written. Under nohup nothing happens.
start --socket "$dir/s0" --out "$dir/hup"
kill -HUP $pid
wait $pid || fail "exit status $? after SIGHUP"
[ -s "$dir/hup/cosim.json" ] || fail "no cosim.json after SIGHUP"
trap '' HUP
start --socket "$dir/s0" --out "$dir/hup" --control "$dir/control"
trap - HUP
kill -HUP $pid
"$program" --tell "$dir/control" time >/dev/null || fail "SIGHUP ends a program that ignores it"
kill -TERM $pid
wait $pid || fail "exit status $?: $(cat "$dir/err")"

mkdir "$dir/o"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --trace pcap --rate 99.5 \
	--reorder-completions 3 --loss 1 --dup 0.5 --fault drop,side=1,nth=2 --seed 9
grep -qx ready "$dir/out" || fail "no ready: $(cat "$dir/err")"
for i in 0 1; do
	[ -S "$dir/s$i" ] || fail "no socket s$i"
done
kill -TERM $pid
wait $pid
status=$?
[ $status = 0 ] || fail "exit status $status after SIGTERM: $(cat "$dir/err")"
for key in simulated_ns cycles_simulated cycles_skipped cycles_evaluated cycles_waited wakings socket_looks cpu_user_seconds \
	cpu_system_seconds wall_seconds evaluated_per_cpu_second tx_frames \
	'"capture": "urdma1.pcapng"' '"error": null' '"seed": 9' '"reorder": 0'; do
	grep -q -- "$key" "$dir/o/cosim.json" || fail "cosim.json lacks $key"
done
# figure KEY: its value in cosim.json.
figure() {
	sed -n "s/^  \"$1\": \([0-9.]*\),\$/\1/p" "$dir/o/cosim.json"
}
# Each of the two NICs was clocked or waited in each cycle that was simulated; the other cycles were skipped. Waking up takes
# one clock more.
[ "$(($(figure cycles_evaluated) - $(figure wakings) + $(figure cycles_waited)))" = "$((2 * $(figure cycles_simulated)))" ] ||
	fail "the cycles of the NICs are not those simulated: $(cat "$dir/o/cosim.json")"
[ "$(($(figure cycles_simulated) + $(figure cycles_skipped)))" = "$(($(figure simulated_ns) / 4))" ] ||
	fail "simulated and skipped cycles are not the time: $(cat "$dir/o/cosim.json")"
grep -q '"tx_frames": 0' "$dir/o/counters.json" || fail "counters.json lacks tx_frames"
for i in 0 1; do
	[ -s "$dir/o/urdma$i.pcapng" ] || fail "no capture urdma$i.pcapng"
done
[ -e "$dir/o/faults.log" ] || fail "no faults.log"
empty=$(stat -c %s "$dir/o/urdma0.pcapng")
[ -e "$dir/s0" ] && fail "socket left behind"

# at_rest: waits until the program has nothing to do. With work, one of its threads runs or waits for a CPU.
at_rest() {
	local n=0
	while [ $n -lt 20 ]; do
		sleep 0.05
		n=$((n + 1))
		! cut -d' ' -f3 /proc/$pid/task/*/stat | grep -q '[RD]' || n=0
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

# all_frames PROGRAM: waits until the 1000 frames of a replay have reached the switch, or the run has ended.
all_frames() {
	until "$1" --tell "$dir/control" counters | grep -q '"group":1000'; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
}

# ---- machines from a file ------------------------------------------------------------------------

examples=$(CDPATH='' cd "$(dirname "$0")/../../examples/systems" && pwd)
bad 'unable to open' --system "$dir/nothing" --out "$dir/o"
printf '{\n  "hosts": [ { "nics": [ { "mps": "256" } ] } ]\n}\n' >"$dir/bad.json"
bad "urdma-cosim: $dir/bad.json: hosts\[0\].nics\[0\].mps: has to be a number, and is a string" --system "$dir/bad.json" --out "$dir/o"
grep -q 'Try' "$dir/err" && fail "a mistake in a file is no reason to try --help"

# A run records its settings. The next run from this file is the same, with its sockets in the directory of results.
for name in slow-slot four-hosts; do
	start --system "$examples/$name.json" --out "$dir/sys" --seed 5 --fault drop,nth=3
	n=0
	for socket in "$dir"/sys/urdma*.sock; do
		[ -S "$socket" ] && n=$((n + 1))
	done
	[ $n = "$(grep -c '"pcie-gen"' "$dir/sys/system.json")" ] || fail "$n sockets: $(cat "$dir/err" "$dir/sys/system.json")"
	kill -TERM $pid
	wait $pid || fail "exit status $? with --system $name: $(cat "$dir/err")"
	start --system "$dir/sys/system.json" --out "$dir/sys2"
	kill -TERM $pid
	wait $pid || fail "exit status $? with the system.json of $name: $(cat "$dir/err")"
	cmp "$dir/sys/system.json" "$dir/sys2/system.json" || fail "$name: system.json is not repeated"
	grep -q '"drop,nth=3"' "$dir/sys2/system.json" || fail "system.json lacks the fault: $(cat "$dir/sys2/system.json")"
done
# Of the four hosts' ports the last one has 25 Gb/s, on all of its way to the capture.
start --system "$examples/four-hosts.json" --out "$dir/sys" --trace pcap
kill -TERM $pid
wait $pid || fail "exit status $?: $(cat "$dir/err")"
# speed FILE: if_speed of its interface, option 8, in bits per second.
speed() {
	od -An -v -t x1 "$1" | tr -d ' \n' | sed -n 's/.*08000800\(................\).*/\1/p'
}
[ "$(speed "$dir/sys/urdma3.pcapng")" = 00ba1dd205000000 ] || fail "speed of urdma3: $(speed "$dir/sys/urdma3.pcapng")"
[ "$(speed "$dir/sys/urdma0.pcapng")" = 00e8764817000000 ] || fail "speed of urdma0: $(speed "$dir/sys/urdma0.pcapng")"
# It is the first file of a run: without it there is no run.
mkdir "$dir/full-system"
ln -s /dev/full "$dir/full-system/system.json"
start --socket "$s" --out "$dir/full-system"
kill -TERM $pid 2>/dev/null
wait $pid
[ $? = 1 ] || fail "a system.json on a full disk does not exit 1"
grep -q 'system.json could not be written: No space left' "$dir/err" || fail "it says: $(cat "$dir/err")"

# A switch with NICs and other ports, and the control socket. The replay uses the capture above.
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
tell 'error there are no waves in this run' waves on
tell 'error there are no events in this run' events on
tell 'error there is no NIC' waves maybe
"$program" --tell "$dir/control" nonsense >/dev/null && fail "--tell exits 0 after an error"
kill -TERM $pid
wait $pid || fail "exit status $? after SIGTERM: $(cat "$dir/err")"
for key in '"group": 1' '"kind": "stream"' '"no_peer": 1' '"capture": "r.pcapng"' '"to": "q"' '"lost_link_down": 1'; do
	grep -q -- "$key" "$dir/o/cosim.json" || fail "cosim.json lacks $key: $(cat "$dir/o/cosim.json")"
done
[ -s "$dir/o/r.pcapng" ] || fail "no capture r.pcapng"
[ -e "$dir/control" ] && fail "control socket left behind"

# ---- files that cannot be written completely: errors of the run ---------------------------------

# A capture of 1000 frames, and the frame alone.
head -c 48 "$dir/one.pcapng" >"$dir/many.pcapng"
tail -c +49 "$dir/one.pcapng" >"$dir/packet"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	cat "$dir/packet"
done >"$dir/ten"
for _ in $(seq 100); do
	cat "$dir/ten"
done >>"$dir/many.pcapng"

# ---- a busy NIC does not make guests wait --------------------------------------------------------

# 1000 frames arrive at both NICs at once. At most some dozens of clocks pass between two checks of the sockets.
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --port "r=replay:$dir/many.pcapng,fast" --switch 0,1,r
at_rest
kill -TERM $pid
wait $pid || fail "exit status $? after SIGTERM: $(cat "$dir/err")"
grep -q '"group": 1000' "$dir/o/cosim.json" || fail "the replay is not over: $(cat "$dir/o/cosim.json")"
[ "$(figure cycles_evaluated)" -gt 2000 ] || fail "$(figure cycles_evaluated) clocks for 1000 frames"
[ "$(figure cycles_evaluated)" -le $((40 * $(figure socket_looks))) ] ||
	fail "$(figure socket_looks) looks at the sockets in $(figure cycles_evaluated) clocks"

# ---- counters over time ---------------------------------------------------------------------------

# Values of changed counters, at multiples of the interval; the last ones equal the reports.
[ -e "$dir/o/samples.jsonl" ] && fail "samples that nobody asked for"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/o" --sample-us 1 --control "$dir/control" \
	--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r
tell ok start r
all_frames "$program"
at_rest
lines=$(wc -l <"$dir/o/samples.jsonl")
[ "$lines" -gt 4 ] || fail "$lines samples can be seen while the run goes on"
# A simulation that sleeps adds no samples.
sleep 0.3
[ "$(wc -l <"$dir/o/samples.jsonl")" = "$lines" ] || fail "samples of a simulation that sleeps"
kill -TERM $pid
wait $pid || fail "exit status $? after SIGTERM: $(cat "$dir/err")"
python3 - "$dir/o" <<'END' || fail "samples.jsonl is wrong"
import json
import sys

out = sys.argv[1]
lines = [json.loads(line) for line in open(out + "/samples.jsonl")]
report = json.load(open(out + "/cosim.json"))
counters = json.load(open(out + "/counters.json"))
assert report["samples"] == "samples.jsonl" and report["settings"]["sample_us"] == 1
ns = [line["ns"] for line in lines]
assert ns == sorted(set(ns)), "times"
assert all(t % 1000 == 0 for t in ns[:-1]), "not at multiples of the interval"
last = {}
for line in lines:
    for nic in line.keys() - {"ns"}:
        for part in line[nic]:
            values = last.setdefault(nic, {}).setdefault(part, {})
            for key, value in line[nic][part].items():
                assert value != values.get(key, 0), "a value that has not changed"
                assert value > values.get(key, 0), "a counter goes back"
                values[key] = value
for nic in report["nics"]:
    seen = last[nic["name"]]
    for part, want in ("counters", counters[nic["name"]]), ("port", nic), ("pcie", nic["pcie"]):
        for key, value in seen[part].items():
            assert value == want[key], (part, key, value, want[key])
    assert seen["counters"]["rx_frames"] == 1000
    frames = [line[nic["name"]]["port"]["rx_frames"] for line in lines
              if "rx_frames" in line.get(nic["name"], {}).get("port", {})]
    # 84 bytes per frame at 100 Gb/s: at most 149 in 1 us
    steps = [b - a for a, b in zip([0] + frames, frames)]
    assert len(frames) > 1 and max(steps) <= 150, steps
END
# As the report reads it.
"$urdma_samples" 1us "$dir/o/samples.jsonl" >"$dir/json" || fail "urdma-samples: $?"
jq -e '[.nics[] | .port.rx_frames, .counters.rx_frames | add] == [1000, 1000, 1000, 1000]' "$dir/json" >/dev/null ||
	fail "the slices have $(jq -c '[.nics[].port.rx_frames]' "$dir/json")"

# A run does not overwrite the capture that it replays.
mkdir -p "$dir/again"
for name in r urdma1; do
	cp "$dir/many.pcapng" "$dir/again/$name.pcapng"
	bad "the capture of $name would be written over this file" --socket "$s" --socket "$s.1" --out "$dir/again" --trace pcap \
		--port "r=replay:$dir/again/$name.pcapng,fast" --switch 0,1,r
	cmp "$dir/many.pcapng" "$dir/again/$name.pcapng" || fail "$name.pcapng is written over"
done

# ---- readers that follow a run --------------------------------------------------------------------

# A reader gets what the capture has. One that does not read delays nobody, and loses what does not fit into its pipe.
live() {
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/live" --trace pcap --live --control "$dir/control" \
		--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r
	for port in urdma0 urdma1 r; do
		[ -p "$dir/live/$port.live" ] || fail "no FIFO of $port: $(cat "$dir/err")"
	done
	"$@" <"$dir/live/r.live" >"$dir/followed.pcapng" &
	reader=$!
	# The simulator looks for readers when it gets a message. Frames before that are not for them.
	until readlink "/proc/$pid/fd/"* | grep -q '/r\.live$'; do
		if ! kill -0 $pid 2>/dev/null || ! kill -0 $reader 2>/dev/null; then
			break
		fi
		tell ok time
		sleep 0.05
	done
	tell ok start r
	all_frames "$program"
	kill -TERM $pid
	wait $pid || fail "exit status $? with --live: $(cat "$dir/err")"
	touch "$dir/go"
	wait $reader
	[ -e "$dir/live/r.live" ] && fail "the FIFOs are left behind"
}
live cat
cmp "$dir/live/r.pcapng" "$dir/followed.pcapng" || fail "the reader got something else"
grep -q 'left out' "$dir/err" && fail "it says: $(cat "$dir/err")"
size=$(stat -c %s "$dir/followed.pcapng")
# Readers come and go, also while no frame passes: each gets a capture from its beginning.
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/live" --trace pcap --live --control "$dir/control" \
	--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r
# has_reader WANT: waits until "the simulator has a reader of r" becomes this.
has_reader() {
	local has n
	for n in $(seq 200); do
		has=no
		readlink "/proc/$pid/fd/"* | grep -q '/r\.live$' && has=yes
		[ $has != "$1" ] || return 0
		# It looks for new readers when it gets a message. That a reader has gone it has to notice by itself.
		[ "$1" = no ] || tell ok time
		sleep 0.05
	done
	fail "a reader: $has, not $1"
}
exec 8<>"$dir/live/r.live"
has_reader yes
exec 8>&-
has_reader no
cat <"$dir/live/r.live" >"$dir/followed.pcapng" &
reader=$!
has_reader yes
tell ok start r
all_frames "$program"
kill -TERM $pid
wait $pid || fail "exit status $? with --live: $(cat "$dir/err")"
wait $reader
cmp "$dir/live/r.pcapng" "$dir/followed.pcapng" || fail "the second reader got something else"
# A FIFO that a killed run has left behind is used again.
mkfifo "$dir/live/urdma0.live" "$dir/live/r.live"
live true
[ "$(stat -c %s "$dir/live/r.pcapng")" = "$size" ] || fail "a reader that has gone changes the capture"
# refused WORDS: --live refuses the file at urdma1.live, and leaves nothing behind.
refused() {
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/live" --live --control "$dir/control" \
		--port "q=stream:unix:$dir/q,listen" --switch 0,1,q
	wait $pid
	[ $? = 1 ] || fail "it does not exit 1: $(cat "$dir/err")"
	grep -q "/live/urdma1.live: it is there already, $1; end the program or remove the file" "$dir/err" ||
		fail "it says: $(cat "$dir/err")"
	for file in live/urdma0.live live/q.live s0 s1 q control; do
		[ -e "$dir/$file" ] && fail "$file is left behind"
	done
	[ -e "$dir/live/urdma1.live" ] || fail "what was there has gone"
	rm -f "$dir/live/urdma1.live"
}
echo mine >"$dir/live/urdma1.live"
refused 'and not a FIFO'
mkfifo "$dir/live/urdma1.live"
exec 8<>"$dir/live/urdma1.live"
refused 'and a program reads it'
exec 8>&-
# Only a writer: a FIFO that is opened for reading and writing lets it start.
mkfifo "$dir/live/urdma1.live"
exec 8<>"$dir/live/urdma1.live"
exec 9>"$dir/live/urdma1.live"
exec 8>&-
refused 'and a program writes to it'
exec 9>&-
# A set-up that fails later removes what it has created.
mkdir "$dir/s1"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/live" --live --trace events --control "$dir/control" \
	--port "q=stream:unix:$dir/q,listen" --switch 0,1,q
wait $pid
[ $? = 1 ] || fail "a socket that cannot be made does not exit 1"
grep -q "cannot listen at $dir/s1" "$dir/err" || fail "it says: $(cat "$dir/err")"
for file in live/urdma0.live live/urdma1.live live/q.live s0 q control; do
	[ -e "$dir/$file" ] && fail "$file is left behind"
done
rmdir "$dir/s1"

# A second simulator does not touch the results of the first, which goes on.
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/twice" --trace pcap --control "$dir/control"
timeout 60 "$program" --socket "$dir/s2" --out "$dir/twice" --trace pcap </dev/null >"$dir/out2" 2>"$dir/err2"
[ $? = 1 ] || fail "a second simulator in a directory does not exit 1"
grep -q "another simulator writes its results to $dir/twice: name another directory" "$dir/err2" ||
	fail "it says: $(cat "$dir/err2")"
"$program" --tell "$dir/control" time >/dev/full 2>"$dir/err2"
[ $? = 2 ] || fail "an answer that could not be written does not exit 2"
grep -q 'could not be written: No space left' "$dir/err2" || fail "it says: $(cat "$dir/err2")"
kill -TERM $pid
wait $pid || fail "exit status $? beside a second simulator: $(cat "$dir/err")"
[ "$(grep -c '"pcie-gen"' "$dir/twice/system.json")" = 2 ] || fail "system.json is the second's"
# Without standard streams no file of results takes their descriptors.
"$program" --socket "$dir/s0" --out "$dir/closed" --trace pcap --control "$dir/control" <&- >&- 2>&- &
pid=$!
until "$program" --tell "$dir/control" time >/dev/null 2>&1; do
	kill -0 $pid 2>/dev/null || break
	sleep 0.05
done
kill -TERM $pid
wait $pid || fail "exit status $? without standard files"
grep -rl ready "$dir/closed" && fail "what belongs on the standard output is in a file of results"

# 1000 frames of 1400 bytes are more than a pipe holds. What is left out is reported, and the rest is complete.
mv "$dir/many.pcapng" "$dir/small.pcapng"
head -c 48 "$dir/one.pcapng" >"$dir/many.pcapng"
{
	printf '\x06\0\0\0\x98\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x78\x05\0\0\x78\x05\0\0'
	printf '\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x88\xb5'
	head -c 1386 /dev/zero
	printf '\x98\x05\0\0'
} >"$dir/large"
for _ in $(seq 1000); do
	cat "$dir/large"
done >>"$dir/many.pcapng"
rm -f "$dir/go"
# shellcheck disable=SC2016  # for bash
live bash -c 'until [ -e "$0/go" ]; do sleep 0.05; done; cat' "$dir"
left=$(sed -n 's|.*/r.live: \([0-9]*\) packets were left out, because the reader was too slow|\1|p' "$dir/err")
[ "${left:-0}" -gt 0 ] || fail "nothing is left out of $(stat -c %s "$dir/followed.pcapng") bytes: $(cat "$dir/err")"
# 44 bytes more than the frame per packet
[ "$(stat -c %s "$dir/followed.pcapng")" = $((size - 1000 * 104 + 1444 * (1000 - left))) ] ||
	fail "$left packets are left out, and the reader has $(stat -c %s "$dir/followed.pcapng") bytes"
mv "$dir/small.pcapng" "$dir/many.pcapng"

# ---- events --------------------------------------------------------------------------------------

# events TRACE [COMMAND...]: a run of 1000 frames to both NICs with this --trace. The commands go to the control socket before
# the frames, and "events off" after them.
events() {
	local trace=$1 n
	shift
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/events" --trace "$trace" --control "$dir/control" \
		--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r
	for n in "$@"; do
		# shellcheck disable=SC2086  # words of a command
		tell ok $n
	done
	tell ok start r
	all_frames "$program"
	at_rest
	[ $# = 0 ] || tell ok events off
	kill -TERM $pid
	wait $pid || fail "exit status $? with --trace $trace: $(cat "$dir/err")"
	[ -s "$dir/events/events.urdma" ] || fail "no events.urdma"
}
# count KEY: a number of the events in cosim.json.
count() {
	tr -d ' \n' <"$dir/events/cosim.json" | sed -n "s/.*\"events\":{\"file\":\"events.urdma\",\"events\":\([0-9]*\),\"missing\":\([0-9]*\),.*/\\$1/p"
}
events events
[ "$(count 2)" = 0 ] || fail "events are missing: $(count 2)"
# Each frame begins and ends at each NIC.
[ "$(count 1)" -ge 4000 ] || fail "$(count 1) events of 1000 frames"
[ -e "$dir/events/urdma0.pcapng" ] && fail "--trace events writes captures"
events pcap,events=hold 'events on'
[ "$(count 1)" -ge 4000 ] || fail "$(count 1) events behind events on"
[ -s "$dir/events/urdma0.pcapng" ] || fail "no capture beside the events"
events events=hold
[ "$(count 1)" = 0 ] || fail "$(count 1) events without events on"
# The resets of the two NICs end in cycle 15.
events events=60ns-64ns
[ "$(count 1)" = 2 ] || fail "$(count 1) events in the cycle that ends the resets"
events events=64ns-100ns
[ "$(count 1)" = 0 ] || fail "$(count 1) events behind the resets"
events events=64ns-
[ "$(count 1)" -ge 4000 ] || fail "$(count 1) events from 64 ns on"

# The files that are made during the run are those that urdma-events makes of the events afterwards.
for kind in csv,perfetto events=hold,csv,perfetto; do
	rm -rf "$dir/events"
	if [ $kind = csv,perfetto ]; then
		events $kind
	else
		events $kind 'events on' 'events off' 'events on'
	fi
	"$urdma_events" --csv "$dir/csv" --perfetto "$dir/perfetto" "$dir/events/events.urdma" || fail "urdma-events: $?"
	cmp "$dir/csv" "$dir/events/wqes.csv" || fail "--trace $kind: wqes.csv"
	cmp "$dir/perfetto" "$dir/events/trace.perfetto" || fail "--trace $kind: trace.perfetto"
	# A slice of 1000 frames at each NIC.
	[ "$(stat -c %s "$dir/perfetto")" -gt 50000 ] || fail "--trace $kind: trace.perfetto is short"
	tr -d ' \n' <"$dir/events/cosim.json" | grep -q '"csv":"wqes.csv","perfetto":"trace.perfetto"' || fail "cosim.json: $kind"
done
# A window that ends with the end of a frame contains all events of its last cycle. The first run finds that cycle.
first_frame() {
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/events" --trace "$1" --port "r=replay:$dir/one.pcapng" --switch 0,1,r
	at_rest
	kill -TERM $pid
	wait $pid || fail "exit status $? with --trace $1: $(cat "$dir/err")"
}
first_frame pcap
read -r high low < <(od -An -tu4 -j $((empty + 12)) -N 8 "$dir/events/urdma0.pcapng")
first_frame "csv,perfetto=0ns-$(((high << 32 | low) + 4))ns"
"$urdma_events" --perfetto "$dir/perfetto" "$dir/events/events.urdma" || fail "urdma-events: $?"
cmp "$dir/perfetto" "$dir/events/trace.perfetto" || fail "the last cycle is missing in trace.perfetto"
rm -rf "$dir/events"
events events,csv
[ -s "$dir/events/wqes.csv" ] || fail "no wqes.csv"
[ -e "$dir/events/trace.perfetto" ] && fail "a trace that was not asked for"

# paced FRAMES US: a capture of this many frames, one in so many microseconds.
paced() {
	local i t
	head -c 48 "$dir/one.pcapng"
	for ((i = 0; i < $1; i++)); do
		t=$(printf '%08x' $((i * $2)))
		printf '\x06\0\0\0\x5c\0\0\0\0\0\0\0\0\0\0\0'
		# shellcheck disable=SC2059  # bytes
		printf "\x${t:6:2}\x${t:4:2}\x${t:2:2}\x${t:0:2}"
		tail -c +69 "$dir/one.pcapng"
	done
}
# The NICs are quiet between the frames. Events of all pauses share a few zstd frames, and readers see them within seconds.
paced 500 200 >"$dir/paced.pcapng"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/events" --trace csv,perfetto --port "r=replay:$dir/paced.pcapng" --switch 0,1,r
seen=0
for _ in $(seq 200); do
	seen=$("$urdma_events" "$dir/events/events.urdma" 2>&1 | sed -n 's/.*the results are those of the \([0-9]*\) events.*/\1/p')
	[ "${seen:-0}" -lt 2000 ] || break
	sleep 0.1
done
[ "${seen:-0}" -ge 2000 ] || fail "${seen:-0} events can be read while the run goes on"
kill -TERM $pid
wait $pid || fail "exit status $? after pauses: $(cat "$dir/err")"
[ "$(zstd -l "$dir/events/events.urdma" | awk 'NR == 2 {print $1}')" -le 12 ] ||
	fail "$(zstd -l "$dir/events/events.urdma") for 500 pauses"

# ---- triggers ------------------------------------------------------------------------------------

# One frame per 200 us, to both NICs at once. At each of them it begins and ends in one cycle, which makes two events. Some
# cycles later the NIC drops it, which makes a third. The replay is on wire 2.
paced 30 200 >"$dir/paced.pcapng"
# triggered TRACE TRIGGER [ARGUMENT...]: a run with these frames.
triggered() {
	local trace=$1 trigger=$2 end
	shift 2
	rm -rf "$dir/events"
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/events" --trace "pcap,$trace" --trigger "$trigger" \
		--control "$dir/control" --port "r=replay:$dir/paced.pcapng,hold" --switch 0,1,r "$@"
	tell 'error the events of this run are those around its trigger' events on
	tell ok start r
	# Without "counters": reads of counters are events, too.
	end=$(($("$program" --tell "$dir/control" time | tr -dc 0-9) + 8000000))
	while [ "$("$program" --tell "$dir/control" time | tr -dc 0-9)" -lt $end ]; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	kill -TERM $pid
	wait $pid || fail "exit status $? with --trigger $trigger: $(cat "$dir/err")"
}
# trigger KEY: its value in cosim.json.
trigger() {
	tr -d ' \n' <"$dir/events/cosim.json" | sed -n "s/.*\"trigger\":{[^}]*\"$1\":\([^,}]*\).*/\1/p"
}
# captured N FILE: ns at which a capture has its Nth packet. Comments make its blocks differ in length.
captured() {
	local high low
	read -r high low < <(od -An -v -tu4 -w4 "$dir/events/$2.pcapng" | awk -v n="$1" '
		{ word[NR - 1] = $1 }
		END { for (i = 0; i < NR && (word[i] != 6 || --n); i += word[i + 1] / 4); print word[i + 3], word[i + 4] }')
	echo $((high << 32 | low))
}
# came NS EVENTS: the trigger came at this moment, with so many events in the window, and its own event.
came() {
	local what
	what=$(trigger what)
	[ "$(trigger at_ns)" = "$1" ] || fail "$what came at $(trigger at_ns), and not at $1 ns"
	[ "$(cat "$dir/err")" = "urdma-cosim: the trigger ${what//\"/} came at $1 ns" ] || fail "it says: $(cat "$dir/err")"
	[ "$(count 1)" = $(($2 + 1)) ] || fail "$what: $(count 1) events, and not $2 and that of the trigger"
	[ "$(count 2)" = 0 ] || fail "$what: $(count 2) events are missing"
	"$urdma_events" --json "$dir/json" "$dir/events/events.urdma" || fail "$what: events.urdma is not whole"
	jq -e --argjson what "$what" --argjson at "$1" '.trigger.what == $what and .trigger.at_ns == $at' "$dir/json" >/dev/null ||
		fail "$what: the file has the trigger $(jq -c .trigger "$dir/json")"
}
# span FROM TO [NS]: checks the times of the events in the file. The last one may be up to NS after TO.
span() {
	jq -e --argjson from "$1" --argjson to "$2" --argjson late "${3-0}" \
		'.from_ns == $from and .to_ns >= $to and .to_ns <= $to + $late' "$dir/json" >/dev/null ||
		fail "the events are not from $1 to $2 ns: $(head -n 9 "$dir/json")"
}
triggered events=trigger:0ns-0ns urdma1:rx_end
at=$(captured 1 urdma1)
came "$at" 4
span "$at" "$at"
triggered events=trigger:0ns-0ns '1:2*rx_end.len=60.number=3'
[ "$(cat "$dir/err")" = "urdma-cosim: the trigger 1:2*rx_end.len=60.number=3 never came: 1 of 2 were seen" ] ||
	fail "it says: $(cat "$dir/err")"
[ "$(trigger at_ns),$(trigger events_from_ns),$(trigger seen)" = null,null,1 ] || fail "it came: $(trigger at_ns)"
[ "$(count 1)" = 0 ] || fail "$(count 1) events without the trigger"
"$urdma_events" --json "$dir/json" "$dir/events/events.urdma" || fail "events.urdma without the trigger is not whole"
jq -e '.trigger.at_ns == null and .trigger.what == "1:2*rx_end.len=60.number=3"' "$dir/json" >/dev/null ||
	fail "the file has the trigger $(jq -c .trigger "$dir/json")"
# The frame before this one is in the window, and so is the next one.
triggered events=trigger:201us-201us,csv,perfetto 'urdma0:5*rx_end'
came "$(captured 5 urdma0)" 18
span "$(captured 4 urdma0)" "$(captured 6 urdma0)" 100
[ "$(trigger events_from_ns)" = $(($(captured 5 urdma0) - 201000)) ] || fail "events from $(trigger events_from_ns) ns on"
"$urdma_events" --csv "$dir/csv" --perfetto "$dir/perfetto" "$dir/events/events.urdma" || fail "urdma-events: $?"
cmp "$dir/csv" "$dir/events/wqes.csv" || fail "wqes.csv around a trigger"
cmp "$dir/perfetto" "$dir/events/trace.perfetto" || fail "trace.perfetto around a trigger"
# Exact to the cycle at both ends: the next frame is dropped after the window, and the one before in it.
triggered events=trigger:200us-200us 'urdma0:5*rx_end'
came "$(captured 5 urdma0)" $((6 + 6 + 4))
triggered events=trigger:199996ns-199996ns 'urdma0:5*rx_end'
came "$(captured 5 urdma0)" $((2 + 6))
# On any NIC: each frame ends at two. It is dropped later.
triggered events=trigger:10ns-10ns '5*rx_end'
came "$(captured 3 urdma0)" 4
# More than there is before it.
triggered events=trigger:1s-6ms rx_end
came "$(captured 1 urdma0)" $((2 + 180))
[ "$(trigger events_from_ns)" = 0 ] || fail "events from $(trigger events_from_ns) ns on"
# A fault of the wire, at the time in its log. Two rules hit the second frame: it counts once.
for n in 1 2 3; do
	triggered events=trigger:10us-10us fault=$n --fault delay,side=0,wire=2,nth=2,count=all,ns=40 --fault ecn,count=all \
		--fault dup,side=0,wire=2,nth=2
	cycle=$(sed -n 's/^{.*"cycle": *\([0-9]*\),.*"frame": *'$n',.*/\1/p' "$dir/events/faults.log" | sort -nu | head -n 1)
	came $((cycle * 4)) $((n == 1 ? 12 : 6))
done
triggered events=trigger:10us-10us fault=30 --fault delay,side=0,wire=2,nth=2,count=all,ns=40
grep -q 'the trigger fault=30 never came: 29 of 30 were seen' "$dir/err" || fail "it says: $(cat "$dir/err")"
# No memory for everything before it: the last events are there, and the report says so.
paced 1000 100 >"$dir/paced.pcapng"
rm -rf "$dir/events"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/events" --trace events=trigger:1s-0ns --trigger '2000*rx_end' \
	--control "$dir/control" --port "r=replay:$dir/paced.pcapng,hold" --switch 0,1,r
at_rest
prlimit --pid $pid --as=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$pid/status) * 1024)): || fail "no limit can be set"
tell ok start r
until grep -q trigger "$dir/err"; do
	kill -0 $pid 2>/dev/null || break
	sleep 0.05
done
prlimit --pid $pid --as=unlimited: || fail "the limit cannot be taken away"
kill -TERM $pid
wait $pid || fail "exit status $? with no memory before a trigger: $(cat "$dir/err")"
case $(count 1) in
1025 | 2049) ;;
*) fail "$(count 1) events before the trigger though there is no memory" ;;
esac
"$urdma_events" --json "$dir/json" "$dir/events/events.urdma" || fail "events.urdma is not whole after a lack of memory"
# Each frame has its four events in one cycle.
from=$(tr -d ' \n' <"$dir/json" | sed -n 's/.*"from_ns":\([0-9]*\),.*/\1/p')
if [ "$(trigger events_from_ns)" -gt "$from" ] || [ "$(trigger events_from_ns)" -le $((from - 100000)) ]; then
	fail "events from $(trigger events_from_ns) ns on, and the first one is at $from ns"
fi
grep -q "events.urdma begins $(($(trigger at_ns) - $(trigger events_from_ns))) ns before the trigger: there was no memory for" "$dir/err" ||
	fail "it says: $(cat "$dir/err")"
grep -q '"trigger": null' "$dir/o/cosim.json" || fail "a trigger in a run without one"

# A directory in which no file can be created.
for file in wqes.csv trace.perfetto; do
	mkdir -p "$dir/dir-$file/$file"
	start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/dir-$file" --trace csv,perfetto
	wait $pid
	[ $? = 1 ] || fail "$file cannot be written, and it does not exit 1"
	grep -q "cannot write .*/dir-$file/$file: Is a directory" "$dir/err" || fail "it says: $(cat "$dir/err")"
	[ -e "$dir/s0" ] && fail "a socket is left behind"
done
mkdir -p "$dir/dir/events.urdma"
start --socket "$dir/s0" --socket "$dir/s1" --out "$dir/dir" --trace events
wait $pid
[ $? = 1 ] || fail "events that cannot be written do not exit 1"
grep -q 'cannot write .*/dir/events.urdma: Is a directory' "$dir/err" || fail "it says: $(cat "$dir/err")"
[ -e "$dir/s0" ] && fail "a socket is left behind"

real=$program
# lossy OUT [ARGUMENT...]: a run whose files in OUT have to fail. Its simulation is complete nevertheless: 1000 frames reach the
# switch.
lossy() {
	local out=$1
	shift
	start --socket "$dir/s0" --socket "$dir/s1" --out "$out" --control "$dir/control" \
		--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r --fault delay,side=0,count=all "$@"
	grep -q ready "$dir/out" || fail "no ready: $(cat "$dir/err")"
	[ "$("$real" --tell "$dir/control" start r)" = ok ] || {
		fail "the replay does not start"
		kill -TERM $pid
	}
	all_frames "$real"
	kill -TERM $pid
	wait $pid
	status=$?
	[ $status = 1 ] || fail "status $status though results were lost"
	[ ! -s "$out/cosim.json" ] || grep -q '"group": 1000' "$out/cosim.json" ||
		fail "the simulation did not go on: $(cat "$out/cosim.json")"
}

# lost FILE WORDS: the message names FILE once, and so does cosim.json, unless FILE is cosim.json.
lost() {
	local n
	n=$(grep -c "/$1 could not be written" "$dir/err")
	[ "$n" = 1 ] || fail "$n messages on $1: $(cat "$dir/err")"
	grep "/$1 could not be written" "$dir/err" | grep -q "$2" || fail "no '$2' on $1: $(cat "$dir/err")"
	[ "$1" = cosim.json ] || grep '"error": ".*could not be written' "$out/cosim.json" | grep -q "/$1 could not" ||
		fail "cosim.json does not name $1: $(tail -n 5 "$out/cosim.json")"
}

# A device that is always full.
for file in counters.json cosim.json faults.log samples.jsonl; do
	out=$dir/full-$file
	mkdir "$out"
	ln -s /dev/full "$out/$file"
	lossy "$out" --sample-us 1
	lost $file 'No space left on device'
	[ "$(grep -c . "$dir/err")" = 1 ] || fail "more than one message: $(cat "$dir/err")"
done
# The capture's header cannot be written: the run does not begin.
out=$dir/full-capture
mkdir "$out"
ln -s /dev/full "$out/urdma1.pcapng"
start --socket "$dir/s0" --socket "$dir/s1" --out "$out" --trace pcap
kill -TERM $pid 2>/dev/null
wait $pid
[ $? = 1 ] || fail "a capture on a full disk does not exit 1"
grep -q 'cannot write .*/urdma1.pcapng: No space left on device' "$dir/err" || fail "it says: $(cat "$dir/err")"

# Files made of events: the run goes on, and the events are complete.
for file in wqes.csv trace.perfetto; do
	out=$dir/full-$file
	mkdir "$out"
	ln -s /dev/full "$out/$file"
	lossy "$out" --trace csv,perfetto
	lost $file 'No space left on device'
	[ "$(grep -c . "$dir/err")" = 1 ] || fail "more than one message: $(cat "$dir/err")"
	"$urdma_events" "$out/events.urdma" >"$dir/out" || fail "events.urdma is not whole beside a full $file"
done

# The events themselves: their beginning, then their middle.
out=$dir/full-events
mkdir "$out"
ln -s /dev/full "$out/events.urdma"
start --socket "$dir/s0" --socket "$dir/s1" --out "$out" --trace events
wait $pid
[ $? = 1 ] || fail "events on a full disk do not exit 1"
grep -q 'cannot write .*/events.urdma: No space left on device' "$dir/err" || fail "it says: $(cat "$dir/err")"
out=$dir/events
start --socket "$dir/s0" --socket "$dir/s1" --out "$out" --trace events --control "$dir/control" \
	--port "r=replay:$dir/many.pcapng,fast,hold" --switch 0,1,r
at_rest
tell ok events off
tell ok events on
prlimit --pid $pid --fsize=1000: || fail "no limit can be set"
tell ok start r
all_frames "$program"
at_rest
tell ok events off
prlimit --pid $pid --fsize=unlimited: || fail "the limit cannot be taken away"
kill -TERM $pid
wait $pid
[ $? = 1 ] || fail "it exits 0 though events are missing"
lost events.urdma 'File too large'
if [ "$(count 2)" -lt 4000 ] || [ "$(count 2)" -ge "$(count 1)" ]; then
	fail "$(count 2) of $(count 1) events are missing"
fi

# Captures that grow too large in the middle of the run. They end with a complete packet.
out=$dir/limited
# shellcheck disable=SC2317,SC2329  # called as $program
limited() {
	ulimit -f 48
	exec "$real" "$@"
}
program=limited
lossy "$out" --trace pcap
program=$real
for file in urdma0.pcapng urdma1.pcapng r.pcapng faults.log; do
	lost $file 'File too large'
done
grep -q '"delay": 1000' "$out/cosim.json" || fail "not every fault was counted: $(cat "$out/cosim.json")"
# 180 bytes per packet, with the comment on its drop: the NIC does not receive frames yet.
comment='dropped: no filter of the Ethernet function passes it (eth_rx_filtered)'
[ "$(grep -aoF "$comment" "$out/urdma0.pcapng" | wc -l)" -gt 100 ] || fail "urdma0.pcapng does not tell of drops"
size=$(stat -c %s "$out/urdma0.pcapng")
[ $(((size - empty) % 180)) = 0 ] || fail "urdma0.pcapng has $size bytes and ends in the middle of a packet"
tail -n 1 "$out/faults.log" | grep -q '}$' || fail "faults.log ends in the middle of a line"

# A disk that becomes full.
out=$dir/tmpfs
mkdir "$out"
if mount -t tmpfs -o size=64k none "$out" 2>/dev/null; then
	trap 'umount "$dir/tmpfs"; rm -rf "$dir"' EXIT
	lossy "$out" --trace pcap
	grep -q '/urdma0.pcapng could not be written whole: No space left' "$dir/err" || fail "it says: $(cat "$dir/err")"
else
	echo "no file systems can be mounted here: skipped the disk that becomes full"
fi
exit $failed
