#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ./urdma report: makes an HTML page of a run's results, or of two runs. docs/report.md describes it.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog="urdma report"
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

chart=${URDMA_CHART_JS:-/usr/share/javascript/chart.js/chart.min.js}
reader=${URDMA_EVENTS:-$top/build/cosim/urdma-events}
sampler=${URDMA_SAMPLES:-$top/build/cosim/urdma-samples}

usage() {
	cat <<-'EOF'
	usage: ./urdma report [--out FILE] DIR [DIR]
	       ./urdma report --bench ROWS SWEEPS --out FILE

	Makes one HTML file of the results in DIR, a directory that `./urdma run --out DIR` has filled; of two
	directories, a comparison. The file needs no server and no network.

	A run shows where its messages spend their time if it was recorded: --trace pcap,events. With --sample-us it
	shows counters over time.

	  --bench      the page of `make bench`: ROWS is its bench.json, SWEEPS its sweeps.csv
	  --out FILE   where the page goes (default DIR/report.html; of two, report.html in the second DIR). Beside it,
	               FILE-slowest/ gets traces of the moments of the slowest messages
	EOF
}

bad_usage() {
	printf '%s: %s\nTry ./urdma report --help\n' "$prog" "$*" >&2
	exit 2
}

page=
script=page.js
dirs=()
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h)
		usage
		exit 0
		;;
	--out)
		[ $# -gt 1 ] || bad_usage "--out needs a file"
		page=$2
		shift
		;;
	--out=*) page=${1#*=} ;;
	--bench) script=bench.js ;;
	-*) bad_usage "unknown option '$1'" ;;
	*) dirs+=("${1%/}") ;;
	esac
	shift
done
case $script,${#dirs[@]} in
bench.js,2) [ -n "$page" ] || bad_usage "--bench needs --out FILE" ;;
bench.js,*) bad_usage "--bench needs two files: bench.json and sweeps.csv" ;;
page.js,1 | page.js,2) ;;
*,0) bad_usage "which results? Name the directory of a run, such as out/latest" ;;
*) bad_usage "two runs can be compared, not ${#dirs[@]}" ;;
esac
for dir in "${dirs[@]}"; do
	if [ "$script" = bench.js ]; then
		[ -s "$dir" ] || die "there is no $dir: make bench writes it"
		continue
	fi
	[ -s "$dir/summary.json" ] || die "there is no $dir/summary.json: $dir is not the results of a run of ./urdma"
done
[ -s "$chart" ] || die "there is no $chart: run tools/setup.sh, which installs the package libjs-chart.js"
page=${page:-${dirs[-1]}/report.html}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# run_data DIR NAME MOMENTS: the page's data of a run, as JSON. File names are relative to the page's directory. Traces of
# moments go to MOMENTS.
run_data() {
	local dir=$1 name=$2 moments=$3 us beside trace='' capture captures=()
	echo null >"$tmp/events.json"
	echo null >"$tmp/samples.json"
	if [ -s "$dir/events.urdma" ]; then
		[ -x "$reader" ] || "$top/tools/host-build.sh" urdma-events >&2
		rm -f "$moments"/*.perfetto
		# A truncated file gets a report too: the reader prints a message, and writes the data that it could read.
		"$reader" --json "$tmp/events.json" --moments "$moments" "$dir/events.urdma" >&2 || jq -e . "$tmp/events.json" >/dev/null ||
			die "$dir/events.urdma cannot be read"
	fi
	echo null >"$tmp/system.json"
	[ ! -s "$dir/system.json" ] || cp "$dir/system.json" "$tmp/system.json"
	us=$(jq -r '.simulator.settings.sample_us // empty' "$dir/summary.json")
	if [ -n "$us" ] && [ -s "$dir/samples.jsonl" ]; then
		[ -x "$sampler" ] || "$top/tools/host-build.sh" urdma-samples >&2
		"$sampler" "${us}us" "$dir/samples.jsonl" >"$tmp/samples.json" || die "$dir/samples.jsonl cannot be read"
	fi
	beside=$(realpath --relative-to "$(dirname "$page")" "$dir")/
	[ "$beside" != ./ ] || beside=
	[ ! -s "$dir/trace.perfetto" ] || trace=${beside}trace.perfetto
	for capture in "$dir"/*.pcapng; do
		[ ! -e "$capture" ] || captures+=("$beside${capture##*/}")
	done
	jq -n --arg name "$name" --arg trace "$trace" --slurpfile summary "$dir/summary.json" --slurpfile events "$tmp/events.json" \
		--slurpfile samples "$tmp/samples.json" --slurpfile system "$tmp/system.json" --arg moments "${moments##*/}" '{
		$name, summary: $summary[0], events: $events[0], samples: $samples[0], system: $system[0], files: {
			trace: (if $trace == "" then null else $trace end), $moments,
			captures: ($ARGS.positional | map({key: (split("/")[-1] | rtrimstr(".pcapng")), value: .}) | from_entries)}}' \
		--args "${captures[@]}"
}

# bench_data ROWS SWEEPS
bench_data() {
	jq -n --slurpfile rows "$1" --rawfile sweeps "$2" '{rows: $rows[0], $sweeps}'
}

# All runs.
runs_data() {
	local i name
	for i in "${!dirs[@]}"; do
		name=$(basename "$(realpath "${dirs[i]}")")
		# Two runs need different names.
		if [ "${#dirs[@]}" = 2 ] && [ "$(basename "$(realpath "${dirs[0]}")")" = "$(basename "$(realpath "${dirs[1]}")")" ]; then
			name="$name ($((i + 1)))"
		fi
		run_data "${dirs[i]}" "$name" "${page%.html}-slowest$([ "$i" = 0 ] || echo "-$((i + 1))")" >"$tmp/run$i.json"
	done
	jq -n '{runs: [inputs]}' "$tmp"/run?.json
}

if [ "$script" = bench.js ]; then
	bench_data "${dirs[@]}" >"$tmp/json" || die "${dirs[*]}: they are not the results of make bench"
else
	runs_data >"$tmp/json"
fi
# "</" would end the script element, so write it in JSON's escaped form.
jq -c . "$tmp/json" | sed 's,</,<\\/,g' >"$tmp/data"

awk -v style="$top/tools/report/page.css" -v draw="$top/tools/report/draw.js" -v script="$top/tools/report/$script" -v chart="$chart" -v data="$tmp/data" '
function put(file,   line) { while ((getline line <file) > 0) print line; close(file) }
$0 == "@style@" { put(style); next }
$0 == "@data@" { put(data); next }
$0 == "@chart@" { put(chart); next }
$0 == "@draw@" { put(draw); next }
$0 == "@script@" { put(script); next }
{ print }' "$top/tools/report/page.html" >"$tmp/page"
cp "$tmp/page" "$page" || die "cannot write $page"
echo "$page"
