#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/model-registers.sh DIR TOP: the registers of a Verilated model, for sim/urdma_sim.cc, on stdout.
#
# The RTL names each register that is not a memory *_reg (tools/lint.sh checks it), and Verilator keeps
# the names as members of the class of the top, into which it has inlined all modules. Each becomes a
# line URDMA_REGISTER(member). What Verilator made itself (names with __V) is no state.
set -euo pipefail
dir=$1 top=$2
root=$dir/V${top}___024root.h

members() {
	sed -nE 's/^[[:space:]]*(CData|SData|IData|QData|VlWide|VlUnpacked).*[[:space:]]([A-Za-z_0-9]+);$/\2/p' "$1"
}

for header in "$dir"/V"$top"_*.h; do
	if [ "$header" != "$root" ] && members "$header" | grep -q '_reg$'; then
		echo "$header holds registers: Verilator has not inlined the module, so their changes would go unseen" >&2
		exit 1
	fi
done
registers=$(members "$root" | grep '_reg$' | grep -v '^__V' | sort -u)
cycles=${top}__DOT__ctl__DOT__regs__DOT__cycles_reg
for want in "$cycles" "${top}__DOT__ctl__DOT__regs__DOT__cnt_reg"; do
	grep -qx "$want" <<<"$registers" || {
		echo "no register $want in $root: does Verilator name members in another way?" >&2
		exit 1
	}
done
echo "// Made by tools/model-registers.sh: all registers but the cycle counter."
grep -vx "$cycles" <<<"$registers" | sed 's/.*/URDMA_REGISTER(&)/'
