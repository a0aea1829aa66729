#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_report.sh PROGRAMS MAKE_EVENTS OUT GUESTS BENCH
#
# Checks the report in a browser: of runs whose events MAKE_EVENTS makes, of two runs that are compared, of the results of guest
# tests below GUESTS, and of the benchmark in BENCH, if this build has any. PROGRAMS is the directory of the simulator, of
# urdma-events and of urdma-samples. Pictures of all pages go to OUT. Then faults are planted into pages: the checks have to
# notice each of them.
set -u

programs=$1 make_events=$2 out=$3 guests=$4 bench=$5
events=$programs/urdma-events
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
prog=test_report
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export URDMA_EVENTS=$events URDMA_SAMPLES=$programs/urdma-samples
bad=0

command -v chromium >/dev/null || die "chromium is missing: tools/setup.sh full installs it"

fail() {
	echo "$*"
	bad=1
}

# browse PAGE OPTION...: opens the page in a browser, whose log goes to $dir/log.
browse() {
	local page=$1
	shift
	timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/profile" --hide-scrollbars \
		--enable-logging=stderr --virtual-time-budget=10000 "$@" "file://$page" 2>"$dir/log"
}

# faults PAGE SECTION...: prints what is wrong with the page. It has to have these sections.
faults() {
	local page=$1
	shift
	browse "$page" --dump-dom >"$dir/dom" || echo "the browser failed: $(tail -n 3 "$dir/log")"
	grep -o 'CONSOLE.*' "$dir/log"
	/usr/bin/python3 "$here/check_page.py" "$dir/dom" "$(dirname "$page")" "$@"
}

# good PAGE SECTION...: nothing is wrong with the page. Keeps its picture.
good() {
	local page=$1 found
	found=$(faults "$@")
	[ -z "$found" ] || fail "$page: $found"
	browse "$page" --screenshot="$out/$(basename "$page" .html).png" --window-size=1280,4000
	[ -s "$out/$(basename "$page" .html).png" ] || fail "$page: there is no picture"
}

# planted TEXT EDIT: the checks report TEXT for a page with this fault.
planted() {
	local text=$1 found
	cp "$dir/one/report.html" "$dir/one/planted.html"
	sed -i "$2" "$dir/one/planted.html"
	cmp -s "$dir/one/report.html" "$dir/one/planted.html" && fail "the fault '$2' has no place in the page"
	found=$(faults "$dir/one/planted.html" latency counters)
	[[ "$found" = *"$text"* ]] || fail "the fault '$2' is noticed as '$found', not as '$text'"
}

# summary DIR ARGUMENT...: DIR/summary.json of a run of the simulator in which nothing happens.
summary() {
	local dir=$1 pid
	shift
	: >"$dir/cosim.out"
	"$programs/urdma-cosim" --socket "$dir/s0" --socket "$dir/s1" --out "$dir/cosim" "$@" >"$dir/cosim.out" 2>&1 &
	pid=$!
	until grep -q ready "$dir/cosim.out"; do
		kill -0 $pid 2>/dev/null || die "the simulator does not begin: $(cat "$dir/cosim.out")"
		sleep 0.05
	done
	kill -TERM $pid
	wait $pid || die "the simulator failed: $(cat "$dir/cosim.out")"
	# In the form that ./urdma makes.
	jq '{command: "ib_write_bw -s 2500 localhost", began: "2026-01-31T12:00:00Z", version: "9.8.7", commit: "abcdef1", exit_status: 0, error: null, hosts: 1, nics: [2], accel: "tcg", kernel: "stock",
		wall_seconds: 20.04, boot_seconds: 9.6, kernel_complaints: [], simulator: .}' "$dir/cosim/cosim.json" >"$dir/summary.json"
}

# samples: counters of two NICs every 10 us: a thousand samples of 40 frames of 2500 bytes from urdma0 on, and a pause. One
# sample in ten has lost frames.
samples() {
	awk 'BEGIN {
		print "{\"ns\":10000,\"urdma0\":{\"pcie\":{\"register_reads\":61}},\"urdma1\":{\"pcie\":{\"register_reads\":61}}}"
		for (i = 1; i <= 1000; i++) {
			n = i * 40
			printf "{\"ns\":%d,\"urdma0\":{\"counters\":{\"tx_frames\":%d,\"tx_rdma_pkts\":%d,\"cqe\":%d,\"pte_hit\":%d,\"pte_miss\":%d",
				i * 10000 + (i > 700 ? 50000000 : 0) + 100000, n, n, n, n, i
			if (i % 10 == 0)
				printf ",\"tx_retrans\":%d,\"tx_timeout\":%d", i, i / 10
			printf "},\"port\":{\"tx_frames\":%d,\"tx_bytes\":%d},\"pcie\":{\"dma_reads\":%d,\"from_host_bytes\":%d}}", n, n * 2500, n, n * 2700
			printf ",\"urdma1\":{\"port\":{\"rx_frames\":%d,\"rx_bytes\":%d},\"pcie\":{\"dma_writes\":%d,\"to_host_bytes\":%d}}}\n",
				n, n * 2500, 10 * n, n * 2740
		}
	}'
}

