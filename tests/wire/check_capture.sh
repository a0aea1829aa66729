#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Judges captures: check_capture.sh [-o] FILE...
#
# With -o only the frames that each port has sent are judged, because received frames have passed the wire and its faults.
#
# Every frame to UDP port 4791 has to decode in tshark as RoCEv2, no frame may be malformed or carry an expert error, and every
# ICRC has to agree with icrc_check, and for IPv4 with scapy, when it is installed. URDMA_ICRC_CHECK names the program
# icrc_check; by default it is taken from the build directory. Exit status 1: a fault in a capture; 2: it could not judge.
set -u

here=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
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

# Payload is data of programs. tshark guesses a protocol for it, by its contents or a port, and sometimes takes random data for
# a malformed packet. So it may use only these protocols.
known='_ws\..*|frame|file.*|pcapng|pkt_comment|data|eth|ethertype|llc|vlan|ieee8021ad|arp|ip|ipv6|ipv6\..*|icmp|icmpv6|igmp|udp|tcp|tcp\..*|infiniband'
# RoCE NICs send no UDP checksum, because the ICRC covers everything; over IPv6 likewise (RFC 6935).
options=(-n -o udp.ignore_ipv6_zero_checksum:TRUE)
while read -r protocol; do
	options+=(--disable-protocol "$protocol")
done < <(tshark -G protocols 2>/dev/null | cut -f 3 | grep -vxE "$known")
[ ${#options[@]} -gt 100 ] || die "tshark -G protocols lists no protocols"

# Errors that tshark finds in a frame. If payload begins with an EtherType, 0, 0, tshark takes it for a frame of that type, and
# no option forbids this. Answers of NVMe begin like this, and sometimes other data. The errors in such a frame may be in the
# payload.
inner='frame.protocols matches ":infiniband:" && !(frame.protocols matches ":infiniband:(data|_ws)")'
faulty="(_ws.malformed || _ws.expert.severity >= 8388608) && !(frame.packet_flags_crc_error == 1) && !($inner)"
[ -z "$sent" ] || faulty="$faulty && frame.packet_flags_direction == 2"

# frames FILE: a line for each RoCEv2 frame, number, opcode (empty if it is not decoded) and "4" over IPv4; and a line "faults"
# if any frame is faulty. tshark reads the file only once, because that takes long.
#
# Frames whose FCS is marked bad were damaged on purpose. A host without an RDMA device returns the start of a frame in an ICMP
# message.
frames()
{
	tshark "${options[@]}" -r "$1" -T fields -e frame.number -e frame.packet_flags_direction -e frame.packet_flags_crc_error \
		-e udp.dstport -e infiniband.bth.opcode -e _ws.expert.severity -e frame.protocols 2>/dev/null |
		awk -F'\t' -v OFS='\t' -v sent="$sent" '
		sent && $2 != "0x00000002" || $3 == 1 || $3 == "True" { next }
		{
			bad = $7 ~ /_ws\.malformed/
			n = split($6, severity, ",")
			for (i = 1; i <= n; i++)
				bad = bad || severity[i] >= 8388608
			faults = faults || bad && !($7 ~ /:infiniband:/ && $7 !~ /:infiniband:(data|_ws)/)
		}
		"," $4 "," ~ /,4791,/ && $7 !~ /:icmp/ { print $1, $5, $7 ~ /:ip:/ ? 4 : 6 }
		END { if (faults) print "faults" }'
	return "${PIPESTATUS[0]}"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for file in "$@"; do
	[ -r "$file" ] || die "$file cannot be read"
	verdict=$("$icrc_check" ${sent:+-o} "$file")
	case $? in
	0) ;;
	1) bad=1 ;;
	*) exit 2 ;;
	esac
	echo "$verdict"
	held=${verdict% RoCEv2*}
	held=${held##* }

	frames "$file" >"$tmp/frames" || {
		echo "$file: tshark cannot read it" >&2
		bad=1
	}
	if grep -q faults "$tmp/frames"; then
		echo "$file: tshark finds faults:" >&2
		tshark "${options[@]}" -r "$file" -Y "$faulty" 2>/dev/null | head -20 >&2
		bad=1
	fi
	# tshark knows the opcodes of XRC, but not their headers after the BTH: rc_check judges these.
	read -r roce decoded xrc < <(awk -F'\t' '
		/^[0-9]/ { roce++ }
		$2 != "" { decoded++ }
		$2 >= 160 && $2 <= 191 { xrc++ }
		END { print roce + 0, decoded + 0, xrc + 0 }' "$tmp/frames")
	if [ "$roce" != "$held" ] || [ "$roce" != "$decoded" ]; then
		echo "$file: tshark decodes $decoded of $roce RoCEv2 frames, there are $held" >&2
		bad=1
	fi
	if /usr/bin/python3 -c 'import scapy.contrib.roce' 2>/dev/null; then
		# No more than 400, spread over the file. An editcap without a number would take all.
		mapfile -t sample < <(awk -F'\t' '$3 == 4 { n[++N] = $1 }
			END { for (i = 1; i <= N; i += N > 400 ? N / 400 : 1) print n[int(i)] }' "$tmp/frames")
		if [ ${#sample[@]} -gt 0 ]; then
			editcap -r "$file" "$tmp/sample" "${sample[@]}" 2>"$tmp/log" >&2 ||
				die "$file: editcap: $(tail -n 3 "$tmp/log")"
			/usr/bin/python3 "$here/check_scapy.py" "$tmp/sample" "${sample[@]}" >"$tmp/log" 2>&1 || bad=1
			tail -n 20 "$tmp/log" | sed "s|^|$file: |"
		fi
	fi
	echo "$file: $roce RoCEv2 frames judged by tshark, $xrc of them, of XRC, up to the BTH"
done
exit "$bad"
