#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_trigger.py NIC AT BEFORE AFTER OFFSET... -- FST...: is in these waves what is around a trigger?

The files together have the waves of the NIC around the moment AT, from BEFORE ns before it to AFTER ns behind it. OFFSETs
tell when the NIC receives frames there, in ns from AT on. What comes earlier than BEFORE may be there, too. Exits with 1
and says what differs.
"""
import sys

import pywellen

CYCLE_NS = 4
INPUTS_NS = 1  # inputs change after the clock edge


def main(nic, at, before, after, *more):
    at, before, after = int(at), int(before), int(after)
    want = [int(offset) for offset in more[: more.index("--")]]
    got, last = set(), 0
    for fst in more[more.index("--") + 1 :]:
        wave = pywellen.Waveform(fst)
        got |= {t - INPUTS_NS - at for t, v in wave[nic + ".urdma_sim_top.s_axis_rx_tvalid"].tv if int(v)}
        last = max([last] + [t for t, _ in wave[nic + ".clk"].tv])
    got = sorted(offset for offset in got if offset >= -before)
    if got != want:
        print(f"frames at {got} ns from the trigger on, and not at {want}")
    if not at <= last <= at + after + CYCLE_NS:
        print(f"the last clock is {last - at} ns behind the trigger")
        return 1
    return 0 if got == want else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
