#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Captures of varied traffic, judged by tshark, scapy and our own ICRC, and compared with the counters of the NICs and with
# events. Arguments: capture_run, icrc_check, check_capture.sh, events_agree, directory for files.
set -eu

run=$1
export URDMA_ICRC_CHECK=$2
check=$3
agree=$4
dir=$5

mkdir -p "$dir"
rm -f "$dir"/urdma[01].pcapng
URDMA_TEST_EVENTS=$dir/events.urdma "$run" "$dir" >"$dir/output"
# The first line is the seed, if the environment sets one.
grep -v ^SEED= "$dir/output" >"$dir/counters"
"$URDMA_ICRC_CHECK" -s "$dir/urdma0.pcapng" "$dir/urdma1.pcapng" >"$dir/captured"
cat "$dir/output"
if ! diff -u "$dir/counters" "$dir/captured"; then
	echo "the NICs' counters (-) are not what their ports sent (+)" >&2
	exit 1
fi
# each kind of NAK has to be there
awk '$5 + $8 == 0 && NR == 2 { exit 1 }' "$dir/counters" || { echo "no NAKs were sent" >&2; exit 1; }
"$check" "$dir/urdma0.pcapng" "$dir/urdma1.pcapng"
"$agree" "$dir"

# Captures with other times, or without their last frame, must not agree.
mkdir -p "$dir/wrong"
cp "$dir/events.urdma" "$dir/urdma0.pcapng" "$dir/wrong"
# wrong ARGUMENTS...: of editcap.
wrong() {
	editcap "$@"
	if "$agree" "$dir/wrong"; then
		echo "a changed capture agrees with the events: editcap $*" >&2
		exit 1
	fi
}
frames=$(capinfos -Mc "$dir/urdma1.pcapng" | sed -n 's/^Number of packets: *//p')
wrong -t 0.000000004 "$dir/urdma1.pcapng" "$dir/wrong/urdma1.pcapng"
wrong -r "$dir/urdma1.pcapng" "$dir/wrong/urdma1.pcapng" "1-$((frames - 1))"
