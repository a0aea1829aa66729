#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py DOM DIR SECTION...

Prints what is wrong with a page of tools/html-report.sh, one fault in a line. DOM: the page as a browser has drawn it.
DIR: where it lies, for its links. SECTION: ids that it has to have.
"""
import collections
import html.parser
import json
import os
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.body = {}
        self.ids = collections.Counter()
        self.links = []
        self.plots = []         # (id of the section, attributes, heading before it)
        self.text = {}          # of each section
        self.triggers = {}      # id: text of the line in the head
        self.chips = set()      # facts in the head
        self.in_chip = False
        self.trigger = None
        self.heading = None     # in the section
        self.in_heading = False
        self.data = ""
        self.section = None
        self.script = None

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if "id" in a:
            self.ids[a["id"]] += 1
        if tag == "body":
            self.body = a
        elif tag == "section":
            self.section = a.get("id")
            self.heading = None
            self.text[self.section] = ""
        elif tag == "canvas":
            self.plots.append((self.section, a, self.heading))
        elif tag == "a":
            self.links.append(a.get("href", ""))
        elif tag == "h3":
            self.heading = ""
            self.in_heading = True
        elif tag == "span" and a.get("class") == "chip":
            self.in_chip = True
        elif tag == "p" and a.get("id", "").startswith("trigger"):
            self.trigger = a["id"]
            self.triggers[self.trigger] = ""
        elif tag in ("script", "style"):
            self.script = a.get("id", tag)

    def handle_endtag(self, tag):
        if tag == "section":
            self.section = None
        elif tag == "h3":
            self.in_heading = False
        elif tag == "p":
            self.trigger = None
        elif tag in ("script", "style"):
            self.script = None

    def handle_data(self, data):
        if self.in_chip:
            self.chips.add(data)
            self.in_chip = False
        if self.script == "data":
            self.data += data
        elif self.trigger:
            self.triggers[self.trigger] += data
        elif self.script is None and self.section:
            self.text[self.section] += data + " "
            if self.in_heading:
                self.heading += data


def suffix(i):
    """Of the ids of run i's sections."""
    return f"-{i + 1}" if i else ""


def place(slices_ns, slice_ns, at):
    """Where a moment is on a plot, in ns; None: outside."""
    before = [k for k, begin in enumerate(slices_ns) if begin <= at]
    if not before or (before[-1] == len(slices_ns) - 1 and at >= slices_ns[-1] + slice_ns):
        return None
    return before[-1] * slice_ns + min(at - slices_ns[before[-1]], slice_ns)


def trigger_faults(page, runs):
    """The line in the head, and the marks of plots over time."""
    wanted = {}                 # section: marks
    for i, run in enumerate(runs):
        trigger = (run["summary"]["simulator"] or {}).get("trigger")
        text = page.triggers.get("trigger" + suffix(i), "")
        if not trigger:
            if text:
                yield f"a trigger of a run without one: {text}"
            continue
        moment = "never came" if trigger["at_ns"] is None else f" {trigger['at_ns']:,} ns"
        if trigger["what"] not in text or moment not in text:
            yield f"the head does not show the trigger: {trigger['what']},{moment}"
        if trigger["at_ns"] is None:
            continue
        if run["events"]:
            slice_ns = run["events"]["nics"][0]["pcie_reads"]["slice_ns"]
            x = place(run["events"]["slices_ns"], slice_ns, trigger["at_ns"])
            for section in "queues", "qps-over-time", "wire", "pcie", "reads":
                wanted.setdefault(section, []).extend([] if x is None else [x])
        if run["samples"]:
            x = place(run["samples"]["slices_ns"], run["samples"]["slice_ns"], trigger["at_ns"])
            wanted["counters" + suffix(i)] = [] if x is None else [x]
    for section, canvas, _ in page.plots:
        if "data-marks" not in canvas:
            continue
        want = wanted.get(section, [])
        got = [float(x) for x in canvas["data-marks"].split()]
        if len(got) < len(want):
            yield f"plot {section} has no mark of the trigger"
        elif got != want:
            yield f"the mark of plot {section} is not at the trigger: {got}, not {want}"


def most(samples, *counters):
    """The highest rate of a slice, in 1/s, of the sums of these: (list, factor)."""
    return max(sum(values[k] * factor for values, factor in counters) for k in range(len(samples["slices_ns"]))) * 1e9 / samples["slice_ns"]


def counter_faults(page, runs):
    """Plots of counters, for each NIC: links, and groups of what has changed, with the highest value of some."""
    for i, run in enumerate(runs):
        # The heading of a large group says how many of its counters it shows.
        plots = {title.split(", the ")[0]: canvas for section, canvas, title in page.plots if section == "counters" + suffix(i)}
        samples = run["samples"]
        if not samples or not samples["slices_ns"]:
            if plots:
                yield f"there are plots of counters without samples: {', '.join(plots)}"
            continue
        for name, nic in list(samples["nics"].items())[:4]:
            zeros = [0] * len(samples["slices_ns"])
            port, pcie, counters = (nic.get(kind, {}) for kind in ("port", "pcie", "counters"))
            # The highest value; None: not known here.
            want = {"wire": max(most(samples, (port.get(d + "_bytes", zeros), 8e-9), (port.get(d + "_frames", zeros), 24 * 8e-9))
                                for d in ("tx", "rx")),
                    "PCIe": max(most(samples, (pcie.get(d + "_bytes", zeros), 8e-9)) for d in ("to_host", "from_host"))}
            if "tx_frames" in port or "rx_frames" in port:
                want["frames, packets and completions"] = None
            if "dma_reads" in pcie or "dma_writes" in pcie:
                want["TLPs and interrupts"] = None
            if "pte_hit" in counters:
                want["look-ups in page tables and directories"] = most(samples, (counters["pte_hit"], 1))
            if "tx_retrans" in counters or "tx_timeout" in counters:
                want["retries, drops and errors"] = None
            for title, highest in want.items():
                canvas = plots.get(f"{name}: {title}")
                if canvas is None:
                    yield f"there is no plot {name}: {title}"
                elif highest is not None and abs(float(canvas["data-highest"]) - highest) > 1e-9 * highest:
                    yield f"the plot {name}: {title} reaches {canvas['data-highest']}, not {highest}"


