#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples.sh: builds each directory of examples/ by ./urdma build, and runs them in a guest (tests/guest/examples.sh).
# Before that, `build` itself: each kind of directory, what it refuses, and what a build on the host has left behind. A
# failure means that users cannot build their programs, or would run others than they built.
set -u
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
share=$top/build/guest/examples
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export URDMA_NO_BUILD=1
bad=0

# builds DIR OUT STATUS [WORDS]: the status, and WORDS among what it says.
builds() {
	local got=0
	"$top/urdma" build --out "$2" "$1" >"$tmp/log" 2>&1 </dev/null || got=$?
	if [ $got != "$3" ] || ! grep -qF -- "${4-}" "$tmp/log"; then
		echo "FAIL: build $1: status $got, not $3, or no '${4-}' in:"
		cat "$tmp/log"
		bad=1
	fi
}

# A program that the host has built, newer than its source, is not taken for the guest's.
mkdir "$tmp/mine" "$tmp/empty" "$tmp/text" "$tmp/o,ut"
echo 'int main(void) { return 0; }' >"$tmp/mine/mine.c"
printf 'mine: mine.c\n' >"$tmp/mine/Makefile"
cc -o "$tmp/mine/mine" -x c - <<<'int main(void) { return 1; }'
builds "$tmp/mine" "$tmp/o,ut" 0 "$tmp/o,ut/mine"
if ! [ -x "$tmp/o,ut/mine" ] || cmp -s "$tmp/mine/mine" "$tmp/o,ut/mine"; then
	echo "FAIL: the program that the host has built came out"
	bad=1
fi
# Only what changed is built again; a source that has gone is gone in the tree, too.
builds "$tmp/mine" "$tmp/o,ut" 0 "up to date"
rm "$tmp/mine/mine.c"
builds "$tmp/mine" "$tmp/o,ut" 1 "No rule to make target"
echo 'int main(void) { return oops; }' >"$tmp/mine/mine.c"
builds "$tmp/mine" "$tmp/o,ut" 1 "oops"
builds "$tmp/empty" "$tmp/o,ut" 2 "has no meson.build, CMakeLists.txt, Kbuild or Makefile"
builds "$tmp/none" "$tmp/o,ut" 2 "no directory"
builds "$tmp/mine" "$tmp/mine" 2 "directory of the sources"
printf 'all:\n\techo text >text\n' >"$tmp/text/Makefile"
builds "$tmp/text" "$tmp/o,ut" 1 "made no program"

for readme in "$top"/examples/*/README.md; do # `systems` has no sources.
	dir=$(dirname "$readme")
	name=$(basename "$dir")
	builds "$dir" "$share/$name" 0 "$share/$name/"
done
[ $bad = 0 ] || exit 1
exec "$top/tests/guest/host/in-guest.sh" -g examples --nics 2 --share "$share" "$@" -- bash /opt/urdma/tests/examples.sh
