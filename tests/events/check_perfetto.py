# SPDX-License-Identifier: Apache-2.0
"""check_perfetto.py TRACE JSON CSV: reads a trace by Perfetto's own schema.

No field is unknown to it. Tracks have parents that exist; slices of a track nest in the order of
time; each flow has at least two slices, and one that ends has an answer; the slices of WQEs and
their stages are those of the CSV, the frames as many as the JSON counts.
"""
import collections
import csv
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

STAGES = "posted queued fetch held payload transmit answer completion report".split()


def no_unknown(message):
    assert not len(unknown_fields.UnknownFieldSet(message)), f"unknown fields: {message}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in value if field.is_repeated else [value]:
                no_unknown(part)


def args(event):
    return {a.name: a.string_value or a.uint_value for a in event.debug_annotations}


def main():
    trace = pb.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    with open(sys.argv[2]) as file:
        report = json.load(file)
    with open(sys.argv[3], newline="") as file:
        wqes = list(csv.DictReader(file))

    tracks = {}
    events = []
    for number, packet in enumerate(trace.packet):
        no_unknown(packet)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, f"track {track.uuid} twice"
            assert not track.parent_uuid or track.parent_uuid in tracks, f"no parent: {track}"
            tracks[track.uuid] = track
        elif packet.HasField("track_event"):
            assert packet.track_event.track_uuid in tracks, f"no track: {packet}"
            assert packet.trusted_packet_sequence_id
            events.append((packet.timestamp, number, packet.track_event))
    assert trace.packet[0].sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    names = [t.process.process_name for t in tracks.values() if t.HasField("process")]
    assert names == [n["nic"] for n in report["nics"]], names

    # In Perfetto's order: by time, then by place in the file.
    events.sort(key=lambda e: e[:2])
    stack = collections.defaultdict(list)
    done = []
    flows = collections.defaultdict(list)
    kinds = collections.Counter()
    for time, _, event in events:
        kinds[event.type] += 1
        open_slices = stack[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices.append((time, event, []))
            for flow in event.flow_ids:
                flows[flow].append((time, event, False))
            for flow in event.terminating_flow_ids:
                flows[flow].append((time, event, True))
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            assert open_slices, f"an end without a begin at {time}: {tracks[event.track_uuid]}"
            begin, event, inside = open_slices.pop()
            if open_slices:
                open_slices[-1][2].append((event.name, time - begin))
            done.append((begin, time, event, inside))
        elif event.type == pb.TrackEvent.TYPE_COUNTER:
            assert tracks[event.track_uuid].HasField("counter")
    assert not any(stack.values()), "slices without an end"
    assert kinds[pb.TrackEvent.TYPE_COUNTER] and kinds[pb.TrackEvent.TYPE_INSTANT]

    # WQEs and stages.
    want = collections.Counter()
    for w in wqes:
        stages = tuple((s, int(w[s + "_ns"])) for s in STAGES if int(w[s + "_ns"]))
        want[f'{w["op"]} {w["wqe"]}', int(w["start_ns"]), int(w["whole_ns"]), stages] += 1
    got = collections.Counter(
        (event.name, begin, end - begin, tuple(inside))
        for begin, end, event, inside in done
        if tracks[event.track_uuid].name == "WQEs" and event.name not in STAGES)
    assert got == want, (list(got - want)[:3], list(want - got)[:3])

    # Frames, and the flows between them.
    frames = collections.Counter(
        tracks[e.track_uuid].thread.thread_name for _, _, e, _ in done
        if tracks[e.track_uuid].thread.thread_name in ("MAC tx", "MAC rx"))
    assert frames["MAC tx"] == sum(n["wire"]["sent"]["frames"] for n in report["nics"]), frames
    assert frames["MAC rx"] == sum(n["wire"]["received"]["frames"] for n in report["nics"]), frames
    lost = ends = 0
    for flow, members in flows.items():
        where = [tracks[e.track_uuid].thread.thread_name for _, e, _ in members]
        if len(members) == 1:
            lost += 1
            assert where == ["MAC tx"]
            continue
        assert where == ["MAC tx", "MAC rx"] * (len(members) // 2), where
        assert [m[2] for m in members[:-1]] == [False] * (len(members) - 1)
        assert args(members[0][1])["psn"] == args(members[1][1])["psn"]
        if len(members) == 4:
            assert members[-1][2], "the answer does not end the flow"
            ends += 1
    timeouts = sum(n["retries"]["time-out"] for n in report["nics"])
    assert lost == timeouts > 0, (lost, timeouts)
    assert ends == len(wqes), (ends, len(wqes))

    # Requests at their receivers: as many of each verdict as in the report; their places are those of the report.
    requests = [(e, args(e)) for _, _, e, _ in done if tracks[e.track_uuid].name == "requests received"]
    verdicts = collections.Counter(a["verdict"] for _, a in requests)
    responders = collections.Counter()
    for n in report["nics"]:
        responders.update({k: v for k, v in n["responder"]["packets"].items() if v})
    assert verdicts == responders, (verdicts, responders)
    place = [n["responder"]["stages_ns"]["place"] for n in report["nics"]]
    want_ns = sum(d["n"] * d["mean"] for d in place)
    assert abs(sum(a.get("place ns", 0) for _, a in requests) - want_ns) < 1e-6 * want_ns, want_ns

    # Doorbells and events between host and NIC; misses; bytes of PCIe.
    def instants(thread, name=None):
        return [args(e) for _, _, e in events if e.type == pb.TrackEvent.TYPE_INSTANT and
                tracks[e.track_uuid].thread.thread_name == thread and name in (None, e.name)]

    assert len(instants("doorbells", "send queue")) == sum(n["doorbells"] for n in report["nics"])
    assert len(instants("events and interrupts", "interrupt")) == sum(n["interrupts"] for n in report["nics"]) > 0
    assert len(instants("control", "reset: the NIC's cycle counter begins")) == len(report["nics"])
    assert len(instants("control", "QP ends")) == 1
    assert instants("doorbells", "CQ")[0] == {"cqn": 3, "ci": 1, "arm": 1}
    misses = instants("page table misses")
    for kind, key in ("pte_miss", "misses"), ("dir_miss", "directory_misses"):
        assert sum(m[kind] for m in misses) == sum(c[key] for n in report["nics"] for c in n["translation"].values()) > 0
    for nic in report["nics"]:
        process = next(u for u, t in tracks.items() if t.process.process_name == nic["nic"])
        for way, name in ("to_host", "PCIe bytes to the host"), ("from_host", "PCIe bytes from the host"):
            track = next(u for u, t in tracks.items() if t.name == name and t.parent_uuid == process)
            values = [e.counter_value for _, _, e in events if e.track_uuid == track]
            assert values == sorted(values) and values[-1] == nic["pcie"][way]["bytes"], (nic["nic"], way, values[-3:])
    print(f"{len(tracks)} tracks, {len(done)} slices, {len(flows)} flows")


main()
