#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compile what Verilator wrote in DIR into DIR/PREFIX.a: build-model.sh DIR PREFIX CFLAGS...
# Two compilers at a time: ninja runs other steps beside this one.
set -euo pipefail
dir=$1 prefix=$2
shift 2
cd "$dir"
rm -f -- *.o "$prefix.a"
export VROOT CXX CXX_LAUNCHER
# shellcheck disable=SC2016  # for the inner shell
printf '%s\0' "$prefix"*.cpp |
	xargs -0 -P 2 -I{} sh -c '
		f=$1; shift
		${CXX_LAUNCHER:+"$CXX_LAUNCHER"} "$CXX" -std=gnu++17 -w -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 \
			-I"$VROOT/include" -I"$VROOT/include/vltstd" -I. "$@" -c "$f" -o "${f%.cpp}.o"' sh {} "$@"
"$AR" rcs "$prefix.a" -- *.o
