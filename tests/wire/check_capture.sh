#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Judges captures: check_capture.sh [-o] FILE...
#
# With -o only what each port has sent is judged: what it received met the wire and its faults.
#
# Every frame to UDP port 4791 has to decode in tshark as RoCEv2, no frame may be malformed or carry an
# expert error, and every ICRC has to agree with icrc_check, and for IPv4 with scapy, when it is installed.
# URDMA_ICRC_CHECK names the program icrc_check; without it the build directory is looked into.
# Ends with 1 for a fault in a capture, 2 when it could not judge.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
icrc_check=${URDMA_ICRC_CHECK:-$here/../../build/tests/wire/icrc_check}
bad=0

die()
{
	echo "check_capture: $*" >&2
	exit 2
}

sent=
if [ "${1-}" = -o ]; then
	sent=1
	shift
fi
[ $# -gt 0 ] || die "usage: check_capture.sh [-o] FILE..."
[ -x "$icrc_check" ] || die "$icrc_check is missing: build it, or set URDMA_ICRC_CHECK"
command -v tshark >/dev/null || die "tshark is not installed"

# Payload is data of programs. What tshark guesses it to be, by its looks or by a port, is not judged: random data is
# now and then taken for a protocol, and malformed as such. So tshark knows these protocols only.
known='_ws\..*|frame|file.*|pcapng|pkt_comment|data|eth|ethertype|llc|vlan|ieee8021ad|arp|ip|ipv6|ipv6\..*|icmp|icmpv6|igmp|udp|tcp|tcp\..*|infiniband'
# RoCE NICs send no UDP checksum, the ICRC covers all; over IPv6 likewise (RFC 6935).
options=(-n -o udp.ignore_ipv6_zero_checksum:TRUE)
while read -r protocol; do
	options+=(--disable-protocol "$protocol")
done < <(tshark -G protocols 2>/dev/null | cut -f 3 | grep -vxE "$known")
[ ${#options[@]} -gt 100 ] || die "tshark -G protocols lists no protocols"

# tshark on a file, with a display filter.
shark()
{
	local file=$1 filter=$2

	shift 2
	tshark "${options[@]}" -r "$file" -Y "$filter" "$@" 2>/dev/null
}

# Frames that a display filter selects.
count()
{
	shark "$1" "$2" -T fields -e frame.number | wc -l
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for file in "$@"; do
	name=$file
	[ -r "$file" ] || die "$file cannot be read"
	if [ -n "$sent" ]; then
		tshark -n -r "$file" -Y "frame.packet_flags_direction == 2" -w "$tmp/${file##*/}" 2>"$tmp/log" ||
			die "$file: tshark cannot read it: $(tail -n 3 "$tmp/log")"
		file=$tmp/${file##*/}
	fi
	verdict=$("$icrc_check" "$file")
	case $? in
	0) ;;
	1) bad=1 ;;
	*) exit 2 ;;
	esac
	echo "${verdict/#"$file"/"$name"}"
	held=${verdict% RoCEv2*}
	held=${held##* }

	# Frames whose FCS is marked bad were spoiled on purpose.
	whole='!(frame.packet_flags_crc_error == 1)'
	# A host without an RDMA device returns the start of a frame in an ICMP message.
	to_roce='udp.dstport == 4791 && !icmp && !icmpv6'
	roce=$(count "$file" "$to_roce && $whole")
	decoded=$(count "$file" "$to_roce && infiniband.bth.opcode && $whole")
	if [ "$roce" != "$held" ] || [ "$roce" != "$decoded" ]; then
		echo "$name: tshark decodes $decoded of $roce RoCEv2 frames, there are $held" >&2
		bad=1
	fi
	# Payload that begins as EtherType, 0, 0 is a frame of that type to tshark, and no option forbids it. Answers of NVMe
	# do, and now and then data. What tshark finds in such a frame may be in the payload.
	inner='frame.protocols matches ":infiniband:" && !(frame.protocols matches ":infiniband:(data|_ws)")'
	faults=$(shark "$file" "(_ws.malformed || _ws.expert.severity >= 8388608) && $whole && !($inner)") || {
		echo "$name: tshark cannot read it" >&2
		bad=1
	}
	if [ -n "$faults" ]; then
		echo "$name: tshark finds faults:" >&2
		echo "$faults" | head -20 >&2
		bad=1
	fi
	# tshark knows the opcodes of XRC, and none of the headers behind the BTH: rc_check judges these.
	xrc=$(count "$file" "udp.dstport == 4791 && infiniband.bth.opcode >= 0xa0 && infiniband.bth.opcode <= 0xbf && $whole")
	if /usr/bin/python3 -c 'import scapy.contrib.roce' 2>/dev/null; then
		/usr/bin/python3 "$here/check_scapy.py" "$file" >"$tmp/log" 2>&1 || bad=1
		tail -n 20 "$tmp/log" | sed "s|^$tmp/||"
	fi
	echo "$name: $roce RoCEv2 frames judged by tshark, $xrc of them, of XRC, up to the BTH"
done
exit "$bad"
