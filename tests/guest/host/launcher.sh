#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The launcher's own tests, on guests without NICs: exit status, output, time-out, panic, bad
# options. A failure means that a script cannot trust what ./urdma says.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export URDMA_NO_BUILD=1
bad=0
# QEMU's options end at a comma; ours do not.
results=$tmp/re,sults

# launch NAME STATUS [options] -- COMMAND: run it, its streams go to $tmp/out and $tmp/err.
launch() {
	local name=$1 want=$2 got=0 start=$SECONDS
	shift 2
	rm -rf "$results"
	"$top/urdma" run --out "$results" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
	if [ "$got" != "$want" ]; then
		echo "FAIL: $name: status $got, not $want"
		tail -n 20 "$tmp/err"
		bad=1
	else
		echo "ok: $name ($((SECONDS - start)) s)"
	fi
}

# The same without NICs, if the options do not ask for some.
expect() {
	launch "$1" "$2" --nics 0 "${@:3}"
}

check() {
	local name=$1
	shift
	if ! "$@" >"$tmp/check"; then
		cat "$tmp/check"
		echo "FAIL: $name"
		bad=1
	fi
}

# A guest that never comes up has the time of --timeout for it, also if that is more than the usual 120 s. Meanwhile the other
# tests run.
printf '#!/bin/sh\nexec sleep 600\n' >"$tmp/no-boot"
chmod +x "$tmp/no-boot"
URDMA_QEMU=$tmp/no-boot "$top/urdma" run --out "$tmp/no-boot.out" --nics 0 --accel tcg --timeout 125 -- true \
	>/dev/null 2>"$tmp/no-boot.err" </dev/null &
no_boot=$!

mkdir "$tmp/sh,are"
echo there >"$tmp/sh,are/in"
boot=$SECONDS
# shellcheck disable=SC2016  # for the guest's shell
expect "status, output, share" 7 --share "$tmp/sh,are" -- bash -c \
	'echo "a  b" "$0"; echo e >&2; cat /share/in; echo back >/share/out; seq 100000 | tail -n 1; exit 7' 'q"uo$te'
boot=$((SECONDS - boot))
check "nothing is said to be removed" test "$(grep -c removing "$tmp/err")" = 0
# shellcheck disable=SC2016  # so it is meant
printf '%s\n' 'a  b q"uo$te' there 100000 >"$tmp/want"
check "standard output" diff "$tmp/want" "$tmp/out"
check "standard error apart" grep -qx e "$tmp/err"
check "written through /share" grep -qx back "$tmp/sh,are/out"
check "summary" jq -e '.exit_status == 7 and .error == null and .kernel_complaints == []' \
	"$results/summary.json"
eval "words=($(jq -r .command "$results/summary.json"))"
# shellcheck disable=SC2016  # so it is meant
check "the command, as a shell takes it" test "${#words[@]}, ${words[1]}, ${words[3]}" = '4, -c, q"uo$te'
check "when it began, and the version" jq -e '(.began | fromdate > now - 600) and (.version | test("^[0-9]+[.][0-9]"))' \
	"$results/summary.json"
check "the console's log" grep -q 'Linux version' "$results/console.log"
# Under TCG the guest's kernel is told how fast its counter is, and does not measure that.
if jq -e '.accel == "tcg"' "$results/summary.json" >/dev/null && khz=$("$top/build/tools/tsc-khz"); then
	# shellcheck disable=SC2016  # of awk
	check "the guest's clock" awk -v khz="$khz" '
		function good(x) { return x / khz > 0.999 && x / khz < 1.001 }
		sub(/.*tsc_early_khz=/, "") { told = $1 }
		sub(/.*tsc: Detected /, "") { detected = $1 * 1000 }
		END {
			print told, detected, khz
			exit good(told) && good(detected) ? 0 : 1
		}' "$results/console.log"
fi

