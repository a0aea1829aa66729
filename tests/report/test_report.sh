#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_report.sh URDMA_EVENTS MAKE_EVENTS OUT GUESTS BENCH
#
# The report as a browser shows it: of runs whose events MAKE_EVENTS makes, of two that are compared, and of the results of
# guest tests below GUESTS and of the benchmark in BENCH, if there are any of this build. Pictures of all pages go to OUT.
# Then faults are planted into pages: the checks notice each of them.
set -u

events=$1 make_events=$2 out=$3 guests=$4 bench=$5
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
prog=test_report
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export URDMA_EVENTS=$events
bad=0

command -v chromium >/dev/null || die "chromium is missing: tools/setup.sh full installs it"

fail() {
	echo "$*"
	bad=1
}

# browse PAGE OPTION...: the page in a browser, whose log goes to $dir/log.
browse() {
	local page=$1
	shift
	timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/profile" --hide-scrollbars \
		--enable-logging=stderr --virtual-time-budget=10000 "$@" "file://$page" 2>"$dir/log"
}

# faults PAGE SECTION...: what is wrong with it, on stdout. It has to have these sections.
faults() {
	local page=$1
	shift
	browse "$page" --dump-dom >"$dir/dom" || echo "the browser failed: $(tail -n 3 "$dir/log")"
	grep -o 'CONSOLE.*' "$dir/log"
	/usr/bin/python3 "$here/check_page.py" "$dir/dom" "$(dirname "$page")" "$@"
}

# good PAGE SECTION...: nothing is wrong with it. Its picture is kept.
good() {
	local page=$1 found
	found=$(faults "$@")
	[ -z "$found" ] || fail "$page: $found"
	browse "$page" --screenshot="$out/$(basename "$page" .html).png" --window-size=1280,4000
	[ -s "$out/$(basename "$page" .html).png" ] || fail "$page: there is no picture"
}

# planted TEXT EDIT: the checks say TEXT of a page with this fault.
planted() {
	local text=$1 found
	cp "$dir/one/report.html" "$dir/one/planted.html"
	sed -i "$2" "$dir/one/planted.html"
	cmp -s "$dir/one/report.html" "$dir/one/planted.html" && fail "the fault '$2' has no place in the page"
	found=$(faults "$dir/one/planted.html" latency)
	[[ "$found" = *"$text"* ]] || fail "the fault '$2' is noticed as '$found', not as '$text'"
}

# refuses TEXT ARGUMENT...
refuses() {
	local text=$1
	shift
	"$top/tools/html-report.sh" "$@" >"$dir/log" 2>&1 && fail "html-report.sh $*: it does not fail"
	grep -qF -- "$text" "$dir/log" || fail "html-report.sh $*: $(cat "$dir/log")"
}

mkdir -p "$out" "$dir"/{one,"the other",silent}
"$make_events" "$dir/one/events.urdma" || exit 1
"$make_events" "$dir/the other/events.urdma" 100000 200000 || exit 1
# A link leads to a file, so these need no content.
for file in urdma0.pcapng urdma1.pcapng; do
	: >"$dir/one/$file"
done
"$events" --perfetto "$dir/one/trace.perfetto" "$dir/one/events.urdma" || exit 1
# A text that would end the page's data, and one that would be an element.
jq '.command += " </script><b>"' "$here/summary.json" >"$dir/one/summary.json"
jq '.simulator.settings.system.faults = ["loss=1"]' "$here/summary.json" >"$dir/the other/summary.json"
cp "$here/summary.json" "$dir/silent"

run=(verdict stages links latency depth wire pcie reads cost-of-message retransmissions slowest stage-figures qps translation
	stalls cost)
"$top/tools/html-report.sh" "$dir/one" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/one/report.html" "${run[@]}" files
# Elsewhere, so that its links lead to the two directories.
"$top/tools/html-report.sh" --out "$dir/two.html" "$dir/one" "$dir/the other" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/two.html" "${run[@]}" comparison verdict-2 slowest-2 files
"$top/tools/html-report.sh" --out "$dir/silent.html" "$dir/silent" >"$dir/log" || fail "no page: $(cat "$dir/log")"
good "$dir/silent.html" verdict cost
for name in pingpong perftest-loss; do
	# urdma-events refuses those of another build.
	[ "$guests/$name/events.urdma" -nt "$events" ] || continue
	"$top/tools/html-report.sh" --out "$dir/$name.html" "$guests/$name" >"$dir/log" || fail "no page: $(cat "$dir/log")"
	good "$dir/$name.html" "${run[@]}"
done

# The page of the benchmark: of a few figures, and of all that there are.
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
	planted "the link x-urdma0.pcapng" 's/{ href: file }/{ href: `x-${file}` }/'
	planted "there is no section latency" "s/'latency', 'Latency'/'delay', 'Latency'/"
	planted "does not show the messages" 's/\[number(nic.messages),/[number(nic.messages + 1),/'
	planted "two elements have the id stages" "s/section(main, 'links'/section(main, 'stages'/"
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
head -c 1000 "$dir/one/events.urdma" >"$dir/silent/events.urdma"
refuses "cannot be read" "$dir/silent"

exit $bad
