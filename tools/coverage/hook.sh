#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hook.sh DIR PREFIX NAME: change the C++ that Verilator wrote with --coverage.
#
#  - A model that ends calls urdma_coverage_add() (model.h).
#  - The points are not registered with the run-time. That takes longer than most tests, and
#    tools/coverage.sh reads them from the C++.
#  - The header of the run-time is left to model.h: cmocka's macros do not bear it.
set -eu
sed -i "s/^    delete vlSymsp;/    urdma_coverage_add(\"$3\", vlSymsp->__Vcoverage);\n&/" "$1/$2.cpp"
grep -q urdma_coverage_add "$1/$2.cpp"
sed -i 's/\bVL_COVER_INSERT(/URDMA_COVER_POINT(/' "$1/$2"*Slow.cpp
sed -i '/^#include "verilated_cov.h"/d' "$1"/*.h
