# SPDX-License-Identifier: Apache-2.0
"""Compares the ICRC of the IPv4 RoCEv2 frames of a capture with what scapy computes.

scapy's layer knows no ICRC over IPv6. It takes milliseconds a frame, so no more than LIMIT are taken,
spread over the file.
"""
import logging
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402
from scapy.packet import Padding  # noqa: E402
from scapy.utils import RawPcapNgReader  # noqa: E402

LIMIT = 400


def main(path):
    frames = [data for data, _ in RawPcapNgReader(path)]
    step = max(1, len(frames) // LIMIT)
    judged = faults = 0
    for number in range(0, len(frames), step):
        packet = Ether(frames[number])
        if IP not in packet or UDP not in packet or BTH not in packet:
            continue
        # Ethernet's padding of a short frame, which scapy takes for a payload of the BTH
        if Padding in packet:
            packet[Padding].underlayer.remove_payload()
        wire = packet[BTH].icrc
        packet[BTH].icrc = None
        again = Ether(bytes(packet))
        judged += 1
        if again[BTH].icrc != wire:
            faults += 1
            print(f"{path}: frame {number + 1}: ICRC {wire:08x}, scapy has {again[BTH].icrc:08x}",
                  file=sys.stderr)
    print(f"{path}: {judged} ICRCs compared with scapy's, {faults} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
