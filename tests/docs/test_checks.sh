#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tools/check-hw-doc.sh and tools/check-md.sh on planted faults. Each fault has to be reported with its message; without a
# fault both have to print nothing. A failure means that `make lint` would miss such a fault.
# shellcheck disable=SC2016  # backquotes are Markdown's
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

# expect NAME STATUS WORDS COMMAND...: checks the exit status, and WORDS in the output.
expect() {
	local name=$1 status=$2 words=$3 got=0
	shift 3
	"$@" >"$tmp/out" 2>&1 || got=$?
	if [ $got = "$status" ] && { [ -z "$words" ] || grep -qF -e "$words" "$tmp/out"; }; then
		echo "ok: $name"
	else
		echo "FAIL: $name: status $got instead of $status, or not '$words':"
		cat "$tmp/out"
		bad=1
	fi
}

header() { cp "$top/driver/urdma_hw.h" "$tmp/h" && cp "$top/docs/hardware-interface.md" "$tmp/p.md"; }

# planted NAME WORDS FILE SED: changes the header (h) or the page (p.md).
planted() {
	header
	sed -i -E "$4" "$tmp/$3"
	if cmp -s "$tmp/h" "$top/driver/urdma_hw.h" && cmp -s "$tmp/p.md" "$top/docs/hardware-interface.md"; then
		echo "FAIL: $1: the fault could not be planted"
		bad=1
	else
		expect "$1" 1 "$2" "$top/tools/check-hw-doc.sh" "$tmp/h" "$tmp/p.md"
	fi
}

header
expect "page and header as they are" 0 "" "$top/tools/check-hw-doc.sh" "$tmp/h" "$tmp/p.md"
planted "a field moved in the header" "CQE0_STATUS is in bits 24:16" h 's/(CQE0_STATUS GENMASK_ULL\()23/\124/'
planted "a field moved in the page" "CQE1_QPN is in bits 55:32" p.md 's/55:32 (\| `CQE1_QPN)/47:32 \1/'
planted "another word" "SQE3_LENGTH is not in word 2" p.md 's/3 (\| 63:32 \| `SQE3_LENGTH)/2 \1/'
planted "a field of another register" "RF_CTRL_ENABLE belongs to register CTRL" p.md 's/\| `CTRL` \| 0/| | 0/'
planted "a new field in the header" "no table has URDMA_RF_STATUS_HOT" h \
	'/RF_STATUS_EQ0_LOST/a #define URDMA_RF_STATUS_HOT BIT_ULL(4)'
planted "a field missing in the page" "no table has URDMA_CPL7_PHASE" p.md '/\| `CPL7_PHASE`/d'
planted "another number" "CMD_SET_GID is 49 in the header" h 's/(CMD_SET_GID) 0x30/\1 0x31/'
planted "a register at another place" "REG_MAC is 96 in the header" p.md 's/0x0060 (\| `MAC`)/0x0068 \1/'
planted "a name that is gone, in the text" "RX_READ_DROPS is no name" p.md 's/\(`RX_READ_DROP`\)/(`RX_READ_DROPS`)/'

# A tree of a few files for the other check.
tree=$tmp/tree
mkdir -p "$tree/docs" "$tree/tools" "$tree/cosim" "$tree/tests/bench"
cp "$top/tools/check-md.sh" "$tree/tools/"
printf '#!/bin/sh\necho "  --loss P  lose"\n' >"$tree/urdma"
chmod +x "$tree/urdma"
echo '{ "stall-us", 1 }' >"$tree/cosim/options.c"
echo '{ "only", 1 }' >"$tree/tests/bench/bench.c"
(cd "$tree" && git init -q)

# page LINE...: a tree whose README.md has these lines.
page() {
	printf '%s\n' '# Top' '' '`--loss P`, `--stall-us`' >"$tree/docs/guide.md"
	printf '%s\n' '## The wire, 2' >"$tree/docs/cosim.md"
	printf '%s\n' "$@" >"$tree/README.md"
	(cd "$tree" && git add -A)
}
page '[a](docs/guide.md) [b](docs/cosim.md#the-wire-2)' '`cosim/*.c`'
expect "links, sections, paths, options as they should be" 0 "" "$tree/tools/check-md.sh"
page '[a](docs/none.md)'
expect "a link to nothing" 1 "README.md:1: there is no docs/none.md" "$tree/tools/check-md.sh"
page '' '[a](docs/cosim.md#the-wire)'
expect "a link to no section" 1 "README.md:2: docs/cosim.md has no section #the-wire" "$tree/tools/check-md.sh"
page '`tools/none.sh`'
expect "a path that is not there" 1 "there is no tools/none.sh" "$tree/tools/check-md.sh"
page 'with `--bogus`'
expect "an option that is not there" 1 "has --bogus" "$tree/tools/check-md.sh"
page '    x/urdma-bench --only "64 KB" --help'
expect "options of urdma-bench" 0 "" "$tree/tools/check-md.sh"
page '    x/urdma-bench --bogus'
expect "an option that urdma-bench does not have" 1 "urdma-bench with --bogus" "$tree/tools/check-md.sh"
page "    ./urdma run --nics 2 \\" '        --bogus -- ls --all'
expect "an option of a continued line" 1 "./urdma.(run|shell) with --bogus" "$tree/tools/check-md.sh"
page "$(printf '%0100d' 0)" '' "| $(printf '%0100d' 0) |" '' "    $(printf '%0100d' 0)"
expect "100 columns, and more in a table and in code" 0 "" "$tree/tools/check-md.sh"
page '' "$(printf '%0101d' 0)"
expect "101 columns" 1 "README.md:2: more than 100 columns" "$tree/tools/check-md.sh"
page ''
sed -i 's/--loss/--los/' "$tree/docs/guide.md"
expect "an option that the guide does not have" 1 "has --loss of ./urdma --help" "$tree/tools/check-md.sh"
exit $bad