def head_faults(page, runs):
    for run in runs:
        summary = run["summary"]
        wanted = [f"exit status {summary['exit_status']}"]
        if "began" in summary:
            wanted += [f"began {summary['began']}", f"urdma {summary['version']} ({summary['commit']})"]
        if summary["simulator"]:
            settings = summary["simulator"]["settings"]
            kinds = [name for name, key in (("pcap", "captures"), ("events", "events"), ("csv", "csv"), ("perfetto", "perfetto"), ("fst", "waves"))
                     if settings[key]]
            wanted.append(f"--trace {','.join(kinds) or 'none'}" + (f" --sample-us {settings['sample_us']}" if settings["sample_us"] else ""))
        for text in wanted:
            if text not in page.chips:
                yield f"the head does not show: {text}"


def percentile_faults(page, runs):
    """The bars of each percentile: the stages add up to about the percentile, and to the mean of its bucket."""
    bars = next((canvas["data-bars"] for section, canvas, _ in page.plots if section == "percentiles"), "").split()
    nics = [n for run in runs if run["events"] for n in run["events"]["nics"] if n["messages"]]
    known = [n["latency_ns"] for n in nics]
    if known and not bars or len(bars) % 5:
        yield f"the plot of percentiles has {len(bars)} bars"
    for k in range(0, len(bars), 5):
        got = [float(bar) for bar in bars[k:k + 5]]
        if not any(all(abs(x - d[name]) <= d[name] / 15 for x, name in zip(got, ("p50", "p90", "p99", "p99_9", "max"))) for d in known):
            yield f"bars of percentiles are those of no NIC: {got}"


def limit_faults(runs):
    for run in runs:
        for nic in run["events"]["nics"] if run["events"] else []:
            for q in nic["qps"]:
                if nic["limits_gbps"]["wire"] and max(q["sent"].get("gbps", []), default=0) > nic["limits_gbps"]["wire"] * 1.0001:
                    yield f"{nic['nic']}, QP {q['qp']}: {max(q['sent']['gbps'])} Gb/s pass the limit of {nic['limits_gbps']['wire']}"
            for link in "wire", "pcie":
                for way, part in nic[link].items():
                    if nic["limits_gbps"][link] and max(part["gbps"], default=0) > nic["limits_gbps"][link] * 1.0001:
                        yield f"{nic['nic']}, {link} {way}: {max(part['gbps'])} Gb/s pass the limit of {nic['limits_gbps'][link]}"


def faults(page, directory, sections):
    drawn = page.body.get("data-drawn")
    if drawn is None:
        yield "the page was not drawn"
    elif int(drawn) != len(page.plots):
        yield f"{drawn} plots were drawn, the page has {len(page.plots)}"
    if page.body.get("data-errors", ""):
        yield f"errors: {page.body['data-errors']}"
    for section, canvas, _ in page.plots:
        if int(canvas.get("data-points", 0)) == 0:
            yield f"plot {section} has no data"
        if int(canvas.get("width", 0)) < 100 or int(canvas.get("height", 0)) < 100:
            yield f"plot {section} is {canvas.get('width')} by {canvas.get('height')} pixels"
    for name, n in page.ids.items():
        if n > 1:
            yield f"two elements have the id {name}"
    for name in sections:
        if name not in page.text:
            yield f"there is no section {name}"
    for link in page.links:
        if link.startswith("#"):
            if urllib.parse.unquote(link[1:]) not in page.ids:
                yield f"the link {link} leads to nothing"
        elif not os.path.exists(os.path.join(directory, urllib.parse.unquote(link))):
            yield f"the link {link} leads to no file"
    for section, text in page.text.items():
        for word in re.findall(r"\b(undefined|NaN|null|Infinity|\[object)", text):
            yield f"section {section} shows {word}"
    runs = json.loads(page.data).get("runs", [])
    yield from trigger_faults(page, runs)
    yield from counter_faults(page, runs)
    yield from head_faults(page, runs)
    yield from percentile_faults(page, runs)
    yield from limit_faults(runs)
    for i, run in enumerate(runs):
        for w in run["events"]["slowest"] if run["events"] else []:
            begin, end = w["window_ns"]
            # The file's name says when the trace begins.
            if not any(link.endswith(f"-slowest{suffix(i)}/{begin}.perfetto") for link in page.links):
                yield f"no link leads to the moment of {w['nic']} QP {w['qp']} WQE {w['wqe']}"
            if not begin <= w["moments_ns"][0] <= w["moments_ns"][-1] < end:
                yield f"the trace from {begin} to {end} ns lacks {w['nic']} QP {w['qp']} WQE {w['wqe']}"
        text = page.text.get("verdict" + suffix(i), "")
        for nic in run["events"]["nics"] if run["events"] else []:
            if nic["messages"] and f" {nic['messages']:,} " not in f" {text} ":
                yield f"the verdict does not show the messages of {nic['nic']}: {nic['messages']:,}"


def main():
    page = Page()
    with open(sys.argv[1], encoding="utf-8") as dom:
        page.feed(dom.read())
    for fault in faults(page, sys.argv[2], sys.argv[3:]):
        print(fault)


main()
