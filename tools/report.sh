#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/report.sh DIR: prints a summary of a run from its results.
set -euo pipefail
out=$1
[ -s "$out/summary.json" ] || { echo "report: there is no $out/summary.json" >&2; exit 1; }

echo
echo "== report"
counters=$out/counters.json
[ -s "$counters" ] || counters=/dev/null
# A message makes one CQE at its sender and one at its receiver. Idle cycles are not evaluated, so a
# message costs only the cycles in which a NIC had work.
jq -r --slurpfile counters "$counters" '
  def hundredth: . * 100 | round / 100;
  .simulator as $s |
  ([$counters[0] // {} | .[] | .cqe // 0] | add // 0 | . / 2 | floor) as $messages |
  if $s == null then "no simulator ran" else
  "messages              \($messages)",
  (if $messages > 0 then
    "cycles per message    \($s.cycles_simulated / $messages | hundredth)",
    "simulated time each   \($s.cycles_simulated * 4 / $messages / 1000 | hundredth) us in which a NIC had work, \($s.simulated_ns / $messages / 1000 | hundredth) us in all"
  else empty end),
  "cycles simulated      \($s.cycles_simulated) of 4 ns (\($s.cycles_skipped) idle ones skipped)",
  "cycles of NICs        \($s.cycles_evaluated) evaluated, \($s.cycles_waited) waited while another NIC was",
  "simulator             \($s.cpu_user_seconds + $s.cpu_system_seconds | hundredth) s of CPU (user \($s.cpu_user_seconds | hundredth), system \($s.cpu_system_seconds | hundredth)) in \($s.wall_seconds | hundredth) s",
  "simulator speed       \($s.evaluated_per_cpu_second / 1000 | round) thousand cycles evaluated per CPU second",
  ($s.nics[] | "\(.name)                sent \(.tx_frames) frames of \(.tx_bytes) bytes in all, raised \(.pcie.interrupts) interrupts")
  end' "$out/summary.json"
jq -r '"wall time             \(.wall_seconds) s, of them \(.boot_seconds) s to boot (\(.accel))"' "$out/summary.json"
for f in "$out"/urdma*.pcapng; do
	[ -e "$f" ] && echo "capture               $f ($(stat -c %s "$f") bytes)"
done
echo "results               $out"