# Again into the same directory: an earlier run's files go, and are named; others stay.
echo mine >"$results/urdma7.pcapng"
echo mine >"$results/notes"
"$top/urdma" run --nics 0 --out "$results" -- true >"$tmp/out" 2>"$tmp/err" </dev/null || { echo "FAIL: a second run"; bad=1; }
check "says what it removes" grep -q 'removing the results of an earlier run in .*: summary.json console.log$' "$tmp/err"
check "the earlier run's summary is gone" jq -e '.command == "true"' "$results/summary.json"
check "other files stay" diff <(cat "$results/urdma7.pcapng" "$results/notes") <(printf 'mine\nmine\n')
# A FIFO of a reader that followed a run which was killed goes, too.
echo urdma0.live >>"$results/.urdma-run"
mkfifo "$results/urdma0.live"
# Meanwhile the directory is this run's alone.
"$top/urdma" run --nics 0 --out "$results" -- sleep 5 >"$tmp/first" 2>&1 </dev/null &
first=$!
until grep -q 'removing the results' "$tmp/first"; do
	kill -0 $first 2>/dev/null || break
	sleep 0.05
done
got=0
"$top/urdma" run --nics 0 --out "$results" -- true >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
check "two runs in one directory: the second is refused" test $got = 2
check "says why" grep -q "a run is under way in '$results': name another directory" "$tmp/err"
wait $first
check "the first goes on" test $? = 0
check "the FIFO is gone" test ! -e "$results/urdma0.live"
check "has its results" jq -e '.command == "sleep 5"' "$results/summary.json"

# A reader that is late gets all, though the guest has ended its work long before; what the command leaves running
# holds up nothing. It is less than the 4 MB that QEMU keeps for a port: only the launcher's word keeps the guest.
"$top/urdma" run --nics 0 --out "$results" -- bash -c 'seq 500000; sleep 9999 & sleep 9999 2>&1 >/dev/null &' \
	2>"$tmp/err" </dev/null | { sleep 30; cat >"$tmp/out"; }
check "a late reader: status" test "${PIPESTATUS[0]}" = 0
check "has everything" diff <(seq 500000) "$tmp/out"

# Output to a full disk is told. A reader that goes away is none.
got=0
"$top/urdma" run --nics 0 --out "$results" -- seq 200000 >/dev/full 2>"$tmp/err" </dev/null || got=$?
check "output to a full disk: status" test $got = 125
check "says so" grep -q 'could not be written whole: standard output: No space left' "$tmp/err"
got=0
"$top/urdma" run --nics 0 --out "$results" -- seq 200000 2>"$tmp/err" </dev/null | head -n 1 >"$tmp/out"
check "a reader that goes away" test "${PIPESTATUS[0]}, $(cat "$tmp/out")" = '0, 1'

# A standard input that is closed, a umask that keeps others out, and a CDPATH: users of the guest that are not root
# read its files, and the results go where they should.
mkdir -p "$tmp/elsewhere/closed"
got=0
(
	cd "$tmp" || exit
	umask 077
	export CDPATH=$tmp/elsewhere
	# shellcheck disable=SC2016  # for the guest's shell
	"$top/urdma" run --nics 0 --out closed -- su nobody -s /bin/sh -c 'id -un; cat /opt/urdma/tests/common.sh' \
		>"$tmp/out" 2>"$tmp/err" <&-
) || got=$?
check "a closed standard input" test $got = 0
check "what is not root reads the guest's files" diff <(echo nobody; cat "$top/tests/guest/common.sh") "$tmp/out"
check "results where they were asked for" jq -e '.exit_status == 0' "$tmp/closed/summary.json"
check "and not in CDPATH" test -z "$(ls "$tmp/elsewhere/closed")"

# Files that no run has left there are not removed, and not written over.
rm "$results/.urdma-run"
got=0
"$top/urdma" run --nics 0 --out "$results" -- true >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
check "a directory with foreign files is refused" test $got = 2
check "names one" grep -q "has a file summary.json that no run" "$tmp/err"
check "touches none" jq -e '.command == "seq 200000"' "$results/summary.json"

