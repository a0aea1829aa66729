#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/lint.sh [CHECK...]: all checks, or those named: spdx whitespace shell docs format registers faults verilator waves yosys
# checkpatch sparse pages. Checks of absent parts are skipped. Exit status 0 if all checks pass.
set -u

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=lint
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
cd "$top" || exit 1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=()

# files PATTERN...: files of the tree that git would commit, without build products.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
		[ -f "$f" ] && printf '%s\n' "$f"
	done
}

# check NAME COMMAND...: runs it and shows its output if it fails.
check() {
	local name=$1 t=$SECONDS
	shift
	if "$@" >"$tmp/log" 2>&1; then
		say "[lint] $name ... ok, $((SECONDS - t)) s"
	else
		say "[lint] $name ... FAILED"
		cat "$tmp/log" >&2
		bad+=("$name")
	fi
}

# Every file names its licence in its first lines; kernel and provider have different ones. The texts are in LICENSES.
spdx() {
	local f want status=0
	files >"$tmp/list"
	while read -r f; do
		case $f in
		LICENSES/*) continue ;;
		*.json) continue ;; # JSON has no comments
		docs/images/*.png) continue ;; # the only binaries: tools/pictures.sh makes them
		driver/urdma-abi.h) want='SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB)' ;;
		driver/* | provider/* | examples/kernel_loop/*.c) want='SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB' ;;
		*) want='SPDX-License-Identifier: Apache-2.0' ;;
		esac
		head -n 3 "$f" | grep -qF "$want" || {
			echo "$f: its first lines do not say '$want'"
			status=1
		}
	done <"$tmp/list"
	return $status
}

# Trailing white space and merge conflict markers. Licence texts stay as they are.
whitespace() {
	git diff --check "$(git hash-object -t tree /dev/null)" -- . ':!LICENSES'
}

shell() {
	local list
	mapfile -t list < <(
		files '*.sh'
		files urdma .ci/run tools/guest tests/guest | while read -r f; do
			head -n 1 "$f" | grep -qE '^#!.*/(ba|da)?sh|^#!.*env bash' && echo "$f"
		done
	)
	mapfile -t list < <(printf '%s\n' "${list[@]}" | sort -u)
	shellcheck -x "${list[@]}"
}

# The simulator finds registers by name to detect changes: each variable that a clocked block assigns must end in _reg or be a
# memory.
registers() {
	local found list
	mapfile -t list < <(files '*.sv' | grep '^rtl/')
	# shellcheck disable=SC2016  # for awk
	found=$(awk '
		FNR == 1 { check() ; inff = 0; delete lhs; delete mem }
		{ code = $0; sub(/\/\/.*/, "", code) }
		match(code, /[a-z_0-9]+ +\[[^]]*\] *;/) {
			name = substr(code, RSTART, RLENGTH); sub(/ .*/, "", name); mem[name] = 1
		}
		code ~ /always_ff/ { inff = 1 }
		inff && code !~ /for *\(/ || inff && code ~ /for *\(.*\).*<=/ {
			line = code; sub(/.*for *\([^)]*\)/, "", line)
			if (match(line, /[a-zA-Z_][a-zA-Z0-9_]*((\[[^]]*\])|(\.[a-z_0-9]+))* *<= /)) {
				name = substr(line, RSTART, RLENGTH); sub(/[ \[.].*/, "", name)
				before = substr(line, 1, RSTART - 1)
				if (before !~ /((if|assert) *\([^)]*|&& *|\|\| *)$/ && name !~ /_reg$/) lhs[name] = FILENAME ":" FNR
			}
		}
		code ~ /^  end *$/ || code ~ /^  always_ff.*;.*$/ && code !~ /begin/ { inff = 0 }
		END { check() }
		function check(n) { for (n in lhs) if (!(n in mem)) { print lhs[n] ": " n; bad = 1 } }
	' "${list[@]}")
	[ -z "$found" ] && return 0
	printf '%s: the name of a register ends in _reg\n' "$found"
	return 1
}

# Compares the page of the hardware contract with its header; checks links, paths and options in all pages.
docs() {
	local status=0
	tools/check-hw-doc.sh || status=1
	tools/check-md.sh || status=1
	return $status
}

