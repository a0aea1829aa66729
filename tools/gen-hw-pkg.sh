#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make the SystemVerilog package urdma_hw_pkg from the hardware contract: gen-hw-pkg.sh HEADER OUT.
#
# A number becomes a localparam with its name. A field (BIT_ULL, GENMASK_ULL) becomes NAME_LSB and
# NAME_W. NAME_LSB counts from bit 0 of the whole structure if the name has a word number
# (URDMA_CQE1_QPN: word 1, so 64 is added), else from bit 0 of the word.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 HEADER OUT" >&2; exit 2; }
awk '
BEGIN {
	print "// SPDX-License-Identifier: Apache-2.0"
	print "// Generated from driver/urdma_hw.h by tools/gen-hw-pkg.sh. Do not edit."
	print "/* verilator lint_off UNUSEDPARAM */"
	print "package urdma_hw_pkg;"
}
function word(name) {
	if (match(name, /^URDMA_[A-Z_]*[0-9]_/))
		return substr(name, RLENGTH - 1, 1) * 64
	return 0
}
$1 != "#define" || $2 !~ /^URDMA_/ || NF < 3 { next }
{
	value = $3
	for (i = 4; i <= NF; i++)
		value = value " " $i
}
value ~ /^BIT_ULL\([0-9]+\)$/ {
	split(value, part, /[()]/)
	printf "  localparam int %s_LSB = %d;\n  localparam int %s_W = 1;\n", $2, part[2] + word($2), $2
	next
}
value ~ /^GENMASK_ULL\([0-9]+, [0-9]+\)$/ {
	split(value, part, /[(), ]+/)
	printf "  localparam int %s_LSB = %d;\n  localparam int %s_W = %d;\n", $2, part[3] + word($2),
		$2, part[2] - part[3] + 1
	next
}
value ~ /^0x[0-9a-f]+$/ { printf "  localparam int %s = 32\047h%s;\n", $2, substr(value, 3); next }
value ~ /^[0-9]+$/ { printf "  localparam int %s = %s;\n", $2, value; next }
{
	print "gen-hw-pkg: cannot read: " $0 > "/dev/stderr"
	failed = 1
	exit 1
}
END {
	if (failed)
		exit 1
	print "endpackage"
	print "/* verilator lint_on UNUSEDPARAM */"
}
' "$1" > "$2.tmp"
mv "$2.tmp" "$2"