# refuses TEXT ARGUMENT...
refuses() {
	local text=$1
	shift
	"$top/tools/html-report.sh" "$@" >"$dir/log" 2>&1 && fail "html-report.sh $*: it does not fail"
	grep -qF -- "$text" "$dir/log" || fail "html-report.sh $*: $(cat "$dir/log")"
}

mkdir -p "$out" "$dir"/{one,"the other",silent,sampled,killed}
"$make_events" -t "$dir/one/events.urdma" || exit 1
"$make_events" "$dir/the other/events.urdma" 100000 200000 || exit 1
# A link leads to a file, so these need no content.
for file in urdma0.pcapng urdma1.pcapng; do
	: >"$dir/one/$file"
done
"$events" --perfetto "$dir/one/trace.perfetto" "$dir/one/events.urdma" || exit 1
"$events" --json "$dir/json" "$dir/one/events.urdma" || exit 1
trigger=$(jq -r .trigger.what "$dir/json")
summary "$dir/one" --trace events=trigger:1us-1us --trigger "$trigger" --sample-us 10
# A text that would end the page's data, and one that would be an element.
jq --slurpfile events "$dir/json" '.command += " </script><b>" | .simulator.trigger.at_ns = $events[0].trigger.at_ns' \
	"$dir/one/summary.json" >"$dir/edited" || exit 1
mv "$dir/edited" "$dir/one/summary.json"
samples >"$dir/one/samples.jsonl"
summary "$dir/the other" --loss 1 --trace csv=trigger:1us-1us --trigger error
summary "$dir/silent"
summary "$dir/sampled" --sample-us 10
samples >"$dir/sampled/samples.jsonl"

run=(verdict stages links latency percentiles depth queues qps-over-time wire pcie reads cost-of-message retransmissions slowest stage-figures responder qps
	translation stalls cost)
"$top/tools/html-report.sh" "$dir/one" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/one/report.html" "${run[@]}" counters files
# In another directory, so that its links lead to the two directories.
"$top/tools/html-report.sh" --out "$dir/two.html" "$dir/one" "$dir/the other" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/two.html" "${run[@]}" comparison verdict-2 slowest-2 counters files
"$top/tools/html-report.sh" --out "$dir/silent.html" "$dir/silent" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/silent.html" verdict cost
grep -q 'id="counters"' "$dir/dom" && fail "silent.html has counters over time without samples"
"$top/tools/html-report.sh" --out "$dir/sampled.html" "$dir/sampled" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/sampled.html" verdict counters cost
# A run whose simulator was killed: events that end somewhere, or before the first one, and no report of the simulator.
jq '.simulator = null | .exit_status = 125 | .error = "the simulator was killed"' "$dir/silent/summary.json" >"$dir/killed/summary.json"
jq .simulator.settings.system "$dir/silent/summary.json" >"$dir/killed/system.json"
for bytes in 1000 200000; do
	head -c $bytes "$dir/one/events.urdma" >"$dir/killed/events.urdma"
	"$top/tools/html-report.sh" "$dir/killed" >"$dir/log" 2>&1 || fail "no page: $(cat "$dir/log")"
	grep -q "is damaged" "$dir/log" || fail "html-report.sh does not tell that the events are cut: $(cat "$dir/log")"
	good "$dir/killed/report.html" verdict
	for text in 'not complete' 'the simulator was killed' '100 Gb/s'; do
		grep -qF "$text" "$dir/dom" || fail "the page of a run that was killed does not say '$text'"
	done
done
for name in pingpong perftest-loss; do
	# urdma-events refuses the events of another build.
	[ "$guests/$name/events.urdma" -nt "$events" ] || continue
	"$top/tools/html-report.sh" --out "$dir/$name.html" "$guests/$name" >"$dir/log" || fail "no page: $(cat "$dir/log")"
	good "$dir/$name.html" "${run[@]}"
done

# The page of the benchmark: with a few figures, and with all.
cat >"$dir/rows.json" <<'EOF'
[{"name": "WRITE, 1 QP", "value": 98.0, "unit": "Gb/s", "limit": 98.5, "by": "wire", "percent": 99.5},
 {"name": "latency of SEND", "value": 2000, "unit": "ns", "limit": 1500, "by": "latency", "percent": 75},
 {"name": "simulator speed", "value": 500, "unit": "kcycles/CPU s", "limit": null, "by": "", "percent": null}]
EOF
cat >"$dir/sweeps.csv" <<'EOF'
sweep,x_unit,series,x,value,unit,limit,by,percent
message size,bytes,WRITE,64,5.1,Gb/s,9,"PCIe, RC beats",56.7
message size,bytes,WRITE,4096,97,Gb/s,98,"wire",99
QPs,,READ,1,4.5,million/s,15.8,"outstanding",28.5
EOF
"$top/tools/html-report.sh" --bench "$dir/rows.json" "$dir/sweeps.csv" --out "$dir/figures.html" >"$dir/log" ||
	fail "no page: $(cat "$dir/log")"
