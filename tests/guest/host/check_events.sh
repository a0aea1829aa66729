#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_events.sh [-g] DIR: the events of a run agree with what else says what happened: the captures, the log of faults, the
# NICs' counters, the simulator's own. Each CQE has a whole life, the stages of a life sum to it, and a frame has the same
# time in all files. For runs in which no NIC is reset after its traffic, as counters begin anew then. -g: as of in-guest.sh,
# WQEs without a CQE may go with their QP.
set -euo pipefail
ends='[.[]] | add'
if [ "$1" = -g ]; then
	ends='.begun_before + .lacks_events'
	shift
fi
dir=$1
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

"$top/build/cosim/urdma-events" --json "$tmp/report" --csv "$tmp/wqes" "$dir/events.urdma" >&2

# same WHAT A B
same() {
	if [ "$2" != "$3" ]; then
		echo "events: $1: $2, not $3" >&2
		status=1
	fi
}

same "events that are missing" "$(jq .simulator.events.missing "$dir/summary.json")" 0
same "events in the file" "$(jq .events "$tmp/report")" "$(jq .simulator.events.events "$dir/summary.json")"
same "the file is whole" "$(jq .complete "$tmp/report")" true
for nic in $(jq -r '.nics[].nic' "$tmp/report"); do
	events() { jq --arg nic "$nic" ".nics[] | select(.nic == \$nic) | $1" "$tmp/report"; }
	counter() { jq --arg nic "$nic" ".[\$nic].$1" "$dir/counters.json"; }
	simulator() { jq --arg nic "$nic" ".simulator.nics[] | select(.name == \$nic) | $1" "$dir/summary.json"; }

	same "$nic: lives without an end, or without a moment" "$(events ".incomplete | $ends")" 0
	same "$nic: CQEs" "$(events '.send_completions + .receive_completions')" "$(counter cqe)"
	same "$nic: lives that end with a CQE" "$(events .completions)" "$(events .send_completions)"
	same "$nic: lines of the table" "$(awk -F, -v nic="$nic" '$1 == nic' "$tmp/wqes" | wc -l)" "$(events .messages)"
	same "$nic: packets sent again" "$(events .packets_sent_again)" "$(counter tx_retrans)"
	same "$nic: time-outs" "$(events '.losses["time-out"]')" "$(counter tx_timeout)"
	same "$nic: READ responses that were missed" "$(events '.losses["implied NAK"]')" "$(counter rx_read_gap)"
	same "$nic: duplicates" "$(events .responder.packets.duplicate)" "$(counter rx_dup)"
	same "$nic: packets out of sequence" "$(events '.responder.packets["out of sequence"]')" "$(counter rx_seq_err)"
	same "$nic: RNR NAKs" "$(events .responder.rnr_naks)" "$(counter tx_nak_rnr)"
	same "$nic: packets without room" "$(events .responder.dropped_for_lack_of_room)" "$(counter rx_drop_full)"
	same "$nic: look-ups in page tables: hits" "$(events '[.translation[].hits] | add')" "$(counter pte_hit)"
	same "$nic: look-ups in page tables: misses" "$(events '[.translation[].misses] | add')" "$(counter pte_miss)"
	same "$nic: look-ups in directories: hits" "$(events '[.translation[].directory_hits] | add')" "$(counter dir_hit)"
	same "$nic: look-ups in directories: misses" "$(events '[.translation[].directory_misses] | add')" "$(counter dir_miss)"
	same "$nic: accesses that were refused" "$(events '[.translation[].refused] | add')" "$(counter mr_err)"
	same "$nic: frames sent" "$(events .wire.sent.frames)" "$(simulator .tx_frames)"
	same "$nic: frames received" "$(events .wire.received.frames)" "$(simulator .rx_frames)"
	same "$nic: DMA reads" "$(events .pcie.from_host.dma_reads)" "$(simulator .pcie.dma_reads)"
	same "$nic: DMA writes" "$(events .pcie.to_host.dma_writes)" "$(simulator .pcie.dma_writes)"
	same "$nic: bytes of DMA reads" "$(events .pcie.from_host.dma_bytes)" "$(simulator .pcie.dma_read_bytes)"
	same "$nic: bytes of DMA writes" "$(events .pcie.to_host.dma_bytes)" "$(simulator .pcie.dma_write_bytes)"
	same "$nic: bytes of PCIe to the host" "$(events .pcie.to_host.bytes)" "$(simulator .pcie.to_host_bytes)"
	same "$nic: bytes of PCIe from the host" "$(events .pcie.from_host.bytes)" "$(simulator .pcie.from_host_bytes)"
	same "$nic: slices in which a link carries more than it can" "$(events '[.limits_gbps.wire * 1.0001 < .wire[].gbps[],
		.limits_gbps.pcie * 1.0001 < .pcie[].gbps[]] | map(select(.)) | length')" 0
	same "$nic: interrupts" "$(events .interrupts)" "$(simulator .pcie.interrupts)"
done

"$top/build/tests/events/events_agree" "$dir" || status=1

# Columns of stages end in _ns; the first is the beginning, the last the whole.
awk -F, '
{ sub(/\r$/, "") }
NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /_ns$/) { if ($i == "start_ns") continue; last = i; if (!first) first = i }; next }
{ sum = 0; for (i = first; i < last; i++) sum += $i; if (sum != $last) { print "events: line " NR ": the stages sum to " sum ", the whole is " $last; bad = 1 } }
END { if (!first || NR < 2) { print "events: there is no message"; bad = 1 }; exit bad }' "$tmp/wqes" >&2 || status=1
[ $status != 0 ] || echo "$(jq .events "$tmp/report") events agree with captures and counters; $(($(wc -l <"$tmp/wqes") - 1)) messages"
exit $status
