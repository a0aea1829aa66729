#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/host-build.sh [--waves] [TARGET...]: configures build/ if needed and builds the host's programs. --waves: uses
# build/waves, whose models can write waves.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=build
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

build=$top/build
options=()
if [ "${1-}" = --waves ]; then
	shift
	build=$top/build/waves
	# Training the profile would take long with waves, and its gain would be small.
	options=(-DURDMA_TRACE=ON -DURDMA_PGO=OFF)
fi
log=$build/host-build.log
mkdir -p "$build"
exec 8>"$build/lock"
flock 8

run() {
	# On a terminal, show ninja's own progress line.
	if [ -t 2 ] && [ "$1" = ninja ]; then
		"$@" >&2
	elif ! "$@" >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		die "$1 failed; the whole output is in $log"
	fi
}

if [ ! -e "$build/build.ninja" ]; then
	say "[build] configuring"
	run cmake -S "$top" -B "$build" -G Ninja ${options[@]+"${options[@]}"}
fi
t=$SECONDS
if ! ninja -C "$build" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
	say "[build] ${*:-everything} (the first time takes minutes: the RTL becomes C++ and is compiled) ..."
	run ninja -C "$build" -j "$(nproc)" "$@"
	say "[build] ... $((SECONDS - t)) s"
fi
