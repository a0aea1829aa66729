#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The launcher's own tests, on guests without NICs: exit status, output, time-out, panic, bad
# options. A failure means that a script cannot trust what ./urdma says.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export URDMA_NO_BUILD=1
bad=0

# expect NAME STATUS [options] -- COMMAND: run it, its streams go to $tmp/out and $tmp/err.
expect() {
	local name=$1 want=$2 got=0 start=$SECONDS
	shift 2
	rm -rf "$tmp/results"
	"$top/urdma" run --nics 0 --out "$tmp/results" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
	if [ "$got" != "$want" ]; then
		echo "FAIL: $name: status $got, not $want"
		tail -n 20 "$tmp/err"
		bad=1
	else
		echo "ok: $name ($((SECONDS - start)) s)"
	fi
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

mkdir "$tmp/share"
echo there >"$tmp/share/in"
boot=$SECONDS
# shellcheck disable=SC2016  # for the guest's shell
expect "status, output, share" 7 --share "$tmp/share" -- bash -c \
	'echo "a  b" "$0"; echo e >&2; cat /share/in; echo back >/share/out; seq 100000 | tail -n 1; exit 7' 'q"uo$te'
boot=$((SECONDS - boot))
# shellcheck disable=SC2016  # so it is meant
printf '%s\n' 'a  b q"uo$te' there 100000 >"$tmp/want"
check "standard output" diff "$tmp/want" "$tmp/out"
check "standard error apart" grep -qx e "$tmp/err"
check "written through /share" grep -qx back "$tmp/share/out"
check "summary" jq -e '.exit_status == 7 and .error == null and .kernel_complaints == []' \
	"$tmp/results/summary.json"
check "the console's log" grep -q 'Linux version' "$tmp/results/console.log"

# The killed `on` has to take its command in guest 1 along.
# shellcheck disable=SC2016  # for the guest's shell
expect "two guests" 3 --hosts 2 -- bash -c '
	test "$(on 1 hostname)" = host1 || exit 10
	on 1 sh -c "exit 4"
	test $? = 4 || exit 11
	sleeps() { for _ in $(seq 100); do test "$(on 1 pgrep -c sleep)" = "$1" && return 0; sleep 0.1; done; return 1; }
	on 1 sleep 600 &
	sleeps 1 || exit 12
	kill $!
	sleeps 0 || exit 13
	exit 3'
check "the second console's log" grep -q 'Linux version' "$tmp/results/console-1.log"

# The time-out includes the boot.
expect "a command that hangs" 124 --timeout $((2 * boot + 10)) -- sleep 1000
check "says so" grep -q 'time-out' "$tmp/err"
check "with the console's tail" grep -q 'urdma-guest: up' "$tmp/err"

expect "a panic" 125 --timeout 300 -- bash -c 'echo c >/proc/sysrq-trigger; sleep 1000'
check "says so" grep -q 'kernel panicked' "$tmp/err"
check "with the console's tail" grep -q 'sysrq triggered crash' "$tmp/err"
check "in the summary" jq -e '.exit_status == 125 and (.kernel_complaints | length > 0)' \
	"$tmp/results/summary.json"

expect "a guest that goes away" 125 --timeout 300 -- busybox poweroff -f
URDMA_MEMORY=40 expect "a guest that cannot boot" 125 --timeout 300 -- true

cosim=$tmp/no-cosim
printf '#!/bin/sh\necho no such luck >&2\nexit 1\n' >"$cosim"
chmod +x "$cosim"
URDMA_COSIM=$cosim expect "a simulator that does not start" 125 --nics 2 -- true
check "says why" grep -q 'no such luck' "$tmp/err"

# A simulator that says what it was called with.
printf '#!/bin/sh\nprintf "%%s " "$@" >"%s/args"\nexit 1\n' "$tmp" >"$cosim"
URDMA_COSIM=$cosim expect "options of the wire" 125 --nics 2 --rate 25.5 --delay 1000 --loss 1 --dup=0.25% \
	--reorder 2 --corrupt 0 --ecn 100 --seed 7 --fault drop,side=0,psn=3-5 --fault=corrupt,byte=-1,p=0.5% -- true
check "reach the simulator" grep -q -e "--rate 25.5 --delay 1000 --loss 1 --dup 0.25 --reorder 2 --corrupt 0 --ecn 100 \
--seed 7 --fault drop,side=0,psn=3-5 --fault corrupt,byte=-1,p=0.5% --out" "$tmp/args"

# joined NAME WORDS [options]: WORDS are among the simulator's options.
joined() {
	local name=$1 words=$2
	shift 2
	URDMA_COSIM=$cosim expect "$name" 125 "$@" -- true
	check "$name: the simulator's options" grep -q -e "$words" "$tmp/args"
}
joined "three NICs on a switch" "--switch 0,1,2 " --nics 3 --switch
joined "two hosts on a switch" "--switch 0,1,2,3 " --nics 2 --hosts 2 --switch
joined "two hosts, wired" "--wire 0-2 --wire 1-3 " --nics 2 --hosts 2
joined "a NIC and a port" "--port t=tap:x --wire 0-t " --nics 1 --port t=tap:x
joined "a NIC and a port on a switch" "--port t=tap:x --switch 0,t " --nics 1 --port t=tap:x --switch
joined "NICs and ports" "--port t=tap:x --port u=tap:y --switch 0,1,t,u " --nics 2 --port t=tap:x --port=u=tap:y
joined "a peer" "--port peer=stream:unix:[^ ]*,listen --wire 0-peer " --nics 1 --peer rxe
joined "a peer and NICs" "--switch 0,1,peer " --nics 2 --peer rxe
joined "a control socket" "--control $tmp/c " --nics 2 --control "$tmp/c"

# refused NAME WORDS [options]: status 2, and the message says WORDS.
refused() {
	local name=$1 words=$2
	shift 2
	expect "$name" 2 --nics 2 "$@" -- true
	check "$name: says why" grep -q -e "$words" "$tmp/err"
}
refused "a rate that is none" 'not a number of Gb/s' --rate fast
refused "a rate of nothing" 'not a number of Gb/s' --rate 0
refused "a delay below a cycle" 'not a number of nanoseconds' --delay 3
refused "a delay with a point" 'not a number of nanoseconds' --delay 1.5
for option in --loss --dup --reorder --corrupt --ecn; do
	refused "$option beyond all" "$option: '101' is not a number of percent" "$option" 101
	refused "$option below nothing" "$option: '-1' is not a number of percent" "$option" -1
	refused "$option of words" "$option: 'some' is not a number of percent" "$option=some"
done
refused "a seed that is none" 'not a number' --seed x
refused "an unknown fault" 'not of the form' --fault lose
refused "a fault without values" 'not of the form' --fault drop,psn
refused "loss without a wire" 'there is no wire' --nics 0 --loss 1
refused "loss on a wire that ends nowhere" 'there is no wire' --nics 1 --loss 1
refused "a switch without NICs" 'need a NIC' --nics 0 --switch
refused "a port without a name" 'not of the form NAME' --port tap:x
# What only the simulator can tell comes from it.
printf '#!/bin/sh\necho "urdma-cosim: --fault drop,ns=5: that is wrong" >&2\nexit 2\n' >"$cosim"
URDMA_COSIM=$cosim refused "a fault that makes no sense" "urdma: --fault drop,ns=5: that is wrong" --fault drop,ns=5

expect "an unknown option" 2 --no-such -- true
expect "an unknown peer" 2 --peer cable -- true
expect "no number" 2 --timeout soon -- true
expect "no command" 2
expect "no such directory" 2 --share "$tmp/missing" -- true
expect "a wire with one end" 2 --nics 3 -- true

exit $bad
