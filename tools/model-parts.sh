#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/model-parts.sh ports OUT TOP RTL...: a configuration of Verilator that keeps the ports of the NIC's parts.
# tools/model-parts.sh members OUT DIR TOP RTL...: the positions of the parts' registers and ports in the model DIR,
# in which it also groups the members of each part.
#
# A part is an instance with its own clock, from an instance of urdma_clk named clk_<instance> right before it.
# sim/urdma_sim.cc omits the clock of a part in which nothing changes. For this it needs these facts about each part:
#
#   URDMA_REGISTER(part, member)           a register: the RTL names each that is not a memory *_reg
#                                          (tools/lint.sh checks it)
#   URDMA_INPUT(part, member)              an input, or a valid of the part that qualifies one
#   URDMA_QUALIFIED(part, member, valid)   an input that means something while valid is set, only
#   URDMA_TIMER(part, armed, cycles)       outputs: the part acts in so many cycles without an input
#   URDMA_PART(part, "name")
#   URDMA_INNER(part, inner)               a part inside of the part
#   URDMA_EVAL_EDGES                       1: sim/clocks.h may call what is behind eval()
#
# Verilator inlines all modules and keeps names as members of the top's class. Members that it added (names with __V)
# are not state. Each register is in a part, except the cycle counter: a register outside of parts would always be
# clocked, with all that depends on it. x_valid qualifies an input x or x_more, and the valid of a handshake qualifies
# its ready, whichever side drives it. The input "cycles" is time itself: logic that waits for it has a timer.
set -euo pipefail
mode=$1
out=$2
shift 2
if [ "$mode" = members ]; then
	dir=$1
	shift
fi
top=$1
shift

members() {
	sed -nE 's/^[[:space:]]*(VL_IN|VL_OUT)?.*(CData|SData|IData|QData|VlWide|VlUnpacked).*[[:space:]]([A-Za-z_0-9]+);$/\3/p' "$1"
}

