#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_waves.py FST NIC SENT RECEIVED: do frames cross the MAC in the waves when they do in the capture?

FST has the waves of the NIC. SENT and RECEIVED have a line for each such frame in the capture, from the beginning of the
waves on: its time in ns. The clock edge at that time takes the last beat of a frame that is sent. A frame that is received
has its last beat at the NIC in the cycle that begins then. Exits with 1 and says what differs.
"""
import sys

import pywellen

CYCLE_NS = 4


def per_cycle(signal, end):
    """For each cycle, the value in its second half, when inputs and outputs have settled."""
    changes = [(t, int(v)) for t, v in signal.tv]
    value, k = 0, 0
    for ns in range(0, end, CYCLE_NS):
        while k < len(changes) and changes[k][0] <= ns + CYCLE_NS // 2:
            value = changes[k][1]
            k += 1
        yield value


def compare(what, wave, names, path, later):
    with open(path, encoding="ascii") as lines:
        want = [int(line) for line in lines]
    if not want:
        print(f"no frame was {what}")
        return False
    columns = zip(*(per_cycle(wave[name], max(want) + 2 * CYCLE_NS) for name in names))
    got = [(n + later) * CYCLE_NS for n, values in enumerate(columns) if all(values)]
    got = [ns for ns in got if ns <= max(want)]
    if got == want:
        print(f"{len(got)} frames {what}, at the same cycles in capture and waves")
        return True
    print(f"{what}: {len(want)} frames in the capture, {len(got)} in the waves")
    print("only in the capture:", sorted(set(want) - set(got))[:10])
    print("only in the waves:", sorted(set(got) - set(want))[:10])
    return False


def main(fst, nic, sent, received):
    wave = pywellen.Waveform(fst)
    if str(wave.timescale) != "1ns":
        print(f"the unit of time is {wave.timescale}")
        return 1
    top = nic + ".urdma_sim_top."
    tx = [top + "m_axis_tx_" + name for name in ("tvalid", "tready", "tlast")]
    rx = [top + "s_axis_rx_" + name for name in ("tvalid", "tlast")]
    good = compare("sent", wave, tx, sent, 1)
    return 0 if compare("received", wave, rx, received, 0) and good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
