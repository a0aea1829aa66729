#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_view.py TOP NIC FST [SCOPE]: do the files for GTKWave and Surfer beside FST show what view.def and the RTL have?

TOP is the tree. With SCOPE the waves are those of one instance, and the view has the signals that lie in it. Both files have
the signals of tools/waves/view.def in its order, each with the width that it has in FST. A signal is shown as an enumeration
if FST has names for its values. All tables of names in FST are those of the RTL. Exits with 1 and says what differs.
"""
import pathlib
import re
import sys

import pywellen

ENUM = 0x100000028  # TR_ENUM of GTKWave, with TR_BIN, to the right
GROUPS = (0x800200, 0x1000200)


def enums_of_rtl(rtl):
    """{(scope, type): [(name, value)]}: of packages and modules."""
    found = {}
    for path in rtl.rglob("*.sv"):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        scope = re.search(r"^(?:package|module)\s+(\w+)", text, re.M).group(1)
        for body, name in re.findall(r"typedef\s+enum\b[^{]*\{([^}]*)\}\s*(\w+)\s*;", text):
            items, value = [], 0
            for item in body.split(","):
                label, _, given = (part.strip() for part in item.partition("="))
                if given:
                    number = re.fullmatch(r"(?:\d*'([dhb]))?([0-9a-fA-F_]+)", given)
                    value = int(number.group(2), {"h": 16, "b": 2}.get(number.group(1), 10))
                items.append((label, value))
                value += 1
            found[scope, name] = items
    return found


def signals_of_def(top):
    """The names in view.def, with those of its lanes, in order."""
    lanes = {}
    for lane, field in re.findall(r"^FIELD\((\w+), (\w+)\)", (top / "cosim/trace/lanes.def").read_text("ascii"), re.M):
        lanes.setdefault(lane, []).append(field)
    names, seen = [], set()
    for line in (top / "tools/waves/view.def").read_text("ascii").splitlines():
        word = line.split()
        if word[:1] in (["hex"], ["dec"], ["enum"]):
            names.append(word[1])
        elif word[:1] == ["lane"]:
            seen.add(word[2])
            names += [f"{word[1]}.trace_{word[2]}_valid"] + [f"{word[1]}.trace_{word[2]}.{f}" for f in lanes[word[2]]]
    return names, sorted(set(lanes) - seen)


def read_gtkw(path):
    """[(name, bits, flags)], and what is wrong."""
    signals, wrong, flags, group = [], [], None, None
    for line in path.read_text("ascii").splitlines():
        if line.startswith("@"):
            flags = int(line[1:], 16)
        elif line.startswith("-"):
            if flags not in GROUPS or (group is None) != (flags == GROUPS[0]) or group not in (None, line):
                wrong.append(f"{path.name}: group {line} begins or ends at the wrong place")
            group = line if flags == GROUPS[0] else None
        elif line.startswith("+"):
            label, name, left = re.fullmatch(r"\+\{([\w ]+)\} ([\w.]+)(?:\[(\d+):0\])?", line).groups()
            if group is None:
                wrong.append(f"{path.name}: {label} is in no group")
            signals.append((name, int(left) + 1 if left else 1, flags))
    for key, ext in (("dumpfile", ".fst"), ("savefile", ".gtkw")):
        if f'[{key}] "/{path.stem}{ext}"' not in path.read_text("ascii").splitlines():
            wrong.append(f"{path.name} does not name its {key}")
    return signals, wrong


def main(top, nic, fst, scope=None):
    top, fst = pathlib.Path(top), pathlib.Path(fst)
    variables = {v.full_name: v for v in pywellen.Waveform(str(fst)).all_vars()}
    base = nic + ".urdma_sim_top."
    names, unseen = signals_of_def(top)
    wrong = [f"view.def does not show the lane {lane}" for lane in unseen]
    want = [base + n for n in names if not scope or n.startswith(scope + ".")]
    wrong += [f"{fst.name} has no signal {n}" for n in want if n not in variables]

    shown, more = read_gtkw(fst.with_suffix(".gtkw"))
    wrong += more
    commands = [line.split(" ") for line in fst.with_suffix(".sucl").read_text("ascii").splitlines()]
    wrong += [f"Surfer does not know the command '{' '.join(c)}'" for c in commands
              if c != ["zoom_fit"] and (c[0] not in ("divider_add", "variable_add") or len(c) != 2)]
    for viewer, got in (("GTKWave", [n for n, _, _ in shown]), ("Surfer", [c[1] for c in commands if c[0] == "variable_add"])):
        if got != want:
            wrong.append(f"{viewer} shows {len(got)} signals instead of {len(want)}: {sorted(set(got) ^ set(want))[:5]}")
    for name, bits, flags in shown:
        v = variables.get(name)
        if v and bits != v.bitwidth:
            wrong.append(f"{name} has {v.bitwidth} bits, and {bits} in the view")
        if v and (flags == ENUM) != (v.enum_type is not None):
            wrong.append(f"{name}: {'no' if flags == ENUM else 'has'} names of its values")

    rtl, tables = enums_of_rtl(top / "rtl"), {v.enum_type[0]: v.enum_type[1] for v in variables.values() if v.enum_type}
    for table, got in tables.items():
        items = rtl.get(tuple(re.split(r"::|\.", table)))
        if items != [(label, int(value, 2)) for value, label in got]:
            wrong.append(f"{table}: {got}, and in the RTL {items}")
    if not tables:
        wrong.append("no signal has names of its values")
    print("\n".join(wrong) or f"{fst.name}: {len(want)} signals, {len(tables)} enumerations")
    return 1 if wrong or not want else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