# A disk too small for the console: the guest's work goes on, the run fails and says why.
full=$tmp/full
mkdir "$full"
if mount -t tmpfs -o size=12k none "$full" 2>/dev/null; then
	trap 'umount "$tmp/full"; rm -rf "$tmp"' EXIT
	got=0
	URDMA_CACHE=$full "$top/tools/setup.sh" run >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
	check "a set-up without space is refused" test $got = 1
	check "says how much is needed, and where" grep -q "needs about [0-9]* MB in the cache $full, where [0-9]* MB are free" "$tmp/err"
	got=0
	"$top/urdma" run --nics 0 --out "$full" -- echo went >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
	check "a full disk: status" test $got = 125
	check "a full disk: the command ran" grep -qx went "$tmp/out"
	check "a full disk: says what is lost" grep -q "could not be written whole: console.log in $full" "$tmp/err"
	check "a full disk: summary.json, too" grep -q 'summary.json could not be written' "$tmp/err"
	TMPDIR=$full expect "no room for the guest's first file system" 125 -- true
	check "says where" grep -q "the launcher could not go on .*; is there room in $full?" "$tmp/err"
else
	echo "skipped: no file systems can be mounted here"
fi

# The killed `on` has to take its command in guest 1 along.
# shellcheck disable=SC2016  # for the guest's shell
expect "two guests" 3 --hosts 2 -- bash -c '
	test "$(on 1 hostname)" = host1 || exit 10
	on 1 sh -c "exit 4"
	test $? = 4 || exit 11
	sleeps() { for _ in $(seq 1200); do test "$(on 1 pgrep -c sleep)" = "$1" && return 0; sleep 0.1; done; return 1; }
	on 1 sleep 600 &
	sleeps 1 || exit 12
	kill $!
	sleeps 0 || exit 13
	exit 3'
check "the second console's log" grep -q 'Linux version' "$results/console-1.log"

# The time-out includes the boot.
expect "a command that hangs" 124 --timeout $((3 * boot + 30)) -- sleep 1000
check "says so" grep -q 'time-out' "$tmp/err"
check "with the console's tail" grep -q 'urdma-guest: up' "$tmp/err"

expect "a panic" 125 --timeout 300 -- bash -c 'echo c >/proc/sysrq-trigger; sleep 1000'
check "says so" grep -q 'kernel panicked' "$tmp/err"
check "with the console's tail" grep -q 'sysrq triggered crash' "$tmp/err"
check "in the summary" jq -e '.exit_status == 125 and (.kernel_complaints | length > 0)' \
	"$results/summary.json"

expect "a guest that goes away" 125 --timeout 300 -- busybox poweroff -f
URDMA_MEMORY=40 expect "a guest that cannot boot" 125 --timeout 300 -- true

cosim=$tmp/no-cosim
printf '#!/bin/sh\necho no such luck >&2\nexit 1\n' >"$cosim"
chmod +x "$cosim"
URDMA_COSIM=$cosim expect "a simulator that cannot be run" 125 --nics 2 -- true
check "says why" grep -q 'no such luck' "$tmp/err"
# shellcheck disable=SC2016  # for its shell
printf '#!/bin/sh\n[ "$1" != --check ] || exit 0\necho no such luck >&2\nexit 1\n' >"$cosim"
URDMA_COSIM=$cosim expect "a simulator that does not start" 125 --nics 2 -- true
check "says why" grep -q 'no such luck' "$tmp/err"

