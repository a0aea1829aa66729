#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/waves.sh [--before NS] [--window N:FROM] TEST [ARGUMENT...]: repeats a failing block or engine test, and writes waves
# of the last NS nanoseconds (20000) before the failure, as FST files in out/waves/TEST. ARGUMENTs go to the test's program,
# after those of ctest. --window: for a passing test, writes waves of the Nth model or rig from FROM ns on.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=waves
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
build=$top/build/waves
before=20000
window=

usage() {
	say "usage: make waves TEST=NAME [ARGS='ARGUMENT...'] [BEFORE=NS] [WINDOW=N:FROM]"
	say "$*"
	exit 2
}
while [ $# -gt 0 ]; do
	case $1 in
	--before)
		[[ ${2-} =~ ^[0-9]{1,12}$ ]] || usage "BEFORE: '${2-}' is not a number of ns"
		before=$((10#$2))
		shift 2
		;;
	--window)
		[[ ${2-} =~ ^[0-9]{1,6}:[0-9]{1,15}$ ]] || usage "WINDOW: '${2-}' is not N:FROM"
		window=$2
		shift 2
		;;
	-*) usage "unknown option '$1'" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || usage "TEST is missing: the name of a block or engine test, as ctest lists it"
name=$1
shift

"$top/tools/setup.sh" test
# ctest prints no command for a program that is not built.
case $name in
rtl.*.full) usage "'$name' runs many seeds: take ${name%.full}, with SEED=n" ;;
rtl.*) target=${name#rtl.} ;;
engine.skip.* | engine.threads.* | engine.capture) usage "'$name' runs more than one program: take another test" ;;
engine.*)
	target=${name#engine.}
	target=test_${target%.full}
	;;
*) usage "'$name' is neither a block test (rtl.NAME) nor an engine test (engine.NAME)" ;;
esac
"$top/tools/host-build.sh" --waves verilated_runtime
[ "$(ninja -C "$build" -t query "$target" 2>/dev/null | wc -l)" -gt 0 ] ||
	usage "there is no test '$name'; ctest --test-dir build -N lists them"
"$top/tools/host-build.sh" --waves "$target"
mapfile -t command < <(ctest --test-dir "$build" --show-only=json-v1 |
	jq -r --arg name "$name" '.tests[] | select(.name == $name) | .command[]')
[ ${#command[@]} -gt 0 ] || usage "there is no test '$name'; ctest --test-dir build -N lists them"
command+=("$@")
out=$top/out/waves/$name
rm -rf "$out"
mkdir -p "$out"
cd "$build"
export CMOCKA_TEST_ABORT=1

if [ -z "$window" ]; then
	say "[waves] running ${command[*]} ..."
	if URDMA_TEST_WHERE=$out/where "${command[@]}" >"$out/output.log" 2>&1; then
		die "$name passes: there is no failure to look at. WINDOW=N:FROM shows any moment of it"
	fi
	[ -s "$out/where" ] || {
		tail -n 20 "$out/output.log" >&2
		die "$name fails outside of any model; $out/output.log has all that it said"
	}
	IFS=: read -r n ns <"$out/where"
	say "[waves] it fails at $ns ns of model or rig $n"
	window=$n:$((ns > before ? ns - before : 0))
fi
status=0
URDMA_TEST_WAVES=$out URDMA_TEST_WAVES_FROM=$window "${command[@]}" >"$out/output.log" 2>&1 || status=$?
files=("$out"/*.fst)
[ -s "${files[0]}" ] || die "no waves: model or rig ${window%%:*} never came to ${window##*:} ns; see $out/output.log"
say "[waves] status $status, from ${window##*:} ns on; $out/output.log has what the test said"
for file in "${files[@]}"; do
	# A block's model has no view.
	if [ -e "${file%.fst}.gtkw" ]; then
		say "  $(view_command "$file")"
	else
		say "  $file"
	fi
done
