#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Check the Markdown files of the tree.
#
#  - A link to a file leads to one that exists; a link to a section leads to a heading of that page.
#  - A path between backquotes that begins with a directory of the tree exists; * stands for anything.
#  - Prose has at most 100 columns; tables, headings and code may have more.
#  - An option that README.md, docs/guide.md or docs/cosim.md explains is one of the launcher or of the simulator; an
#    option in ./urdma --help is in one of the last two.
#  - An option in a page's call of a program of the tree exists in that program.
# Exit status 0 if all checks pass, else 1 with a line for each fault.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
status=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git ls-files --cached --others --exclude-standard >"$tmp/files"
# The directories with a trailing slash, as in links and text.
awk '{ while (sub(/\/[^\/]*$/, "")) print $0 "/" }' "$tmp/files" | sort -u >"$tmp/dirs"
grep '\.md$' "$tmp/files" >"$tmp/pages"

awk -v pages="$tmp/pages" '
function bad(text) {
	printf "%s:%d: %s\n", page, line_number, text
	failed = 1
}
# The anchor of a heading: lower case, without punctuation, hyphens for spaces.
function anchor(heading) {
	heading = tolower(heading)
	gsub(/[^a-z0-9 _-]/, "", heading)
	gsub(/ /, "-", heading)
	return heading
}
# TARGET as seen from DIRECTORY, without . and ..
function resolve(directory, target, part, out, n, i, depth) {
	n = split(directory "/" target, part, "/")
	depth = 0
	for (i = 1; i <= n; i++) {
		if (part[i] == "" || part[i] == ".")
			continue
		if (part[i] == "..")
			depth--
		else
			stack[++depth] = part[i]
	}
	out = ""
	for (i = 1; i <= depth; i++)
		out = out (i > 1 ? "/" : "") stack[i]
	return out
}
function exists(path) {
	sub(/\/$/, "", path)
	return (path in file) || ((path "/") in file)
}
# PATTERN is a path in which * stands for anything.
function matches(pattern, f) {
	sub(/\/$/, "", pattern)
	gsub(/[.+]/, "[&]", pattern)
	gsub(/\*/, "[^/]*", pattern)
	pattern = "^" pattern "/?$"
	for (f in file)
		if (f ~ pattern)
			return 1
	return 0
}
function check_link(target, path, section) {
	if (target ~ /^[a-z]+:/)
		return
	section = ""
	if (match(target, /#/)) {
		section = substr(target, RSTART + 1)
		target = substr(target, 1, RSTART - 1)
	}
	path = target == "" ? page : resolve(directory, target)
	if (!exists(path))
		bad("there is no " path)
	else if (section != "" && !((path "#" section) in heading))
		bad(path " has no section #" section)
}
function check_line(line, rest, found) {
	rest = line
	while (match(rest, /`[^`]*`/)) {
		found = substr(rest, RSTART + 1, RLENGTH - 2)
		rest = substr(rest, RSTART + RLENGTH)
		check_path(found)
	}
	gsub(/`[^`]*`/, "", line)
	while (match(line, /\]\([^) ]*\)/)) {
		found = substr(line, RSTART + 2, RLENGTH - 3)
		line = substr(line, RSTART + RLENGTH)
		check_link(found)
	}
}
function check_path(s, top) {
	top = s
	if (!sub(/\/.*/, "", top) || !((top "/") in file) || s !~ /^[A-Za-z0-9_.*\/-]+$/)
		return
	# Two words alone are the name of a test.
	if (s ~ /^[^\/.*]+\/[^\/.*]+$/)
		return
	if (!matches(s))
		bad("there is no " s)
}
# Call CHECK or take the headings of each line outside of code.
function read_page(name, check, code, indented, last_blank, line, n) {
	code = indented = line_number = 0
	last_blank = 1
	while ((getline line <name) > 0) {
		line_number++
		if (line ~ /^ *```/)
			code = !code
		indented = line ~ /^    / && (last_blank || indented)
		last_blank = line ~ /^ *$/
		if (code || indented)
			continue
		if (check) {
			check_line(line)
			if (length(line) > 100 && line !~ /^[|#]/)
				bad("more than 100 columns")
		} else if (line ~ /^#+ /) {
			sub(/^#+ +/, "", line)
			line = anchor(line)
			n = seen[name "#" line]++
			heading[name "#" line (n ? "-" n : "")] = 1
		}
	}
	close(name)
}
{ file[$0] = 1 }
END {
	while ((getline page <pages) > 0)
		read_page(page, 0)
	close(pages)
	while ((getline page <pages) > 0) {
		directory = page
		if (!sub(/\/[^\/]*$/, "", directory))
			directory = ""
		read_page(page, 1)
	}
	exit failed
}
' "$tmp/files" "$tmp/dirs" || status=1

# The simulator's options are searched in its sources, which name them with or without the hyphens.
./urdma --help >"$tmp/help"
for option in $(grep -ohE '`--[a-z][a-z-]*' README.md docs/guide.md docs/cosim.md | tr -d '`' | sort -u); do
	grep -qw -e "$option" "$tmp/help" || grep -rqE "\"(--)?${option#--}\\b" cosim || {
		echo "README.md, docs/guide.md or docs/cosim.md: neither the launcher nor the simulator has $option"
		status=1
	}
done
for option in $(grep -oE '(^|[ ,])--[a-z][a-z-]*' "$tmp/help" | tr -d ' ,' | sort -u); do
	[ "$option" = --help ] || grep -qw -e "$option" docs/guide.md docs/cosim.md || {
		echo "neither docs/guide.md nor docs/cosim.md has $option of ./urdma --help"
		status=1
	}
done
# Words of pages that call PROGRAM: to the end of the line, with continued lines joined, or of the backquotes, and
# without a guest's command after " -- ".
calls() {
	git ls-files -z '*.md' | xargs -0 sed -E -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' |
		sed -nE "s#(.*[ \`/])?$1 ##p" | sed -e 's/`.*//' -e 's/ -- .*//'
}
# PROGRAM, an expression of sed, and its sources, which name the options with or without the hyphens.
while read -r program sources; do
	for option in $(calls "$program" | grep -oE '(^| )--[a-z][a-z-]*' | tr -d ' ' | sort -u); do
		# shellcheck disable=SC2086  # several files
		[ "$option" = --help ] || grep -rqsE "(\"|--)${option#--}\\b" $sources || {
			echo "the pages call $program with $option, which it does not have"
			status=1
		}
	done
done <<EOF
urdma-bench tests/bench/bench.c
urdma-cosim cosim/options cosim/main.c
urdma-events cosim/events/main.c
vfio_probe_device tests/cosim/vfio_probe_device.c
tools/speed.sh tools/speed.sh
tools/host-build.sh tools/host-build.sh
tests/provider/instructions.sh tests/provider/instructions.sh
./urdma.(run|shell) urdma cosim/options
EOF
exit $status