# Stand-ins of both. Of the simulator: it says $1, and does $2. Of QEMU: it does $3.
stand_ins() {
	# shellcheck disable=SC2016  # for its shell
	printf '#!/bin/sh\n[ "$1" != --check ] || exit 0\necho ready\nsleep 1\necho "%s" >&2\n%s\n' "$1" "$2" >"$cosim"
	printf '#!/bin/sh\n%s\n' "$3" >"$tmp/qemu"
	chmod +x "$tmp/qemu"
}
# lost NAME WORDS [options]: with the stand-ins, ends with status 125 long before the time-out, and the last message is WORDS.
lost() {
	local name=$1 words=$2 start=$SECONDS
	shift 2
	URDMA_COSIM=$cosim URDMA_QEMU=$tmp/qemu launch "$name" 125 --nics 2 --accel tcg --timeout 100 "$@" -- true
	check "$name: says why" grep -q -e "^urdma: error: $words\$" "$tmp/err"
	check "$name: at once" test $((SECONDS - start)) -lt 60
}
for why in 'client gone: Broken pipe' 'client gone' 'connection closed: no message'; do
	stand_ins "vfio-user $tmp/nic1: $why" 'exec sleep 600' 'exec sleep 600'
	lost "QEMU loses its NIC ($why)" "QEMU no longer talks to a NIC, .*; the simulator said: vfio-user .*/nic1: $why"
done
stand_ins working "kill -KILL \$\$" 'exec sleep 600'
lost "a simulator that is killed" 'the simulator was killed by SIGKILL'
stand_ins working 'exit 3' 'exec sleep 600'
lost "a simulator that ends" 'the simulator ended with status 3'
stand_ins working 'exec sleep 600' "sleep 1; kill -KILL \$\$"
lost "a QEMU that is killed" 'the guest ended: QEMU was killed by SIGKILL'
stand_ins working 'exec sleep 600' 'case "$*" in *urdma-host1*) sleep 1; kill -KILL $$ ;; esac; exec sleep 600'
lost "the second QEMU is killed" 'guest 1 ended before the run did: its QEMU was killed by SIGKILL' --hosts 2

# What the launcher has started ends with it, also when it is killed.
# shellcheck disable=SC2016  # for its shell
stand_ins working 'exec sleep 600' 'echo $$ >"'"$tmp"'/qemu.pid"; exec sleep 600'
URDMA_COSIM=$cosim URDMA_QEMU=$tmp/qemu "$top/urdma" run --out "$tmp/killed" --nics 2 --accel tcg -- true \
	>"$tmp/out" 2>"$tmp/err" </dev/null &
killed=$!
for _ in $(seq 600); do
	[ ! -s "$tmp/qemu.pid" ] || break
	sleep 0.1
done
kill -KILL $killed
wait $killed 2>/dev/null
for _ in $(seq 100); do
	kill -0 "$(cat "$tmp/qemu.pid")" 2>/dev/null || break
	sleep 0.1
done
check "QEMU ends with a launcher that is killed" test ! -e "/proc/$(cat "$tmp/qemu.pid")"

# A simulator that says what it was called with, first to check it, then to run.
# shellcheck disable=SC2016  # for its shell
printf '#!/bin/sh\nprintf "%%s " "$@" >>"%s/args"\necho >>"%s/args"\n[ "$1" = --check ]\n' "$tmp" "$tmp" >"$cosim"
URDMA_COSIM=$cosim expect "options of the simulator" 125 --rate 25.5 --loss -1 --dup=0.25% --nics 2 --no-skip \
	--pcie-gen 4 --timeout 100 --fault drop,side=0,psn=3-5 --unknown-here=x --no-skip stray --last -- true
for how in '--check --control' '--control'; do
	check "reach the simulator: $how" grep -q -e "^$how .*--trace pcap --out [^ ]* --rate 25.5 --loss -1 --dup=0.25% --no-skip \
--pcie-gen 4 --fault drop,side=0,psn=3-5 --unknown-here=x --no-skip stray --last \$" "$tmp/args"
done

