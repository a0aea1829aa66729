#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# in-guest.sh [-m MTU] [-g] [-r] NAME [launcher options] -- COMMAND: a guest test, run on the host: the command's status
# has to be 0, no guest's kernel may have complained, the captures have to be right, and events, if they are recorded, have
# to agree with them. What the command prints is kept, as output.log of the results. Captures that are right are not kept
# when they have more than 100 MB: those of all tests of `make test-full` would fill a disk.
# SEED of the environment is that of the wire's faults.
# -g: QPs may go in the midst of their work, because programs are killed, end when the wire has lost the ACK of their
# peer's last message, or post more than they wait for. -r: programs rewrite the buffers of SENDs that are not acknowledged
# yet.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
mtu=1024
if [ "$1" = -m ]; then
	mtu=$2
	shift 2
fi
judge=("$top/build/tests/wire/rc_judge" -m "$mtu" -t 14)
events=()
while [ "$1" = -g ] || [ "$1" = -r ]; do
	judge+=("$1")
	[ "$1" = -r ] || events=(-g)
	shift
done
out=$top/build/guest/tests/$1
shift
rm -rf "$out"
mkdir -p "$out"
# Everything is built when ctest runs.
export URDMA_NO_BUILD=1
[ -z "${SEED-}" ] || set -- --seed "$SEED" "$@"
"$top/urdma" run --out "$out" "$@" | tee "$out/output.log"
status=${PIPESTATUS[0]}
if [ "$status" != 0 ]; then
	echo "FAIL: status $status; the results are in $out" >&2
	exit 1
fi
if ! jq -e '.kernel_complaints == []' "$out/summary.json" >/dev/null; then
	echo "FAIL: the guest's kernel complained; see $out/console*.log" >&2
	exit 1
fi
# Every frame that a NIC has sent is judged from outside, and what it did about every one it has received. What
# the wire did to frames on their way stands in faults.log. Connections of guests have one path MTU, and
# time-outs of 14 or more.
shopt -s nullglob
captures=("$out"/urdma*.pcapng)
[ ${#captures[@]} != 0 ] || exit 0
bad=0
"$top/tests/wire/check_capture.sh" -o "${captures[@]}" || bad=1
# A NIC drops and counts frames, and READs of a QP, that it has no room for, which its capture does not show.
for capture in "${captures[@]}"; do
	nic=$(basename "$capture" .pcapng)
	"${judge[@]}" -d "$(jq --arg nic "$nic" '.[$nic] | .rx_drop_full + .rx_read_drop' "$out/counters.json")" "$capture" || bad=1
done
if [ -e "$out/events.urdma" ]; then
	"$top/tests/guest/host/check_events.sh" "${events[@]}" "$out" || bad=1
fi
if [ -e "$out/faults.log" ]; then
	echo "faults of the wire: $(jq -c '.simulator.faults.counts // {}' "$out/summary.json")"
fi
if [ $bad != 0 ]; then
	echo "FAIL: the wire was not kept to the rules; the captures are in $out" >&2
	exit 1
fi
if [ "$(stat -c %s "${captures[@]}" | awk '{ n += $1 } END { print (n > 100e6) }')" = 1 ]; then
	rm "${captures[@]}"
fi
