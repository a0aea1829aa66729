# SPDX-License-Identifier: Apache-2.0
"""check_scapy.py FILE NUMBER...: compares the ICRC of IPv4 RoCEv2 frames with what scapy computes.

The frames have these numbers where they come from. scapy takes milliseconds for each, and its layer
knows no ICRC over IPv6.
"""
import logging
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402
from scapy.packet import Padding  # noqa: E402
from scapy.utils import RawPcapNgReader  # noqa: E402


def main(path, numbers):
    faults = 0
    frames = [data for data, _ in RawPcapNgReader(path)]
    for number, data in zip(numbers, frames, strict=True):
        packet = Ether(data)
        # Ethernet's padding of a short frame, which scapy takes for payload of the BTH
        if Padding in packet:
            packet[Padding].underlayer.remove_payload()
        wire = packet[BTH].icrc
        packet[BTH].icrc = None
        again = Ether(bytes(packet))
        if again[BTH].icrc != wire:
            faults += 1
            print(f"frame {number}: ICRC {wire:08x}, scapy has {again[BTH].icrc:08x}", file=sys.stderr)
    print(f"{len(frames)} ICRCs compared with scapy's, {faults} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
