#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/waves/scopes.sh OUT VERILATOR ARGUMENT...: the instances in urdma_sim_top for the compiler. ARGUMENTs are options
# and files with which VERILATOR reads the RTL with urdma_sim_top.
#
# OUT has a line for each instance, which sim/scopes.h makes a list of. A generate block with instances in it counts as one:
#
#   URDMA_SCOPE("nic.tx.seg")
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: scopes.sh OUT VERILATOR ARGUMENT..." >&2; exit 2; }
out=$1
verilator=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if ! "$verilator" --json-only --Mdir "$tmp" --top-module urdma_sim_top "$@" >"$tmp/log" 2>&1; then
	cat "$tmp/log" >&2
	exit 1
fi
{
	echo "/* SPDX-License-Identifier: Apache-2.0 */"
	echo "/* Generated from the RTL by tools/waves/scopes.sh. Do not edit. */"
	# shellcheck disable=SC2016  # variables of jq
	jq -r '
	# The instances in a node of the tree, each with the generate blocks around it before its name.
	def instances($blocks):
		if type == "array" then .[] | instances($blocks)
		elif type != "object" then empty
		elif .type == "CELL" then { name: ($blocks + .name), modp }
		elif .type == "GENBLOCK" and .name != "" then ($blocks + .name + ".") as $inner | .[] | instances($inner)
		else .[] | instances($blocks)
		end;
	(.modulesp | map({ key: .addr, value: [instances("")] }) | from_entries) as $of
	| def below($address): $of[$address][] | .name, .name + "." + below(.modp);
	[.modulesp[] | select(.name == "urdma_sim_top") | below(.addr)
	| split(".") | .[:range(1; length + 1)] | join(".")] | unique[] | "URDMA_SCOPE(\"\(.)\")"
	' "$tmp/Vurdma_sim_top.tree.json"
} >"$tmp/out"
grep -q '^URDMA_SCOPE' "$tmp/out" || { echo "scopes.sh: Verilator told no instances of urdma_sim_top" >&2; exit 1; }
mv "$tmp/out" "$out"
