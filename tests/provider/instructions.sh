#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/provider/instructions.sh --compiler NAME [--output FILE] [--compare TABLE] [--update TABLE]
#                                URDMA ERDMA
#
# Counts the instructions that the data path of two providers takes: ours, and erdma's, which is the limit. URDMA and ERDMA are
# the program instructions.c, linked with each of them. Prints the table, and fails when one of our figures is above its limit.
#
# With --compare the figures also have to equal those of TABLE, if the tools are those that made TABLE; the code of other
# compilers and libraries has other counts. --update writes TABLE.
set -euo pipefail

prog=instructions
die() {
	printf '%s: error: %s\n' "$prog" "$*" >&2
	exit 2
}

compiler='' output='' table='' update=''
while [ $# -gt 2 ]; do
	case $1 in
	--compiler) compiler=$2 ;;
	--output) output=$2 ;;
	--compare) table=$2 ;;
	--update) update=$2 ;;
	*) die "unknown option $1" ;;
	esac
	shift 2
done
[ $# = 2 ] || die "two programs are wanted"
command -v valgrind >/dev/null || die "valgrind is not there: run tools/setup.sh test"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# count PROGRAM: JSON, a list of {name, value}.
count() {
	local name=${1##*/} n=0 each row
	# libc's plainest memcpy(); otherwise libc chooses one that suits the CPU.
	GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-ERMS,-AVX512VL \
		valgrind --tool=callgrind --callgrind-out-file="$tmp/$name" --dump-after=row_end \
		'--toggle-collect=?rdma_post_send' '--toggle-collect=?rdma_post_recv' \
		'--toggle-collect=?rdma_poll_cq' "$1" >"$tmp/$name.rows" 2>"$tmp/$name.log" || {
		cat "$tmp/$name.log" >&2
		die "$1 failed under valgrind"
	}
	# callgrind numbers its output in the order in which the program prints its rows.
	while read -r each row; do
		n=$((n + 1))
		printf '%s\t%s\t%s\n' "$each" "$(sed -n 's/^totals: //p' "$tmp/$name.$n")" "$row"
	done <"$tmp/$name.rows" | jq -R -n '
		[inputs | split("\t") | {each: (.[0] | tonumber), total: (.[1] | tonumber), name: .[2]}]
		| map(select(.name != "-")) | group_by(.name)
		| map({name: .[0].name, value: ((map(.total) | add) / (map(.each) | add))})'
}

made_with="$compiler, $(getconf GNU_LIBC_VERSION), $(valgrind --version)"
count "$1" >"$tmp/ours.json"
count "$2" >"$tmp/limit.json"
jq -n --arg made_with "$made_with" --slurpfile ours "$tmp/ours.json" --slurpfile limit "$tmp/limit.json" '
	($limit[0] | map({key: .name, value: .value}) | from_entries) as $of
	| {made_with: $made_with,
	   rows: ($ours[0] | map({name, value: (.value * 1000 | round / 1000),
				  limit: ($of[.name] * 1000 | round / 1000)}))}' >"$tmp/table.json"
[ -z "$output" ] || cp "$tmp/table.json" "$output"
[ -z "$update" ] || cp "$tmp/table.json" "$update"

printf 'Instructions, %s\n%-36s %10s %12s\n' "$made_with" '' urdma 'erdma, limit'
jq -r '.rows[] | [.name, .value, .limit] | @tsv' "$tmp/table.json" |
	awk -F '\t' '{printf "%-36s %10.3f %12.3f%s\n", $1, $2, $3, ($2 > $3) ? "  MISSED" : ""}'
status=0
jq -e '(.rows | length > 0) and all(.rows[]; .value <= .limit)' "$tmp/table.json" >/dev/null || status=1

if [ -n "$table" ]; then
	if [ "$(jq -r .made_with "$table")" != "$made_with" ]; then
		echo "note: $table was made with $(jq -r .made_with "$table"): only the limits count"
	elif ! diff <(jq -S . "$table") <(jq -S . "$tmp/table.json"); then
		echo "$prog: the figures differ from $table (above). If that is meant, write the table anew" \
			"with --update and commit it with the change." >&2
		status=1
	fi
fi
exit $status
