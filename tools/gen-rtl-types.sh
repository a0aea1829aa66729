#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make C headers from the packages of the RTL: gen-rtl-types.sh VERILATOR DIR FILE...
#
# The FILEs are the sources for Verilator, in order; each *_pkg.sv becomes DIR/*_pkg.h. Each packed struct
# gets TYPE_W and, for each member, TYPE_MEMBER_LSB and TYPE_MEMBER_W; values of enumerations and integer
# parameters keep their names. Tests access members by FIELD_GET() and so on in tests/rtl/bits.h. awk only
# finds the names. Verilator supplies the values: the script requests each by an elaboration message,
# because the format of Verilator's tree differs between versions.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 VERILATOR DIR FILE..." >&2; exit 2; }
verilator=$1
dir=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for f in "$@"; do
	case $f in */urdma_hw_pkg.sv) ;; *_pkg.sv) echo "$f" ;; esac
done >"$tmp/packages"
# shellcheck disable=SC2016  # awk's
tr '\n' '\0' <"$tmp/packages" | xargs -0 awk '
function ask(kind, a, b, value) { printf "  $info(\"@%s %s %s %%0d\", %s);\n", kind, a, b, value }
BEGIN { print "module urdma_types_probe;" }
{ sub(/\/\/.*/, "") }
$1 == "package" { pkg = $2; sub(/;.*/, "", pkg); next }
$1 == "endpackage" || $1 == "function" { inside = "" }
$1 == "localparam" && $2 == "int" || $1 == "localparam" && /^ *localparam logic \[[^]]*\] [A-Z0-9_]+ =/ {
	name = $0
	sub(/ *=.*/, "", name)
	sub(/.* /, "", name)
	ask("V", pkg, name, pkg "::" name)
	next
}
/typedef struct packed \{/ { inside = "struct"; n = 0; next }
/typedef enum .*\{/ { inside = "enum"; body = "" ; sub(/.*\{/, "") }
inside == "struct" && /^ *\}/ {
	type = $2
	sub(/;.*/, "", type)
	ask("T", pkg, type, "$bits(" pkg "::" type ")")
	printf "  %s::%s v_%s_%s;\n", pkg, type, pkg, type
	for (i = 1; i <= n; i++)
		ask("M", pkg, type " " member[i], "$bits(v_" pkg "_" type "." member[i] ")")
	inside = ""
	next
}
inside == "struct" && /;/ {
	sub(/ *;.*/, "")
	count = split($0, part, / *, */)
	sub(/.* /, "", part[1])
	for (i = 1; i <= count; i++)
		member[++n] = part[i]
	next
}
inside == "enum" {
	body = body " " $0
	if (!/\}/)
		next
	sub(/\}.*/, "", body)
	count = split(body, part, ",")
	for (i = 1; i <= count; i++) {
		sub(/=.*/, "", part[i])
		gsub(/[ \t]/, "", part[i])
		if (part[i] != "")
			ask("V", pkg, part[i], pkg "::" part[i])
	}
	inside = ""
}
END { print "endmodule" }
' >"$tmp/urdma_types_probe.sv"
"$verilator" --lint-only --top-module urdma_types_probe "$@" "$tmp/urdma_types_probe.sv" >"$tmp/log" 2>&1 || {
	cat "$tmp/log" >&2
	exit 1
}
sed -n 's/^-Info: .*: @//p' "$tmp/log" >"$tmp/values"
[ "$(grep -c 'info(' "$tmp/urdma_types_probe.sv")" -eq "$(wc -l <"$tmp/values")" ] || {
	echo "$0: Verilator has not told everything:" >&2
	cat "$tmp/log" >&2
	exit 1
}
mkdir -p "$dir"
while read -r f; do
	pkg=$(basename "$f" .sv)
	awk -v pkg="$pkg" '
function done() {
	if (type == "")
		return
	printf "enum {\n\t%s_W = %d,\n", type, width
	at = 0
	for (i = n; i; i--) {
		printf "\t%s_%s_LSB = %d,\n\t%s_%s_W = %d,\n", type, member[i], at, type, member[i], bits[i]
		at += bits[i]
	}
	print "};"
	if (at != width) {
		print "gen-rtl-types: the members of " type " do not make up its width" > "/dev/stderr"
		exit 1
	}
	type = ""
}
BEGIN {
	guard = toupper(pkg) "_H"
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/* Generated from " pkg ".sv by tools/gen-rtl-types.sh. Do not edit. */"
	print "#ifndef " guard "\n#define " guard "\n"
}
$2 != pkg { next }
$1 == "V" { done(); printf "enum { %s = %s };\n", $3, $4 }
$1 == "T" { done(); type = $3; width = $4; n = 0 }
$1 == "M" { member[++n] = $4; bits[n] = $5 }
END { done(); print "\n#endif" }
' "$tmp/values" >"$tmp/$pkg.h"
	mv "$tmp/$pkg.h" "$dir/$pkg.h"
done <"$tmp/packages"