# joined NAME WORDS [options]: WORDS are among the simulator's options.
joined() {
	local name=$1 words=$2
	shift 2
	rm "$tmp/args"
	URDMA_COSIM=$cosim expect "$name" 125 "$@" -- true
	check "$name: the simulator's options" grep -q -e "$words" "$tmp/args"
}
joined "three NICs on a switch" "--switch 0,1,2 " --nics 3 --switch
joined "two hosts on a switch" "--nics-of-hosts 2,2 --switch 0,1,2,3 " --nics 2 --hosts 2 --switch
joined "two hosts, wired" "--nics-of-hosts 2,2 --wire 0-2 --wire 1-3 " --nics 2 --hosts 2
joined "a NIC and a port" "--port t=tap:x --wire 0-t " --nics 1 --port t=tap:x
joined "a NIC and a port on a switch" "--port t=tap:x --switch 0,t " --nics 1 --port t=tap:x --switch
joined "NICs and ports" "--port t=tap:x --port u=tap:y --switch 0,1,t,u " --nics 2 --port t=tap:x --port=u=tap:y
joined "a peer" "--port peer=stream:unix:[^ ]*,listen --wire 0-peer " --nics 1 --peer rxe
joined "a peer and NICs" "--switch 0,1,peer " --nics 2 --peer rxe
joined "a peer beside the NICs of one of two hosts" "--switch 0,1,peer " --nics 1 --hosts 2 --peer rxe
for k in 0 1; do
	joined "host $k is the peer" "--control [^ ]* --socket [^ ]*/nic0 --nics-of-hosts $k,$((1 - k)) --port peer=stream:unix:[^ ]*,listen --wire 0-peer " \
		--nics 1 --hosts 2 --peer rxe:$k
done
joined "a host is the peer of two NICs" "/nic0 --socket [^ ]*/nic1 --nics-of-hosts 2,0 --port peer=[^ ]* --switch 0,1,peer " \
	--nics 2 --hosts 2 --peer rxe:1
joined "a control socket" "--control $tmp/c " --nics 2 --control "$tmp/c"

# Hosts and NICs from a file. The simulator checks it, and then says what it was called with.
# shellcheck disable=SC2016  # for its shell
printf '#!/bin/sh\n[ "$1" != --check ] || exec "%s" "$@"\nprintf "%%s " "$@" >"%s/args"\nexit 1\n' \
	"$top/build/cosim/urdma-cosim" "$tmp" >"$cosim"
system() {
	URDMA_COSIM=$cosim launch "$@" -- true
}
systems=$top/examples/systems
system "machines from a file" 125 --system "$systems/slow-slot.json" --mps 512
check "reach the simulator" grep -q -e '^--control [^ ]* --system [^ ]*/system.json --socket [^ ]*/nic0 --socket [^ ]*/nic1 --trace pcap --out [^ ]* --mps 512 $' \
	"$tmp/args"
check "its console's name is kept for guest 1" grep -qx console-1.log "$results/.urdma-run"
# The results may go where the file is.
mkdir "$tmp/earlier"
echo system.json >"$tmp/earlier/.urdma-run"
cp "$systems/two-hosts.json" "$tmp/earlier/system.json"
got=0
URDMA_COSIM=$cosim "$top/urdma" run --out "$tmp/earlier" --system "$tmp/earlier/system.json" -- true >"$tmp/out" 2>"$tmp/err" || got=$?
check "a run again, in place of the first" test $got = 125
check "removes its file" grep -q 'removing the results of an earlier run in .*: system.json$' "$tmp/err"
system "more hosts than there can be" 2 --system "$systems/four-hosts.json"
check "says so" grep -q 'four-hosts.json has 4 hosts, and a run has 2 guests at most' "$tmp/err"
system "no such file" 2 --system "$tmp/nothing"
check "says so" grep -q "'$tmp/nothing' is not a file" "$tmp/err"
system "a pipe for a file" 2 --system <(cat "$systems/slow-slot.json")
check "says so" grep -q "is not a file" "$tmp/err"
for option in --nics=2 --hosts=1 --switch --port=a=tap:x --peer=rxe; do
	system "a file and $option" 2 --system "$systems/two-hosts.json" "$option"
	check "says so" grep -q -e "${option%%=*} and --system exclude each other" "$tmp/err"
done
echo '{ "hosts": [ { "nics": [ { "mps": "x" } ] } ] }' >"$tmp/bad.json"
system "a mistake in the file" 2 --system "$tmp/bad.json"
check "tells its place" grep -q "^urdma: $tmp/bad.json: hosts\[0\].nics\[0\].mps: has to be a number, and is a string" "$tmp/err"
system "an option that ends the simulator" 2 --system "$systems/two-hosts.json" --help-settings
check "says so" grep -q 'the simulator does not run' "$tmp/err"

