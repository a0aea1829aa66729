#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compile C++ that Verilator wrote, two files at a time: ninja runs other steps beside this one.
#
#   build-model.sh DIR PREFIX SET OUT CFLAGS...
#
# SET says which of DIR/PREFIX*.cpp: "slow" is what runs when a model is made and in its first cycle,
# "fast" is the rest, "all" is both. The objects go to OUT.objs, with those of the slow set from
# SLOW_OBJECTS into the archive OUT, which appears when it is complete.
# PROFILE names a profile to compile by; an empty file there means that there is none.
set -euo pipefail
unset CDPATH
dir=$1 prefix=$2 set=$3 out=$4
shift 4
objs=$out.objs
rm -rf -- "$objs" "$out" "$out.part"
mkdir -p "$objs"
if [ -n "${PROFILE-}" ] && [ -s "$PROFILE" ]; then
	set -- "$@" "-fprofile-use=$PROFILE"
fi
# Sources are named relative to DIR, so that a compiler cache knows them in another build tree.
cd "$dir"
export VROOT CXX CXX_LAUNCHER objs
sources=()
for f in "$prefix"*.cpp; do
	case $f in
	*Slow*.cpp | *__Syms*.cpp) [ "$set" = fast ] || sources+=("$f") ;;
	*) [ "$set" = slow ] || sources+=("$f") ;;
	esac
done
# shellcheck disable=SC2016  # for the inner shell
printf '%s\0' "${sources[@]}" |
	xargs -0 -P 2 -I{} sh -c '
		f=$1; shift
		# Not worth the optimizer: it runs once.
		case $f in *Slow*.cpp | *__Syms*.cpp) set -- "$@" -O1 ;; esac
		${CXX_LAUNCHER:+"$CXX_LAUNCHER"} "$CXX" -std=gnu++17 -w -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 \
			-I"$VROOT/include" -I"$VROOT/include/vltstd" -I. "$@" -c "$f" -o "$objs/${f%.cpp}.o"' sh {} "$@"
list=("$objs"/*.o)
[ -z "${SLOW_OBJECTS-}" ] || list+=("$SLOW_OBJECTS"/*.o)
"$AR" rcs "$out.part" "${list[@]}"
mv "$out.part" "$out"
