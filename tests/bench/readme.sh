#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# readme.sh --check|--update TABLE README: README's table of the benchmark has the figures of the
# committed table. It stands between the lines "<!-- bench -->" and "<!-- /bench -->"; which rows it
# has is up to README, by their names in the first column. --update writes the figures anew.
set -eu

mode=$1 table=$2 readme=$3
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT

# figures NAME: the cells behind a row's name, or nothing when the table has no such row.
figures() {
	jq -r --arg name "$1" '
		def digits: if . >= 1000 then round else (. * 100 | round / 100) end;
		.[] | select(.name == $name) |
		" \(.value | digits) \(.unit) | \(.limit | digits) (\(.by)) |" +
		" \(.percent | digits) % | \(.floor | digits) |"
	' "$table"
}

inside=0 rows=0
while IFS= read -r line; do
	case $line in
	'<!-- bench -->') inside=1 ;;
	'<!-- /bench -->') inside=0 ;;
	'| row |'* | '|---'*) ;;
	'| '*)
		if [ $inside = 1 ]; then
			name=${line#'| '}
			name=${name%%' |'*}
			cells=$(figures "$name")
			rows=$((rows + 1))
			if [ -z "$cells" ]; then
				echo "$readme: the committed table has no row \"$name\"" >&2
				[ "$mode" = --check ] && exit 1
				cells=' - | - | - | - |'
			fi
			line="| $name |$cells"
		fi
		;;
	esac
	printf '%s\n' "$line"
done <"$readme" >"$tmp"

if [ $rows = 0 ]; then
	echo "$readme: no table of the benchmark" >&2
	exit 1
fi
if [ "$mode" = --update ]; then
	cat "$tmp" >"$readme"
elif ! diff -u "$readme" "$tmp" >&2; then
	echo "$readme: its table is not that of $table; run \"make bench-update\"" >&2
	exit 1
fi