# Runs that begin in one second have directories of their own, where they were asked for.
(
	# shellcheck source=tools/results.sh
	. "$top/tools/results.sh"
	for _ in 1 2 3; do
		new_results "$tmp/my_results"
	done
) >"$tmp/names"
check "directories of one second" test "$(sort -u "$tmp/names" | grep -c "^$tmp/my_results/")" = 3
check "the latest of them" test "$(readlink -f "$tmp/my_results/latest")" = "$(readlink -f "$(tail -n 1 "$tmp/names")")"

# refused NAME WORDS [options]: status 2, and the message says WORDS.
refused() {
	local name=$1 words=$2
	shift 2
	expect "$name" 2 --nics 2 "$@" -- true
	check "$name: says why" grep -q -e "$words" "$tmp/err"
}
# What the simulator checks it says before anything boots, whatever option it is.
refused "a rate that is none" "--rate 'fast': not a rate" --rate fast
refused "too many digits" "--rate '25.1234': more than three digits" --rate 25.1234
refused "a trace of nothing" "--trace '': it is none, or a list of" --trace ''
refused "an unknown trace" "--trace 'all': it is none, or a list of" --trace=all
refused "a trigger of nothing" "--trigger 'error': nothing is written around it" --trigger error
refused "a delay below a cycle" "--delay '3': not a number" --delay 3
refused "loss below nothing" "--loss '-1': not a number of percent" --loss -1
refused "an unknown fault" 'is not drop' --fault lose
refused "a fault that makes no sense" "--fault 'drop,ns=5'" --fault drop,ns=5
refused "a generation that is none" "--pcie-gen '9': not a number from 1 to 5" --pcie-gen 9
refused "an option without its value" "option '--mps' requires an argument" --mps --timeout 5
refused "a word too many" "unexpected argument 'stray'" --no-skip stray
refused "an option of nobody" "unrecognized option '--no-such'" --no-such
refused "an option cut short" "unknown option '--contr'" --contr "$tmp/c"
refused "an option that ends the simulator" 'the simulator does not run' --help-settings
refused "loss without a simulator" 'there is no simulator' --nics 0 --loss 1
refused "loss on a wire that ends nowhere" 'no wire for the faults' --nics 1 --loss 1
refused "a socket of its own" 'not for a run' --socket "$tmp/s"
check "nothing was made" test ! -e "$results"
refused "a switch without NICs" 'need a NIC' --nics 0 --switch
refused "a port without a name" 'not of the form NAME' --port tap:x
expect "an unknown short option" 2 -x -- true
expect "no directory for results" 2 --out '' -- true
refused "an unknown peer" "--peer: 'cable' is not known: it is rxe, rxe:0 or rxe:1" --peer cable
refused "a peer in no guest" "--peer: 'rxe:2' is not known" --hosts 2 --peer rxe:2
refused "a peer in the only guest" "--peer rxe:0: a guest that is the peer needs --hosts 2" --peer rxe:0
refused "a peer of no NIC" 'need a NIC' --nics 0 --hosts 2 --peer rxe:1
expect "an unknown kernel" 2 --kernel fast -- true
expect "no number" 2 --timeout soon -- true
expect "no command" 2
expect "no such directory" 2 --share "$tmp/missing" -- true
expect "a wire with one end" 2 --nics 3 -- true

"$top/urdma" --help >"$tmp/out"
check "help has the launcher's options" grep -q -e '--packages' "$tmp/out"
check "help has the simulator's" grep -q -e '--pcie-lanes' "$tmp/out"
check "version" test "$("$top/urdma" --version)" = "urdma $("$top/build/cosim/urdma-cosim" --version | cut -d' ' -f2)"

wait $no_boot
check "a guest that does not come up: status" test $? = 124
check "says how long it had" grep -q 'the guest did not come up within 125 s' "$tmp/no-boot.err"

exit $bad
