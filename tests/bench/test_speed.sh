#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/speed.sh refuses invalid arguments before it builds anything. Usage: test_speed.sh TREE
set -u
tree=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# refused STATUS WORDS ARGUMENT...
refused() {
	local want=$1 words=$2 status
	shift 2
	timeout 60 "$dir/clone/tools/speed.sh" "$@" >"$dir/out" 2>&1
	status=$?
	[ $status = "$want" ] || fail "$* exits $status"
	grep -q -- "$words" "$dir/out" || fail "$* says: $(cat "$dir/out")"
	[ ! -e "$dir/clone/build" ] || fail "$* has begun to build"
}

# A history of two commits, of which the clone has the last one.
git init -q "$dir/origin" || exit 1
for i in 1 2; do
	echo "$i" >"$dir/origin/file"
	git -C "$dir/origin" add file
	git -C "$dir/origin" -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -qm "$i" || exit 1
done
first=$(git -C "$dir/origin" rev-parse HEAD~1)
git clone -q --depth 1 "file://$dir/origin" "$dir/clone" || exit 1
cp -r "$tree/tools" "$dir/clone/"

refused 2 'no list of loads' --only ping
refused 2 'not a number from 1 on' --rounds 0
refused 2 'needs a value' --rounds
refused 2 "unknown option '--round'" --round 3
refused 2 'one commit is enough' a b
refused 2 'compares this tree with itself' --events a
refused 1 "no commit '$first' in this clone, which is a shallow one" "$first"
git -C "$dir/clone" fetch -q --unshallow
refused 1 "there is no commit 'nobody'" nobody
timeout 60 "$dir/clone/tools/speed.sh" --help | grep -q -- --rounds || fail "--help does not tell --rounds"
exit $failed
