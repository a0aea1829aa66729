#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/speed.sh [options] [COMMIT]: compares the speed of the simulator of this tree with that of another commit, or
# with itself while it records events, in CPU time for the same work. docs/performance.md describes the comparison.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=speed
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

usage() {
	cat <<-'END'
	usage: tools/speed.sh [options] [COMMIT | --events]

	Compares the speed of the simulator of this tree with that of COMMIT (default 4de8acc). COMMIT is
	built in build/speed. The loads are run by both in turn.

	  --events       compare with this tree while it records events
	  --only LOADS   which loads, by commas (default: all): write-64k write-64 pingpong-64
	                 pingpong-4096 idle
	  --rounds N     how often each is run (default 5)
	  --iters N      exchanges of a ping-pong (default 500)
	  --idle S       seconds of the load idle (default 60)
	  --output FILE  where the figures go (default speed.json)
	  --help
	END
}

bad_usage() {
	printf 'speed: %s\nTry tools/speed.sh --help\n' "$*" >&2
	exit 2
}

commit=
events=
only=write-64k,write-64,pingpong-64,pingpong-4096,idle
rounds=5
iters=500
idle=60
output=$top/speed.json
while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	--help)
		usage
		exit 0
		;;
	--events)
		events=1
		continue
		;;
	--*=*)
		value=${option#*=}
		option=${option%%=*}
		;;
	--*)
		[ $# -gt 0 ] || bad_usage "$option needs a value"
		value=$1
		shift
		;;
	*)
		[ -z "$commit" ] || bad_usage "one commit is enough: '$option'"
		commit=$option
		continue
		;;
	esac
	case $option in
	--only)
		[[ $value =~ ^(write-64k|write-64|pingpong-64|pingpong-4096|idle)(,(write-64k|write-64|pingpong-64|pingpong-4096|idle))*$ ]] ||
			bad_usage "--only: '$value' is no list of loads"
		only=$value
		;;
	--rounds | --iters | --idle)
		[[ $value =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "$option: '$value' is not a number from 1 on"
		case $option in
		--rounds) rounds=$value ;;
		--iters) iters=$value ;;
		--idle) idle=$value ;;
		esac
		;;
	--output)
		[ -n "$value" ] || bad_usage "--output: '' is no file"
		output=$value
		;;
	*) bad_usage "unknown option '$option'" ;;
	esac
done
[ -z "$events" ] || [ -z "$commit" ] || bad_usage "--events compares this tree with itself, not with '$commit'"
commit=${commit:-4de8acc}
IFS=, read -ra loads <<<"$only"

wanted() {
	[[ " ${loads[*]} " =~ \ $1 ]]
}

# ---- both trees, built ---------------------------------------------------------------------

# The other side's tree and name.
take_commit() {
	if ! hash=$(git -C "$top" rev-parse --verify --quiet --short=12 "$commit^{commit}"); then
		if [ "$(git -C "$top" rev-parse --is-shallow-repository 2>/dev/null)" = true ]; then
			die "there is no commit '$commit' in this clone, which is a shallow one: git fetch --unshallow"
		fi
		die "there is no commit '$commit'"
	fi
	other=$top/build/speed/$hash
	if [ ! -e "$other/urdma" ]; then
		say "[speed] $hash goes to build/speed"
		mkdir -p "$top/build/speed"
		rm -rf "$other" "$other.part"
		mkdir "$other.part"
		# Not only through a pipe, so that a failure of git is detected.
		git -C "$top" archive "$hash" >"$other.part/tar" || die "$hash cannot be unpacked"
		tar -x -C "$other.part" -f "$other.part/tar"
		rm "$other.part/tar"
		mv "$other.part" "$other"
	fi
}
if [ -z "$events" ]; then
	take_commit
else
	hash=events other=$top
fi

# Both simulators are linked with the benchmark of the other commit, because this one's has other amounts of work.
bench_here=$top/build/tests/bench/urdma-bench-speed
bench_there=$other/build/tests/bench/urdma-bench
[ -z "$events" ] || bench_here=$bench_there
host_here=() host_there=()
if wanted write; then
	host_here+=("${bench_here##*/}")
	host_there+=(urdma-bench)
fi
guests=
if wanted pingpong || wanted idle; then
	guests=1
	host_here+=(urdma-cosim)
	host_there+=(urdma-cosim)
fi
"$top/tools/setup.sh" run
if [ -z "$events" ]; then
	"$other/tools/setup.sh" run
	say "[speed] building $hash"
	"$other/tools/host-build.sh" "${host_there[@]}" || die "$hash cannot be built"