# Verilator orders members only by size, so registers of a part are between wires of all others. This puts all inputs
# first, then the registers and wires of each part, then memories. In each group the largest alignment comes first, so
# there are no holes. Only the order of lines changes; the class has the same members.
layout() {
	local root=$1 list=$2
	awk -v top="$top" '
		function group_of(member, type,   p, best, length_of) {
			if (member in group)
				return group[member]
			if (type ~ /VlUnpacked/)
				return 9999
			best = 4999
			for (p in prefix)
				if (index(member, prefix[p]) && length(prefix[p]) > length_of) {
					best = 2 * p + 2
					length_of = length(prefix[p])
				}
			return best
		}
		FNR == NR {
			split($0, f, /[(), "]+/)
			if (f[1] == "URDMA_PART") {
				gsub(/\./, "__DOT__", f[3])
				prefix[f[2]] = top "__DOT__" f[3] "__DOT__"
			} else if (f[1] == "URDMA_INPUT")
				group[f[3]] = 0
			else if (f[1] == "URDMA_QUALIFIED" || f[1] == "URDMA_REGISTER")
				group[f[3]] = 2 * f[2] + 1
			next
		}
		match($0, /^ +(CData|SData|IData|QData|VlWide<|VlUnpacked<)[^()]* [A-Za-z_0-9]+;$/) {
			member = $NF
			sub(/;$/, "", member)
			printf "%04d %d %06d %s\n", group_of(member, $0),
				/QData/ ? 0 : /IData|VlWide/ ? 1 : /SData/ ? 2 : 3, FNR, $0
		}
	' "$list" "$root" | sort >"$root.order"
	# The positions are those of the sorted lines, in the order of their numbers.
	awk '
		FNR == NR { taken[$3 + 0] = 1; line[FNR] = substr($0, 15); next }
		FNR in taken { print line[++n]; next }
		{ print }
	' "$root.order" "$root" >"$root.new"
	mv "$root.new" "$root"
	rm "$root.order"
}

# Checks that eval() does only what the function does that sim/clocks.h calls instead: the function has this name, and
# there is no other phase, such as one for logic between inputs and outputs.
edges() {
	local dir=$1 is=0
	if grep -q "___eval_triggers_vec__act(" "$dir"/*.cpp && grep -q "___eval_phase__nba(" "$dir"/*.cpp &&
		! grep -qE "___eval_phase__(ico|inact|obs|react)\(" "$dir"/*.cpp; then
		is=1
	fi
	echo "#undef URDMA_EVAL_EDGES"
	echo "#define URDMA_EVAL_EDGES $is"
}

registers=
if [ "$mode" = members ]; then
	root=$dir/V${top}___024root.h
	for header in "$dir"/V"$top"_*.h; do
		if [ "$header" != "$root" ] && members "$header" | grep -q '_reg$'; then
			echo "$header holds registers: Verilator has not inlined the module, so their changes would go unseen" >&2
			exit 1
		fi
	done
	registers=$(members "$root" | grep '_reg$' | grep -v '^__V' | sort -u)
	cycles=${top}__DOT__nic__DOT__ctl__DOT__cycles_reg
	for want in "$cycles" "${top}__DOT__nic__DOT__ctl__DOT__regs__DOT__cnt_reg"; do
		grep -qx "$want" <<<"$registers" || {
			echo "no register $want in $root: does Verilator name members in another way?" >&2
			exit 1
		}
	done
	registers=$(grep -vx "$cycles" <<<"$registers")
fi

# The list of registers is too long for an argument.
awk -v mode="$mode" -v top="$top" -v registers=<(printf '%s\n' "$registers") '
	function fail(why) {
		print why >"/dev/stderr"
		failed = 1
		exit 1
	}
	# The instance of a module, "" for the top: modules that contain parts have only one instance.
	function path(module) {
		if (module == top)
			return ""
		if (uses[module] != 1)
			fail(module " has a part in it and " uses[module] + 0 " instances; only one is possible")
		return inside(parent[module], name[module])
	}
	function inside(module, instance,   p) {
		p = path(module)
		return (p == "" ? "" : p ".") instance
	}
	function member(p, port) {
		p = top "." (p == "" ? "" : p ".") port
		gsub(/\./, "__DOT__", p)
		return p
	}
	# The port that qualifies another one, or "".
	function valid(module, port,   s, v) {
		s = port
		if (sub(/_tready$/, "_tvalid", s) || sub(/_ready$/, "_valid", s))
			return ((module, s) in direction) ? s : ""
		if (port == "rst" || port ~ /_t?valid$/)
			return ""
		for (s = port; s != ""; ) {
			v = s "_valid"
			if (!((module, v) in direction))
				v = s "_tvalid"
			if ((module, v) in direction)
				return direction[module, v] == direction[module, port] ? v : ""
			if (!sub(/_[a-z0-9]+$/, "", s))
				break
		}
		return ""
	}
	function inputs(part, module, p,   i, n, port, list, v) {
		n = split(ports[module], list, " ")
		for (i = 1; i <= n; i++) {
			port = list[i]
			if (direction[module, port] != "input" || port == "clk" || port == "cycles" || port == "timer_cycles")
				continue
			v = valid(module, port)
			if (v == "")
				printf "URDMA_INPUT(%d, %s)\n", part, member(p, port)
			else
				printf "URDMA_QUALIFIED(%d, %s, %s)\n", part, member(p, port), member(p, v)
			# A valid that the part drives may depend combinationally on other inputs.
			if (v != "" && direction[module, v] == "output" && !((part, v) in seen)) {
				seen[part, v] = 1
				printf "URDMA_INPUT(%d, %s)\n", part, member(p, v)
			}
		}
	}
	# The part that contains the parts of this module; -1: none.
	function owner(module,   k) {
		for (; module != top; module = parent[module])
			for (k = 0; k < parts; k++)
				if (module_of[k] == module)
					return k
		return -1
	}
	FNR == 1 { module = ""; header = 0; clock = "" }
	/^  typedef enum/ { values = 0 }
	match($0, /^    PART_[A-Z_0-9]+/) { index_of[substr($0, RSTART + 4, RLENGTH - 4)] = values++ }
	match($0, /^module urdma_[a-z_0-9]+/) { module = substr($0, 8, RLENGTH - 7); header = 1 }
	header && /^ *(input|output) / {
		line = $0
		sub(/\/\/.*/, "", line)
		sub(/[ ,]*$/, "", line)
		sub(/.* /, "", line)
		ports[module] = ports[module] line " "
		direction[module, line] = $1
	}
	/^\);/ { header = 0 }
	!header && match($0, /^  urdma_[a-z_0-9]+ (#\(.*\) )?[a-z_0-9]+ \(/) {
		sub_module = $1
		line = substr($0, RSTART, RLENGTH - 2)
		sub(/.* /, "", line)
		if (sub_module == "urdma_clk") {
			match($0, /PART_[A-Z_0-9]+/)
			clock = line
			clock_part = substr($0, RSTART, RLENGTH)
			next
		}
		uses[sub_module]++
		parent[sub_module] = module
		name[sub_module] = line
		if (clock == "clk_" line) {
			if (!(clock_part in index_of))
				fail(FILENAME ": no " clock_part " in urdma_pkg")
			if (clock_part in given)
				fail(FILENAME ": " clock_part " is given twice")
			given[clock_part] = 1
			module_of[index_of[clock_part]] = sub_module
			parent_of[index_of[clock_part]] = module
			instance_of[index_of[clock_part]] = line
		} else if (clock != "")
			fail(FILENAME ": " clock " is followed by " line)
		clock = ""
	}
	END {
		if (failed)
			exit 1
		for (p in index_of)
			if (p == "PART_N")
				parts = index_of[p]
			else if (!(p in given))
				fail(p " has no instance")
		if (parts > 63)
			fail("sim/parts.h has masks of 64 bits: no more than 63 parts")
		if (mode == "ports") {
			print "`verilator_config"
			for (k = 0; k < parts; k++) {
				m = module_of[k]
				n = split(ports[m], list, " ")
				for (i = 1; i <= n; i++)
					if (list[i] != "clk" && !((m, list[i]) in seen)) {
						seen[m, list[i]] = 1
						printf "public_flat_rd -module \"%s\" -var \"%s\"\n", m, list[i]
					}
			}
			exit
		}
		for (k = 0; k < parts; k++) {
			m = module_of[k]
			p = inside(parent_of[k], instance_of[k])
			where[k] = member(p, "")
			printf "URDMA_PART(%d, \"%s\")\n", k, p
			inputs(k, m, p)
			outer = owner(parent_of[k])
			if (outer >= 0)
				printf "URDMA_INNER(%d, %d)\n", outer, k
			if ((m, "timer_armed") in direction && direction[m, "timer_armed"] == "output")
				printf "URDMA_TIMER(%d, %s, %s)\n", k, member(p, "timer_armed"), member(p, "timer_cycles")
		}
		for (n = 0; (getline line <registers) > 0; n++)
			list[n + 1] = line
		for (i = 1; i <= n; i++) {
			best = -1
			length_of = 0
			for (k = 0; k < parts; k++)
				if (index(list[i], where[k]) == 1 && length(where[k]) > length_of) {
					best = k
					length_of = length(where[k])
				}
			if (best < 0)
				fail("register " list[i] " belongs to no part: put it into one (docs/rtl-interfaces.md, part_e)")
			printf "URDMA_REGISTER(%d, %s)\n", best, list[i]
		}
	}
' "$@" >"$out.new"
if [ "$mode" = members ]; then
	layout "$root" "$out.new"
	edges "$dir" >>"$out.new"
fi
mv "$out.new" "$out"