good "$dir/figures.html" verdict rows sweep-message-size sweep-qps
grep -q 'PCIe, RC beats' "$dir/dom" || fail "figures.html does not say what limits a point"
if [ -s "$bench/bench.json" ] && [ -s "$bench/sweeps.csv" ]; then
	"$top/tools/html-report.sh" --bench "$bench/bench.json" "$bench/sweeps.csv" --out "$dir/bench.html" >"$dir/log" ||
		fail "no page: $(cat "$dir/log")"
	good "$dir/bench.html" verdict rows sweep-message-size sweep-qps sweep-mtu sweep-pcie-read-latency sweep-sges sweep-pages-in-use
fi

# shellcheck disable=SC2016  # what is in braces is for the script of the page
planted_all() {
	# Exceptions, a message, a plot without data, links to nothing, a section that is gone, wrong figures.
	planted "nowhere is not defined" 's/^function links(main) {/&nowhere();/'
	planted "errors: Uncaught" '$s/^/<script>nowhere();<\/script>/'
	planted CONSOLE '$s/^/<script>console.warn("odd");<\/script>/'
	planted "plot latency has no data" 's/data: histogram(nic.latency_ns.buckets)/data: []/'
	planted "the link #x-wqe-" 's/href: `#\${ids\[i\]}`/href: `#x-${ids[i]}`/'
	planted "no link leads to the moment of urdma" 's/href: `${run.files.moments}\/${w.window_ns\[0\]}.perfetto`/href: run.files.trace/'
	planted ".perfetto leads to no file" 's/${w.window_ns\[0\]}.perfetto/${w.window_ns[1]}.perfetto/'
	planted " ns lacks urdma" 's/"window_ns":\[\([0-9]*\),[0-9]*\]/"window_ns":[\1,\1]/g'
	planted "the link x-urdma0.pcapng" 's/{ href: file }/{ href: `x-${file}` }/'
	planted "there is no section latency" "s/'latency', 'Latency'/'delay', 'Latency'/"
	planted "bars of percentiles are those of no NIC" 's/latency.n \* share \&\& i + 1/latency.n * share * share \&\& i + 1/'
	planted "the head does not show: urdma 9.8.7 (abcdef1)" 's/`urdma ${s.version}/`urdma ${s.commit}/'
	planted "the head does not show: --trace events" 's/`--trace ${kinds.join/`--trace x${kinds.join/'
	planted "does not show the messages" 's/\[number(nic.messages),/[number(nic.messages + 1),/'
	planted "two elements have the id stages" "s/section(main, 'links'/section(main, 'stages'/"
	planted "does not show the trigger" 's/it came at \${number(t.at_ns)} ns/it came/'
	planted "has no mark of the trigger" "s/points: slices(eventSlices(run), nic.pcie_reads.outstanding) })), marks)/points: slices(eventSlices(run), nic.pcie_reads.outstanding) })), [])/"
	planted "is not at the trigger" 's/return i \* ns + Math.min/return ns + i * ns + Math.min/'
	planted "there is no plot urdma0: look-ups in page tables and directories" "s/=> kind === 'counters' \&\& \/^(pte|dir)_/=> kind === 'none' \&\& \/^(pte|dir)_/"
	planted "the plot urdma0: look-ups in page tables and directories reaches" 's/1e9 \/ samples.slice_ns/1e6 \/ samples.slice_ns/'
	planted "the plot urdma0: wire reaches" 's/tx_frames: FRAME_BYTES/tx_frames: 0/'
	planted "the plot urdma0: PCIe reaches" 's/from_host_bytes: bits/from_host_bytes: 7e-9/'
	planted "QP 2: 999 Gb/s pass the limit of" 's/"gbps":\[[0-9.e-]*/"gbps":[999/'
	planted "wire received: 999 Gb/s pass the limit of" 's/\("received":{[^[]*"gbps":\[\)[0-9.e-]*/\1999/'
	planted "there is no section counters" "s/idOf('counters', run)/idOf('samples', run)/"
	planted "verdict shows undefined" 's/time(nic.latency_ns.p50)/String(nic.latency_ns.p51)/'
}
planted_all

refuses "which results" --out x
refuses "there is no $dir/none/summary.json" "$dir/none"
refuses "two runs can be compared, not 3" a b c
refuses "unknown option '--x'" --x
refuses "--bench needs two files" --bench "$dir/rows.json"
refuses "--bench needs --out" --bench "$dir/rows.json" "$dir/sweeps.csv"
refuses "make bench writes it" --bench --out "$dir/x.html" "$dir/rows.json" "$dir/none"
sed -i '500s/port/prt/; 500s/,.*//' "$dir/sampled/samples.jsonl"
refuses "line 500 is no sample" "$dir/sampled"
head -c 100 "$dir/one/events.urdma" >"$dir/silent/events.urdma"
refuses "cannot be read" "$dir/silent"

exit $bad