fi
if [ -z "$events" ] && wanted write; then
	mkdir -p "$top/build"
	if ! cmake -S "$top" -B "$top/build" -G Ninja -DURDMA_SPEED_BENCH="$other/tests/bench" >"$top/build/speed/cmake.log" 2>&1; then
		tail -n 20 "$top/build/speed/cmake.log" >&2
		die "the build of this tree cannot be configured"
	fi
fi
say "[speed] building this tree"
"$top/tools/host-build.sh" "${host_here[@]}" ||
	die "this tree cannot be built, or not with the benchmark of $hash: its interfaces may differ (--only takes other loads)"
if [ -n "$guests" ]; then
	if [ -z "$events" ]; then
		"$other/tools/guest-build.sh" || die "what $hash has for guests cannot be built"
	fi
	"$top/tools/guest-build.sh"
fi

tmp=$(mktemp -d "${TMPDIR:-/tmp}/urdma-speed.XXXXXX")
run_pid=
# shellcheck disable=SC2317,SC2329  # called by the trap
clean_up() {
	local status=$?
	trap - EXIT
	if [ -n "$run_pid" ]; then
		kill "$run_pid" 2>/dev/null || true
		wait "$run_pid" 2>/dev/null || true
	fi
	rm -rf "$tmp"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- loads ---------------------------------------------------------------------------------

# note SIDE LOAD UNIT VALUE: records one figure.
note() {
	jq -cn --arg side "$1" --arg load "$2" --arg unit "$3" --argjson value "$4" \
		'{side: $side, load: $load, unit: $unit, value: $value}' >>"$tmp/figures"
}

# bench SIDE LOAD ROW PACKETS: runs a row of the benchmark whose messages have PACKETS packets.
bench() {
	local side=$1 program=(env -u URDMA_TEST_EVENTS "$bench_here") received cpu
	local TIMEFORMAT='%U %S'
	if [ "$side" = there ]; then
		program=("$bench_there")
		[ -z "$events" ] || program=(env "URDMA_TEST_EVENTS=$tmp/events.urdma" "$bench_there")
	fi
	# Its verdict on the figure is ignored here.
	{ time "${program[@]}" --verbose --only "$3" >"$tmp/rows" 2>"$tmp/err" || true; } 2>"$tmp/time"
	# Data packets received by side 1: both sides simulate about the same number.
	received=$(sed -n 's/^side 1:.* rx_rdma_pkts=\([0-9]*\).*/\1/p' "$tmp/err" | awk '{ n += $1 } END { print n + 0 }')
	if [ "$received" = 0 ] || ! grep -q "^$3" "$tmp/rows"; then
		cat "$tmp/rows" "$tmp/err" >&2
		die "the row '$3' was not measured by ${program[*]}"
	fi
	cpu=$(awk '{ print $1 + $2 }' "$tmp/time")
	note "$side" "$2" "CPU ms per message" "$(awk -v c="$cpu" -v p="$received" -v n="$4" 'BEGIN { print c * 1000 * n / p }')"
}

# cosim_pid LAUNCHER: the simulator that it has started.
cosim_pid() {
	local p children
	read -ra children <"/proc/$1/task/$1/children"
	for p in "${children[@]}"; do
		if [ "$(cat "/proc/$p/comm" 2>/dev/null)" = urdma-cosim ]; then
			echo "$p"
			return
		fi
	done
	die "the simulator is not there"
}

# cpu_ms PID: user and system time of all its threads.
cpu_ms() {
	local stat fields
	# In nanoseconds, if the kernel reports it.
	if [ -r "/proc/$1/schedstat" ]; then
		cat "/proc/$1/task"/*/schedstat | awk '{ n += $1 } END { printf "%.3f\n", n / 1e6 }'
		return
	fi
	stat=$(cat "/proc/$1/stat")
	read -ra fields <<<"${stat##*) }"
	echo $(((fields[11] + fields[12]) * 1000 / $(getconf CLK_TCK)))
}

# step NAME: waits until the guest reaches this step, and prints the simulator's CPU time.
step() {
	while [ ! -e "$tmp/share/$1" ]; do
		if ! kill -0 "$run_pid" 2>/dev/null; then
			cat "$tmp/run.log" >&2
			die "the guest ended early"
		fi
		sleep 0.02
	done
	cpu_ms "$(cosim_pid "$run_pid")"
	: >"$tmp/share/$1.seen"
}

# guest SIDE: runs the loads in a guest with two NICs.
guest() {
	local side=$1 tree=$top trace=none load before after wall
	if [ "$side" = there ]; then
		tree=$other
		trace=${events:+events}
		trace=${trace:-none}
	fi
	rm -rf "$tmp/share" "$tmp/out"
	mkdir "$tmp/share"
	cp "$top/tools/speed/guest.sh" "$tmp/share/"
	URDMA_NO_BUILD=1 "$tree/urdma" run --nics 2 --timeout 3600 --trace "$trace" --out "$tmp/out" --share "$tmp/share" -- \
		bash /share/guest.sh "$iters" "$idle" "${loads[@]}" >"$tmp/run.log" 2>&1 &
	run_pid=$!
	for load in "${loads[@]}"; do
		case $load in
		pingpong-* | idle) ;;
		*) continue ;;
		esac
		before=$(step "$load.begins")
		after=$(step "$load.ends")
		if [ "$load" = idle ]; then
			note "$side" idle "CPU ms per second" "$(awk -v a="$before" -v b="$after" -v s="$idle" 'BEGIN { print (b - a) / s }')"
			continue
		fi
		# The program prints the time of all exchanges; each is two messages.
		wall=$(sed -n 's/^[0-9]* iters in \([0-9.]*\) seconds.*/\1/p' "$tmp/share/$load.log")
		[ -n "$wall" ] || { cat "$tmp/share/$load.log" >&2; die "$load: no time was told"; }
		note "$side" "$load" "CPU ms per message" "$(awk -v a="$before" -v b="$after" -v n="$iters" 'BEGIN { print (b - a) / n / 2 }')"
		note "$side" "$load" "wall ms per message" "$(awk -v s="$wall" -v n="$iters" 'BEGIN { print s * 1000 / n / 2 }')"
	done
	wait "$run_pid" || {
		cat "$tmp/run.log" >&2
		die "$tree/urdma failed"
	}
	run_pid=
}

# round SIDE
round() {
	local load
	for load in "${loads[@]}"; do
		case $load in
		write-64k) bench "$1" "$load" "WRITE 64 KB, MTU 4096" 16 ;;
		write-64) bench "$1" "$load" "WRITE 64 bytes, 16 QPs" 1 ;;
		esac
	done
	[ -z "$guests" ] || guest "$1"
}

