#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the judge of captures. A published packet passes. The same packet with a wrong byte, a capture that is cut off, and a
# file that is no capture do not. Arguments: icrc_check, directory for files.
set -eu

here=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export URDMA_ICRC_CHECK=$1
dir=$2
command -v text2pcap >/dev/null && command -v tshark >/dev/null || exit 77

# The UC SEND of test_icrc.c, as a line of hexadecimal.
packet="24 8a 07 a8 fa 22 24 8a 07 a8 fa 22 08 00 45 01 00 40 04 78 40 00 40 11 b4 d5 c0 a8 00 07 c0 a8 00 07 \
c0 00 12 b7 00 2c ac a2 24 60 ff ff 00 00 00 d3 00 cf 17 10 46 30 81 8b e2 89 35 d9 0e 9a 95 50 54 01 be 88 5e 50 \
00 00 78 f3 53 f3"

make_capture()
{
	echo "000000 $2" | text2pcap -q -n - "$1" >/dev/null 2>&1
}

expect()
{
	local want=$1 got=0

	shift
	"$here/check_capture.sh" "$@" >"$dir/judge.log" 2>&1 || got=$?
	if [ "$got" != "$want" ]; then
		cat "$dir/judge.log" >&2
		echo "check_capture.sh $* ends with $got instead of $want" >&2
		exit 1
	fi
}

make_capture "$dir/good.pcapng" "$packet"
expect 0 "$dir/good.pcapng"
# An answer of NVMe: 16 bytes of payload that look like an EtherType and the start of an IP packet.
make_capture "$dir/nvme.pcapng" "02 75 72 64 00 00 02 75 72 64 00 01 08 00 45 00 00 3c 00 00 40 00 40 11 26 15 0a 4d 00 02 0a 4d 00 01 c6 61 12 \
b7 00 28 00 00 04 40 ff ff 00 00 00 03 80 21 cc df 08 00 00 00 00 00 00 00 15 00 00 00 00 40 00 00 cf e9 8b c9"
expect 0 "$dir/nvme.pcapng"
# An ICMP message that returns a packet is not judged as one.
make_capture "$dir/icmp.pcapng" "${packet%% 45 01*} 45 00 00 5c 00 00 40 00 40 01 00 00 c0 a8 00 07 c0 a8 00 07 \
03 03 00 00 00 00 00 00 45 01 ${packet#* 45 01 }"
expect 0 "$dir/icmp.pcapng"
# A TCP header with a length of 4 bytes: only tshark checks frames that are not RoCE.
make_capture "$dir/tcp.pcapng" "02 75 72 64 00 00 02 75 72 64 00 01 08 00 45 00 00 28 00 00 40 00 40 06 26 a4 0a 4d 00 02 0a 4d 00 01 \
c6 61 12 b7 00 00 00 01 00 00 00 00 10 02 ff ff 00 00 00 00 00 00 00 00 00 00"
expect 1 "$dir/tcp.pcapng"
make_capture "$dir/icrc.pcapng" "${packet%f3}f2"
expect 1 "$dir/icrc.pcapng"
# the packet sequence number, which only the ICRC (and UDP's checksum) covers
make_capture "$dir/psn.pcapng" "${packet/cf 17 10/cf 17 11}"
expect 1 "$dir/psn.pcapng"
# one good frame, one bad
expect 1 "$dir/good.pcapng" "$dir/icrc.pcapng"
head -c 90 "$dir/good.pcapng" >"$dir/cut.pcapng"
expect 2 "$dir/cut.pcapng"
: >"$dir/empty.pcapng"
expect 2 "$dir/empty.pcapng"
expect 2 "$dir/nothing.pcapng"
expect 2
