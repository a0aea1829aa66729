#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hook.sh DIR PREFIX: change the C++ that Verilator wrote with --trace-fst for a block test. Each model tells a
# BlockWaves (block.h) when it has been evaluated, so the tests need not know of waves.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
sed -i "s|^    void eval() { eval_step(); }|    BlockWaves blockWaves;\n    void eval() { eval_step(); blockWaves.evaluated(*this); }|
	s|^#include \"verilated.h\"|&\n#include \"$here/block.h\"|" "$1/$2.h"
[ "$(grep -c 'blockWaves\|block\.h' "$1/$2.h")" = 3 ]
