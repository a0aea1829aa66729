#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/waves/view.sh OUT VIEW LANES VERILATOR ARGUMENT...: the list of signals VIEW (view.def) for the compiler. LANES is
# cosim/trace/lanes.def. ARGUMENTs are options and files with which VERILATOR reads the RTL with urdma_sim_top.
#
# OUT has a line for each group and signal, in the order of VIEW, which sim/view.h makes the files of the viewers of:
#
#   URDMA_VIEW_GROUP("title")
#   URDMA_VIEW_SIGNAL("name in urdma_sim_top", bits, radix, "label")    radix: hex, dec or enum
#
# Verilator says how wide a signal is. One that the RTL does not have is an error.
set -euo pipefail
[ $# -ge 5 ] || { echo "usage: view.sh OUT VIEW LANES VERILATOR ARGUMENT..." >&2; exit 2; }
out=$1
view=$2
lanes=$3
verilator=$4
shift 4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Lines: "g", title; "s", place in VIEW, radix, name, label. GTKWave cuts a label at its last dot, so labels have blanks.
awk -v view="$view" '
function wrong(why) {
	print view ":" FNR ": " why > "/dev/stderr"
	bad = 1
}
function signal(radix, name, label) {
	gsub(/\./, " ", label)
	print "s\t" FNR "\t" radix "\t" name "\t" label
}
FNR == NR {
	if (match($0, /^FIELD\([a-z_]+, [a-z_]+\)$/)) {
		split(substr($0, 7, length($0) - 7), f, ", ")
		field[f[1], ++fields[f[1]]] = f[2]
	}
	next
}
/^[ \t]*(#|$)/ { next }
$1 == "group" && /^group [A-Za-z0-9 ]+$/ { print "g\t" substr($0, 7); next }
$1 ~ /^(hex|dec|enum)$/ && NF == 2 {
	label = $2
	sub(/^nic\./, "", label)
	signal($1, $2, label)
	next
}
$1 == "fields" && $2 ~ /^(dec|enum)$/ {
	for (i = 3; i <= NF; i++)
		radix[$i] = $2
	next
}
$1 == "lane" && NF == 3 {
	if (!fields[$3])
		wrong("there is no lane " $3)
	signal("hex", $2 ".trace_" $3 "_valid", $3)
	for (i = 1; i <= fields[$3]; i++) {
		f[0] = field[$3, i]
		signal(f[0] in radix ? radix[f[0]] : "hex", $2 ".trace_" $3 "." f[0], $3 " " f[0])
	}
	next
}
{ wrong("not understood: " $0) }
END { exit bad }
' "$lanes" "$view" >"$tmp/list"

# One line of the probe for each line of the list, so that a message tells the signal.
awk -F '\t' '
BEGIN { printf "module urdma_view_probe; urdma_sim_top top ();" }
$1 == "s" { printf "$info(\"@%d %%0d\", $bits(top.%s));", NR, $4 }
{ print "" }
END { print "endmodule" }
' "$tmp/list" >"$tmp/urdma_view_probe.sv"
if ! "$verilator" --lint-only -Wno-PINMISSING --top-module urdma_view_probe "$@" "$tmp/urdma_view_probe.sv" >"$tmp/log" 2>&1; then
	sed -nE 's/^%Error: [^ ]*urdma_view_probe\.sv:([0-9]+):.*/\1/p' "$tmp/log" | sort -nu >"$tmp/gone"
	awk -F '\t' -v view="$view" '
	FNR == NR { gone[$1]; next }
	FNR in gone { print view ":" $2 ": the RTL has no signal " $4 > "/dev/stderr" }
	' "$tmp/gone" "$tmp/list"
	[ -s "$tmp/gone" ] || cat "$tmp/log" >&2
	exit 1
fi
sed -nE 's/^-Info: .*: @([0-9]+) ([0-9]+)$/\1\t\2/p' "$tmp/log" >"$tmp/bits"
awk -F '\t' -v view="$view" '
FNR == NR { bits[$1] = $2; next }
FNR == 1 {
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/* Generated from " view " by tools/waves/view.sh. Do not edit. */"
}
$1 == "g" { printf "URDMA_VIEW_GROUP(\"%s\")\n", $2; next }
!(FNR in bits) { print view ":" $2 ": Verilator has not told the width of " $4 > "/dev/stderr"; bad = 1 }
{ printf "URDMA_VIEW_SIGNAL(\"%s\", %d, %s, \"%s\")\n", $4, bits[FNR], $3, $5 }
END { exit bad }
' "$tmp/bits" "$tmp/list" >"$tmp/out"
mv "$tmp/out" "$out"
