#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# analysis.sh: the commands of docs/analysis.md, as they stand there, and what the page concludes from them. Each problem
# shows in the figure that the page names, and not in the mended form. All bounds are about counts and simulated time: a
# slow machine makes guests pause, but the figures of messages do not have the pauses in them. A failure means that the
# page misleads its readers: a command does not work, or a figure does not lead to the cause.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
out=$top/build/guest/tests/analysis
cd "$top" || exit 1
rm -rf "$out"
mkdir -p "$out"
# Everything is built when ctest runs.
export URDMA_NO_BUILD=1
bad=0

fail() {
	echo "FAIL: $*; the results are in $out" >&2
	bad=1
}

tools/page-commands.sh docs/analysis.md "$out" >"$out/commands"
while IFS= read -r command; do
	printf '%s\n' "$command"
	bash -c "$command" </dev/null >"$out/log" 2>&1 || {
		cat "$out/log"
		fail "status $?: $command"
		exit 1
	}
	[ -s "$out/log" ] || fail "no output: $command"
done <"$out/commands"

# Of each run: data.NAME, what urdma-events makes of its events, with its settings and faults. The first NIC sends.
for dir in "$out"/*/; do
	name=$(basename "$dir")
	jq -e '.kernel_complaints == [] and .exit_status == 0' "$dir/summary.json" >/dev/null || fail "$name: see its summary.json"
	build/cosim/urdma-events --json "$out/data.json" "$dir/events.urdma" || fail "$name: no events"
	jq -n --arg name "$name" --slurpfile events "$out/data.json" --slurpfile summary "$dir/summary.json" '{($name):
		($events[0] + {summary: $summary[0], sender: $events[0].nics[0], receiver: $events[0].nics[1]})}' || fail "$name"
done >"$out/runs"
jq -s add "$out/runs" >"$out/data"

# holds WHAT CONDITION [FIGURES]: of the runs, by their names.
holds() {
	local figures
	figures=$(jq -c "$functions ${3-[]}" "$out/data")
	if jq -e "$functions $2" "$out/data" >/dev/null; then
		echo "ok: $1: $figures"
	else
		fail "not so: $1: $2, $figures"
	fi
}
functions='
def per_message(f): f / .messages;
def reads: per_message(.pcie.from_host.dma_reads);
def towards: per_message(.pcie.from_host.bytes);
def fetches: per_message(.translation["send queue"].lookups);
def misses(client): .translation[client] | .misses / .lookups;
def latency: .sender.latency_ns.mean;
def stage(name): .sender.stages_ns[name];
def timeouts: .sender.retries["time-out"];
def lost: .summary.simulator.faults.counts.drop;
def rate(l): l.bytes * 8 / .traffic_ns;
def of_wire: rate(.sender.wire.sent) / .summary.simulator.nics[0].rate_gbps;
def of_pcie: rate(.sender.pcie.from_host) / .summary.simulator.nics[0].pcie.gbps;
'

# A doorbell for each WQE. A batch of 32 has one doorbell, and the NIC fetches 16 WQEs at once. How long a message takes
# on the narrow link depends on how many are in flight, and so on the pauses of the guest: it is not judged.
holds "WQEs for each doorbell" '(.each.sender | .messages / .doorbells | . > 0.95 and . <= 1) and
	(.batch.sender | .messages / .doorbells > 30)' '[(.each, .batch).sender | .messages / .doorbells]'
holds "fetches of WQEs for each message" '(.each.sender | fetches) > 2 * (.batch.sender | fetches)' \
	'[(.each, .batch).sender | fetches]'
holds "PCIe reads for each message" '(.each.sender | reads) > 1.1 * (.batch.sender | reads)' '[(.each, .batch).sender | reads]'
holds "bytes on the link towards the NIC, for each message" '(.each.sender | towards) > 1.15 * (.batch.sender | towards)' \
	'[(.each, .batch).sender | towards]'

# Misses of the translation. Half of 64 MB fits into the cache.
holds "misses of the sender, for each look-up" '(.small.sender | misses("transmit payload")) > 0.4 and
	(.huge.sender | misses("transmit payload")) < 0.05' \
	'[(.small, .huge).sender | misses("transmit payload")]'
holds "misses of the receiver, for each look-up" '(.small.receiver | misses("receive payload")) > 0.4 and
	(.huge.receiver | misses("receive payload")) < 0.05' \
	'[(.small, .huge).receiver | misses("receive payload")]'
holds "they are in the stage payload" '(.small | stage("payload").mean) > 1.4 * (.huge | stage("payload").mean)' \
	'[.small, .huge | stage("payload").mean]'
holds "a message takes longer" '(.small | latency) > 1.1 * (.huge | latency)' \
	'[.small, .huge | latency]'

# ACKs that the wire loses. With one message in flight no later ACK stands in for a lost one.
holds "each lost ACK costs a time-out" '.["lost-acks"] | lost > 50 and timeouts == lost' '[.["lost-acks"] | timeouts, lost]'
holds "the slowest messages have waited for their ACKs" '.["lost-acks"].slowest |
	all(.retries["time-out"] > 0 and .stages_ns.answer > 0.99 * .whole_ns and .whole_ns > 1e6)' \
	'[.["lost-acks"].slowest[0] | .whole_ns, .stages_ns.answer]'
holds "a good wire has no time-outs" '(.["good-wire"] | timeouts == 0 and .sender.packets_sent_again == 0) and
	(.["lost-acks"] | latency) > 20 * (.["good-wire"] | latency)' '[.["lost-acks"], .["good-wire"] | latency]'
holds "later ACKs stand in for lost ones" '.["in-flight"] | lost > 10 and timeouts < lost / 4' '[.["in-flight"] | timeouts, lost]'
holds "shorter time-outs cost less" '(.["short-time-out"] | timeouts > 50) and
	(.["lost-acks"] | latency) > 5 * (.["short-time-out"] | latency)' '[.["lost-acks"], .["short-time-out"] | latency]'

# A slow slot.
holds "the slow slot is busy, the wire is not" '.["slow-slot"] | of_pcie > 0.7 and of_wire < 0.25' '[.["slow-slot"] | of_pcie, of_wire]'
holds "in the fast slot it is the other way round" '.["fast-slot"] | of_pcie < 0.5 and of_wire > 0.7' \
	'[.["fast-slot"] | of_pcie, of_wire]'
holds "reads wait in the slow slot" '(.["slow-slot"].sender.pcie_reads.mean) > 40 and
	(.["fast-slot"].sender.pcie_reads.mean) < 25' '[.["slow-slot"], .["fast-slot"] | .sender.pcie_reads | .mean, .max]'
holds "a message takes longer in the slow slot" '(.["slow-slot"] | latency) > 4 * (.["fast-slot"] | latency)' \
	'[.["slow-slot"], .["fast-slot"] | latency]'
exit $bad