: >"$tmp/figures"
for ((n = 1; n <= rounds; n++)); do
	say "[speed] round $n of $rounds"
	# Alternate the order of the sides, because the machine's other load changes.
	if ((n % 2)); then
		round there
		round here
	else
		round here
		round there
	fi
done

# ---- results -------------------------------------------------------------------------------

here=$(git -C "$top" rev-parse --short=12 HEAD)
git -C "$top" diff --quiet HEAD || here+=+
jq -s --arg commit "$hash" --arg here "$here" --argjson rounds "$rounds" --argjson iters "$iters" --argjson idle "$idle" '
	def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	def ratio($a; $b): if $b > 0 then $a / $b * 100 | round / 100 else null end;
	def digits: . * 10000 | round / 10000;
	def figures: map(.value) | {median: (median | digits), minimum: (min | digits), all: map(digits)};
	{commit: $commit, here: $here, rounds: $rounds, iters: $iters, idle_seconds: $idle,
	 loads: (reduce .[] as $f ([]; if any(.load == $f.load and .unit == $f.unit) then . else . + [{load: $f.load, unit: $f.unit}] end))}
	as $head | . as $all | $head | .loads |= map(. as $k
		| ($all | map(select(.load == $k.load and .unit == $k.unit))) as $f
		| ($f | map(select(.side == "there")) | figures) as $there
		| ($f | map(select(.side == "here")) | figures) as $here
		| . + {there: $there, here: $here, ratio_of_medians: ratio($there.median; $here.median),
		       ratio_of_minima: ratio($there.minimum; $here.minimum)})' "$tmp/figures" >"$output.part"
mv "$output.part" "$output"
printf '\n%-15s %-20s %21s %21s %13s\n' '' '' "$hash" "$here" 'times faster'
printf '%-15s %-20s %10s %10s %10s %10s %6s %6s\n' load figure median minimum median minimum median min.
jq -r '.loads[] | [.load, .unit, .there.median, .there.minimum, .here.median, .here.minimum, .ratio_of_medians, .ratio_of_minima] | map(. // "-") | @tsv' "$output" |
	while IFS=$'\t' read -r load unit a b c d e f; do
		printf '%-15s %-20s %10s %10s %10s %10s %6s %6s\n' "$load" "$unit" "$a" "$b" "$c" "$d" "$e" "$f"
	done
echo "figures         $output"
