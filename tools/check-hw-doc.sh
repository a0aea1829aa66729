#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hardware contract exists twice: for programs in the header, for readers in the page. Check that both agree:
# check-hw-doc.sh [HEADER PAGE]. Exit status 0 if they do, else 1 with a line for each difference.
#
# In the page a table is compared if it has
#  - a column "bits" and a column "field", "command field" or "register field": each row is a bit field. A column "word"
#    is the word of the structure, a column "register" the register (empty: that of the row above);
#  - a second column "name", "register", "counter" or "command": each row is a number, which is in the first column.
# The title of the name's column says which prefix the names leave out besides URDMA_.
# Every row must be in the header with the same position or value, and every name of the header in a row. In the text, a
# word in capitals between backquotes must be a name of the header, or the end of one.
#
# The header is read through tools/gen-hw-pkg.sh, so this checks the RTL's values too.
set -eu
tools=$(CDPATH='' cd "$(dirname "$0")" && pwd)
header=${1-$tools/../driver/urdma_hw.h}
page=${2-$tools/../docs/hardware-interface.md}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sh "$tools/gen-hw-pkg.sh" "$header" "$tmp/pkg"

awk -v page="${page##*/}" '
function bad(text) {
	printf "%s:%d: %s\n", page, FNR, text
	failed = 1
}
# A number as the page or the package writes it.
function number(s, n, i) {
	sub(/^32\047h/, "0x", s)
	if (s !~ /^0x/)
		return s + 0
	for (i = 3; i <= length(s); i++)
		n = 16 * n + index("0123456789abcdef", tolower(substr(s, i, 1))) - 1
	return n
}
function trim(s) {
	gsub(/^[ \t]+|[ \t]+$/, "", s)
	return s
}
# Finds the columns by which a table with these titles is checked.
function begin_table(cell, n, i) {
	named = bits = word = register = 0
	for (i = 1; i <= n; i++) {
		if (cell[i] == "bits")
			bits = i
		else if (cell[i] == "word")
			word = i
		else if (cell[i] == "register")
			register = i
		if (cell[i] in field_prefix)
			named = i
	}
	if (bits && named) {
		prefix = field_prefix[cell[named]]
		return
	}
	bits = named = 0
	if (cell[2] in number_prefix) {
		named = 2
		prefix = number_prefix[cell[2]]
	}
}
function check_field(name, cell, part, high, low) {
	if (!(name in lsb)) {
		bad(name " is not a field of the header")
		return
	}
	high = low = cell[bits]
	if (split(cell[bits], part, ":") == 2) {
		high = part[1]
		low = part[2]
	}
	if (low != lsb[name] % 64 || high != lsb[name] % 64 + width[name] - 1)
		bad(sprintf("%s is in bits %d:%d of the header, not %s", name, lsb[name] % 64 + width[name] - 1,
			    lsb[name] % 64, cell[bits]))
	if (prefix == "RF_") {
		if (register && cell[register] != "")
			last_register = cell[register]
		if ("`" owner[name] "`" != last_register)
			bad(name " belongs to register " owner[name] ", not " last_register)
	} else if (word && (!(name in has_word) || cell[word] != int(lsb[name] / 64))) {
		bad(name " is not in word " cell[word] " of the header")
	} else if (!word && name in has_word) {
		bad(name " has a word, which the table does not say")
	}
}
function check_number(name, value) {
	if (!(name in is))
		bad(name " is not a number of the header")
	else if (value !~ /^(0x[0-9a-fA-F]+|[0-9]+)$/ || number(value) != is[name])
		bad(sprintf("%s is %d in the header, not %s", name, is[name], value))
}
function check_row(cell, name) {
	name = cell[named]
	if (name !~ /^`[A-Z0-9_]+`$/) {
		bad("not a name: " name)
		return
	}
	gsub(/`/, "", name)
	# The registers of an Ethernet queue pair are offsets and have no REG_.
	if (prefix != "REG_" || ("REG_" name) in is)
		name = prefix name
	seen[name] = 1
	if (bits)
		check_field(name, cell)
	else
		check_number(name, cell[1])
}
# Names in the text: `NAME`, `GROUP.NAME`, `GROUP_*`.
function check_words(line, s) {
	while (match(line, /`[^`]*`/)) {
		s = substr(line, RSTART + 1, RLENGTH - 2)
		line = substr(line, RSTART + RLENGTH)
		sub(/\./, "_", s)
		if (s ~ /^[A-Z][A-Z0-9_]*[A-Z0-9]$/ ? !(s in ending) : s ~ /^[A-Z][A-Z0-9_]*_\*$/ && !(s in group))
			bad(s " is no name of the header")
	}
}
BEGIN {
	field_prefix["field"] = ""
	field_prefix["command field"] = "CMD_"
	field_prefix["register field"] = "RF_"
	number_prefix["name"] = ""
	number_prefix["register"] = "REG_"
	number_prefix["counter"] = "CNT_"
	number_prefix["command"] = "CMD_"
}
# ---- the header, as in the package
FNR == NR {
	if ($1 != "localparam")
		next
	name = $3
	sub(/;$/, "", $5)
	sub(/^URDMA_/, "", name)
	if (name ~ /_LSB$/) {
		sub(/_LSB$/, "", name)
		lsb[name] = $5
		owner[name] = last
		if (name ~ /^[A-Z_]*[0-9]_/)
			has_word[name] = 1
	} else if (name ~ /_W$/ && substr(name, 1, length(name) - 2) in lsb) {
		width[substr(name, 1, length(name) - 2)] = $5
		next
	} else {
		is[name] = number($5)
		if (name ~ /^(REG|ETHQ)_/) {
			last = name
			sub(/^REG_/, "", last)
		}
	}
	names[++n_names] = name
	for (rest = name; ; rest = substr(rest, i + 1)) {
		ending[rest] = 1
		i = index(rest, "_")
		if (!i)
			break
		for (k = i; k <= length(rest); k++)
			if (substr(rest, k, 1) == "_")
				group[substr(rest, 1, k) "*"] = 1
	}
	next
}
# ---- the page
{ check_words($0) }
!/^\|/ { in_table = 0; next }
{
	n = split($0, raw, "|")
	delete cell
	for (i = 2; i < n; i++)
		cell[i - 1] = trim(raw[i])
	n -= 2
	if (!in_table) {
		in_table = 1
		last_register = ""
		begin_table(cell, n)
	} else if (named && cell[1] !~ /^-+$/) {
		check_row(cell)
	}
}
END {
	for (i = 1; i <= n_names; i++)
		if (!(names[i] in seen)) {
			printf "%s: no table has URDMA_%s\n", page, names[i]
			failed = 1
		}
	exit failed
}
' "$tmp/pkg" "$page"
