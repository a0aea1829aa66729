#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# page-commands.sh PAGE [OUT]: prints the commands of a Markdown page, one per line, for the test of the page and for
# tools/pictures.sh. These are the indented blocks that begin with a program of the tree or with tshark; other blocks are
# output. A backslash at the end of a line joins it with the next one. OUT replaces the directory out/.
set -eu
awk -v out="${2-out}" '
!/^    / { if ($0 !~ /^ *$/) inside = 0; blank = 1; next }
{ sub(/^    /, "") }
blank { inside = /^(\.\/urdma|build\/|tshark) *[^ ]/; blank = 0 }
!inside { next }
{ gsub(/(^| )out\//, "&@"); gsub(/out\/@/, out "/") }
{ sub(/^ */, "") }
sub(/ *\\$/, "") { line = line $0 " "; next }
{ print line $0; line = "" }
' "$1"