# checkpatch checks the driver instead.
format() {
	local list
	mapfile -t list < <(files '*.c' '*.h' '*.cc' '*.cpp' | grep -v '^driver/')
	[ ${#list[@]} -gt 0 ] || return 0
	clang-format --dry-run -Werror "${list[@]}"
}

# rtl_files LIST: the sources a .f list names, with the lists it includes, relative to rtl/.
rtl_files() {
	local line
	while read -r line; do
		line=${line%%//*}
		line=${line%%#*}
		case $line in
		-[fF]\ *) rtl_files "${line#-? }" ;;
		*[![:space:]]*) printf '%s\n' "${line%"${line##*[![:space:]]}"}" ;;
		esac
	done <"rtl/$1"
}

# rtl_sources ARRAY: all sources of the NIC, relative to rtl/. Blocks list the files they share, so duplicates are removed; the
# packages come first.
rtl_sources() {
	local -n sources=$1
	sh tools/gen-hw-pkg.sh driver/urdma_hw.h "$tmp/urdma_hw_pkg.sv" || return 1
	mapfile -t sources < <(rtl_files urdma.f | grep -vE '(^|/)(urdma_pkg|urdma_hw_pkg)\.sv$' | awk '!seen[$0]++')
	sources=(urdma_pkg.sv "${sources[@]}")
}

verilator_lint() {
	local list
	rtl_sources list || return 1
	(cd rtl && "$verilator_dir/verilator" --lint-only -Wall --top-module urdma_top urdma.vlt "$tmp/urdma_hw_pkg.sv" "${list[@]}")
}

# Checks that `make mutate` can plant each fault of its list and that Verilator accepts the result: a change of the RTL may have
# removed a fault's location. What caught faults before may only name faults of the list.
faults() {
	local list
	cp -r rtl "$tmp/planted"
	awk -f tests/mutate/plant.awk -v rtl=rtl -v out="$tmp/planted" tests/mutate/faults || return 1
	awk -F'\t' 'NR == FNR {known[$3] = 1; next} !/^#/ && !($3 in known) {print FILENAME ": no such fault: " $3; bad = 1} END {exit bad}' \
		"$tmp/planted/list" tests/mutate/caught || return 1
	rtl_sources list || return 1
	(cd "$tmp/planted" && "$verilator_dir/verilator" --lint-only -Wno-lint --top-module urdma_top urdma.vlt \
		"$top/tests/mutate/urdma_mutate_pkg.sv" "$tmp/urdma_hw_pkg.sv" "${list[@]}")
}

# Checks that the RTL has each signal that the wave viewers show first.
waves_lint() {
	local list
	rtl_sources list || return 1
	tools/waves/view.sh "$tmp/view.inc" tools/waves/view.def cosim/trace/lanes.def "$verilator_dir/verilator" -Irtl \
		-DURDMA_PART_CLOCKS rtl/urdma.vlt "$tmp/urdma_hw_pkg.sv" "${list[@]/#/rtl/}" sim/urdma_sim_top.sv
}

# Checks by a synthesis tool: standard language, no latch, no combinational loop, no net with no or several drivers. Runs in a
# separate directory, because this Yosys has access to few others.
yosys_lint() {
	local list
	rtl_sources list || return 1
	mkdir -p "$tmp/yosys"
	cp -r rtl "$tmp/urdma_hw_pkg.sv" "$tmp/yosys/" || return 1
	cat >"$tmp/yosys/lint.ys" <<-EOF
		read_slang -j 1 --top urdma_top -D SYNTHESIS urdma_hw_pkg.sv ${list[*]/#/rtl/}
		hierarchy -check -top urdma_top
		proc
		select -assert-none t:\$dlatch t:\$adlatch t:\$dlatchsr
		check -assert
	EOF
	(cd "$tmp/yosys" && yosys "$yosys_dir" -q -T lint.ys)
}

# run_checkpatch OPTIONS... FILES...: runs outside the tree, because it leaves a file in its directory.
run_checkpatch() {
	mkdir -p "$tmp/checkpatch/include"
	(cd "$tmp/checkpatch" && perl "$checkpatch_dir/checkpatch.pl" --no-tree --root=. --strict --terse \
		--show-types --max-line-length=100 --no-summary "$@")
}

checkpatch() {
	local list user status=0
	mapfile -t list < <(files 'driver/*.c' 'driver/*.h')
	[ ${#list[@]} = 0 ] || run_checkpatch -f "${list[@]/#/$top/}" || status=1
	# User space has no u32, no BIT() and no READ_ONCE(), returns positive error numbers as verbs do, and checkpatch takes
	# _Atomic(type) for CamelCase and for a cast; clang-format checks spaces there.
	user=PREFER_KERNEL_TYPES,BIT_MACRO,VOLATILE,USE_NEGATIVE_ERRNO,CAMELCASE,SPACING
	mapfile -t list < <(files 'provider/*.c' 'provider/*.h')
	[ ${#list[@]} = 0 ] || run_checkpatch --ignore "$user" -f "${list[@]/#/$top/}" || status=1
	return $status
}

# driver_modules NAME ARGUMENT...: builds the driver in a separate directory with these arguments of make; @ stands for that
# directory. The output goes to $tmp/NAME, and to the screen on a failure.
driver_modules() {
	local name=$1 id work status=0
	shift
	id=$(printf '%s' "$top" | sha256sum | cut -c1-12)-$name
	work=$dev_dir/root/work/$id
	rm -rf "$work"
	mkdir -p "$work"
	find driver -maxdepth 1 -name '*.[ch]' -exec cp -t "$work" {} + && cp driver/Makefile "$work/"
	find "$tmp" -maxdepth 1 -name '*.h' -exec cp -t "$work" {} +
	as_root chroot --userspec="$(id -u):$(id -g)" "$dev_dir/root" /usr/bin/env -i PATH=/usr/bin:/usr/sbin \
		HOME=/tmp LC_ALL=C make -C "/usr/src/linux-headers-$(cat "$dev_dir/kver")" M="/work/$id" -j 2 \
		"${@//@/\/work\/$id}" modules >"$tmp/$name" 2>&1 || status=1
	rm -rf "$work"
	[ $status = 0 ] || cat "$tmp/$name"
	# Ignore warnings in the kernel's own headers.
	! grep -E "/work/$id/[a-z_-]*\.[ch]:.*(warning|error):" "$tmp/$name" && [ $status = 0 ]
}

sparse_lint() {
	[ -e driver/Makefile ] || return 0
	# Sparse 0.6.4 does not know __has_include; these kernel headers have all that the driver tests for.
	driver_modules sparse W=1 C=2 CF="-Wbitwise -D__CHECK_ENDIAN__ '-D__has_include(x)=1'"
}

# Builds for pages of 16 and 64 KB, as on other architectures, with this architecture's headers.
pages_lint() {
	local shift
	[ -e driver/Makefile ] || return 0
	for shift in 14 16; do
		printf '#undef CONFIG_PAGE_SHIFT\n#define CONFIG_PAGE_SHIFT %s\n' $shift >"$tmp/pages.h"
		driver_modules "pages-$shift" KCFLAGS="-include @/pages.h" || return 1
	done
}

[ $# -gt 0 ] || set -- spdx whitespace shell docs format registers faults verilator waves yosys checkpatch sparse pages
for c; do
	case $c in
	spdx) check "SPDX lines" spdx ;;
	whitespace) check "white space" whitespace ;;
	shell) check "shellcheck" shell ;;
	docs) check "documents" docs ;;
	format) check "clang-format" format ;;
	registers) check "names of registers" registers ;;
	faults) check "planted faults" faults ;;
	verilator) check "verilator -Wall" verilator_lint ;;
	waves) check "view of waves" waves_lint ;;
	yosys) check "Yosys" yosys_lint ;;
	checkpatch) check "checkpatch" checkpatch ;;
	sparse) check "sparse, kernel warnings (W=1)" sparse_lint ;;
	pages) check "driver with pages of 16 and 64 KB" pages_lint ;;
	*) die "unknown check '$c'" ;;
	esac
done
if [ ${#bad[@]} -gt 0 ]; then
	say "[lint] not clean: ${bad[*]}"
	exit 1
fi
say "[lint] clean"
