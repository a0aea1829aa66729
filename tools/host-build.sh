#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/host-build.sh [TARGET...]: configures build/ when needed and builds the host's programs.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
prog=build
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

log=$top/build/host-build.log
mkdir -p "$top/build"
exec 8>"$top/build/lock"
flock 8

run() {
	# On a terminal ninja's own progress line is the best there is.
	if [ -t 2 ] && [ "$1" = ninja ]; then
		"$@" >&2
	elif ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		die "$1 failed; the whole output is in $log"
	fi
}

if [ ! -e "$top/build/build.ninja" ]; then
	say "[build] configuring"
	run cmake -S "$top" -B "$top/build" -G Ninja
fi
t=$SECONDS
if ! ninja -C "$top/build" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
	say "[build] ${*:-everything} (the first time takes minutes: the RTL becomes C++ and is compiled) ..."
	run ninja -C "$top/build" -j "$(nproc)" "$@"
	say "[build] ... $((SECONDS - t)) s"
fi
