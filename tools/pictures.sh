#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pictures.sh [DIR]: regenerates the pictures of the documents, docs/images/*.png: the reports of the runs in README.md
# and docs/analysis.md, as a browser shows them. It first runs the commands of both pages, for some minutes, with their
# results in DIR (default out). A run that DIR already has is not repeated, so figures of the page and pictures can come
# from the same runs: those of the test guest_analysis_full are in build/guest/tests/analysis.
#
# Needs the packages chromium and pngquant (tools/setup.sh full). Look at each picture before you commit it.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=pictures
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
cd "$top"
dir=${1:-out}
images=docs/images
limit=153600 # bytes of a picture

for program in chromium pngquant jq; do
	command -v $program >/dev/null || die "$program is missing: run tools/setup.sh full"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$dir" "$images"
dir=$(realpath "$dir")

# browser OPTION...: runs Chromium, which has no sandbox for root, and shows its output only if it fails.
browser() {
	HOME=$tmp chromium --headless --no-sandbox --hide-scrollbars --virtual-time-budget=5000 "$@" 2>"$tmp/browser.log" || {
		cat "$tmp/browser.log" >&2
		die "chromium failed"
	}
}

# picture NAME WIDTH PAGE SECTION...: a picture of these sections of a report, by their ids; head is the top of the page.
picture() {
	local name=$1 width=$2 page=$3 shown height
	shift 3
	[ -s "$page" ] || die "there is no $page"
	shown=$(jq -nc '$ARGS.positional' --args "$@")
	# Hide everything else. In a box with only one section left, that section gets the whole width.
	cat "$page" - >"$tmp/page.html" <<-EOF
	<script>
	const shown = ${shown}.map((id) => document.getElementById(id));
	for (const e of document.querySelectorAll('header, footer, main > *, main section'))
		if (!shown.some((s) => e.contains(s) || s.contains(e)))
			e.style.display = 'none';
	for (const s of shown)
		if (s.parentElement.classList.contains('grid'))
			s.parentElement.style.display = 'block';
	window.addEventListener('load', () => {
		document.body.dataset.bottom = Math.ceil(Math.max(...shown.map((s) => s.getBoundingClientRect().bottom)));
	});
	</script>
	EOF
	height=$(browser --window-size="$width,600" --dump-dom "file://$tmp/page.html" | sed -n 's/.*data-bottom="\([0-9]*\)".*/\1/p')
	[ -n "$height" ] || die "$page has not all of the sections $*"
	height=$((height + 8)) # as much as above
	browser --window-size="$width,$height" --screenshot="$tmp/shot.png" "file://$tmp/page.html" >/dev/null
	pngquant --force --strip --speed 1 --output "$images/$name.png" 64 "$tmp/shot.png"
	[ "$(stat -c %s "$images/$name.png")" -le $limit ] || die "$images/$name.png has more than $limit bytes"
	say "[pictures] $images/$name.png, $width x $height, $(stat -c %s "$images/$name.png") bytes"
}

# The README has more commands than its picture needs.
{
	tools/page-commands.sh README.md "$dir" | grep -F "$dir/write"
	tools/page-commands.sh docs/analysis.md "$dir"
} >"$tmp/commands"
while IFS= read -r command; do
	out=$(sed -n 's/.* --out \([^ ]*\) .*/\1/p' <<<"$command")
	if [[ $command = "./urdma run "* && -s $out/summary.json ]]; then
		continue
	fi
	say "[pictures] $command"
	bash -c "$command" </dev/null >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		die "the command failed"
	}
done <"$tmp/commands"

picture report 1280 "$dir/write/report.html" head verdict stages
picture analysis-doorbells 900 "$dir/batch/report.html" cost-of-message
picture analysis-pages 1280 "$dir/huge/report.html" stages
picture analysis-acks 1280 "$dir/lost-acks/report.html" retransmissions slowest
picture analysis-slot 1280 "$dir/slow-slot/report.html" verdict links
