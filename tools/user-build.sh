#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/user-build.sh: `./urdma build`. Builds a user's directory in the Debian 13 tree that also builds the provider,
# or a module in the tree of the guest's kernel. The user's sources are copied into the tree, without products of a
# build on the host; only changed files are rebuilt.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=urdma
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

usage() {
	cat <<-'EOF'
	usage: ./urdma build [options] DIR [-- ARGUMENT...]

	Builds the programs, libraries or kernel modules whose sources are in DIR, with the guest's compiler, against its
	libraries and kernel. DIR has a meson.build, a CMakeLists.txt, a Kbuild, or a Makefile; a Makefile with obj-m
	is a kernel module's. ARGUMENTs go to meson setup, cmake or make.

	  --out OUT         where the results go, by their paths in the build (default build/user/NAME, with the name of
	                    DIR); `./urdma run --share OUT` shows them in the guest as /share
	  --packages "a b"  more Debian packages to build with, such as libfoo-dev (kept in the cache)
	  --kernel K        the kernel that modules are for: stock (default) or debug
	  --help

	Exit status: 0; 1 the build failed; 2 a bad option or directory.
	EOF
}

bad_usage() {
	printf '%s: %s\nTry ./urdma build --help\n' "$prog" "$*" >&2
	exit 2
}

out='' packages='' kernel=stock dir='' arguments=()
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h)
		usage
		exit 0
		;;
	--)
		shift
		arguments=("$@")
		break
		;;
	--out | --packages | --kernel)
		[ $# -gt 1 ] || bad_usage "$1 needs a value"
		case $1 in
		--out) out=$2 ;;
		--packages) packages=$2 ;;
		--kernel) kernel=$2 ;;
		esac
		shift
		;;
	-*) bad_usage "unknown option '$1'" ;;
	*)
		[ -z "$dir" ] || bad_usage "one directory at a time: '$dir' or '$1'"
		dir=$1
		;;
	esac
	shift
done
[ -n "$dir" ] || bad_usage "say which directory to build"
[ -d "$dir" ] || bad_usage "there is no directory $dir"
case $kernel in
stock | debug) ;;
*) bad_usage "--kernel: '$kernel' is neither stock nor debug" ;;
esac
dir=$(cd "$dir" && pwd -P)
out=$(realpath -m "${out:-$top/build/user/$(basename "$dir")}")
[ "$out" != "$dir" ] || bad_usage "--out: $out is the directory of the sources"

if [ -e "$dir/meson.build" ]; then
	kind=meson
elif [ -e "$dir/CMakeLists.txt" ]; then
	kind=cmake
elif grep -qsE '^[[:space:]]*obj-m' "$dir/Kbuild" "$dir/Makefile"; then
	kind=module
elif [ -e "$dir/Makefile" ] || [ -e "$dir/makefile" ] || [ -e "$dir/GNUmakefile" ]; then
	kind="make"
else
	bad_usage "$dir has no meson.build, CMakeLists.txt, Kbuild or Makefile"
fi

level=run
[ "$kernel" = stock ] || level=$kernel
[ -n "${URDMA_NO_BUILD-}" ] || "$top/tools/setup.sh" --build-packages "$packages" "$level"
if [ $kind = module ]; then
	tree=$(kernel_dir "$kernel")
	headers=$(kernel_headers "$kernel")
else
	tree=$(build_dir "$packages")
fi
[ -e "$tree/done" ] || die "the tree to build in is not there: run tools/setup.sh --build-packages \"$packages\" $level"

# The path inside the tree.
work=/work/user-$(key_of "$dir" "$out")
src=$tree/root$work/src
mkdir -p "$src" "$tree/root$work/build"
exec 8>"$tree/root$work/lock"
flock 8

# is_elf FILE: true for a compiler's product, perhaps of the host.
is_elf() {
	local magic
	IFS= read -r -N 4 magic <"$1" 2>/dev/null || true
	[ "$magic" = $'\x7fELF' ]
}

# sources: the files of DIR, relative to it, each terminated by a zero byte.
sources() {
	local f
	(cd "$dir" && find . \( -name .git -o -path "./$(realpath -m --relative-to="$dir" "$out")" \) -prune -o \
		\( -type f -o -type l \) -print0) | while IFS= read -r -d '' f; do
		is_elf "$dir/$f" || printf '%s\0' "$f"
	done | sort -z
}

sources >"$tree/root$work/files.new"
touch "$tree/root$work/files"
comm -z -23 "$tree/root$work/files" "$tree/root$work/files.new" | (cd "$src" && xargs -0 -r rm -f --)
# A changed file must be newer than all files built from it, independent of its time on the host.
while IFS= read -r -d '' f; do
	if [ -L "$dir/$f" ] || [ -L "$src/$f" ] || ! cmp -s "$dir/$f" "$src/$f"; then
		mkdir -p "$(dirname "$src/$f")"
		cp -d --remove-destination --preserve=mode "$dir/$f" "$src/$f"
	fi
done <"$tree/root$work/files.new"
mv "$tree/root$work/files.new" "$tree/root$work/files"

# tool COMMAND...: runs it in the tree.
tool() {
	inside "$tree/root" "$@" || {
		printf '%s: error: %s failed with status %s; its messages are above\n' "$prog" "$1" $? >&2
		exit 1
	}
}

products=$tree/root$work/build
case $kind in
meson)
	[ -e "$products/build.ninja" ] || tool meson setup "$work/build" "$work/src" "${arguments[@]}" >&2
	tool meson compile -C "$work/build" >&2
	;;
cmake)
	tool cmake -S "$work/src" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "${arguments[@]}" >&2
	tool ninja -C "$work/build" >&2
	;;
module)
	products=$src
	tool make -C "$headers" M="$work/src" -j "$(nproc)" "${arguments[@]}" modules >&2
	;;
make)
	products=$src
	tool make -C "$work/src" -j "$(nproc)" "${arguments[@]}" >&2
	;;
esac

# results: programs, shared libraries and modules among the products.
results() {
	local f
	(cd "$products" && find . \( -name CMakeFiles -o -name meson-private \) -prune -o -type f \
		\( -perm -u+x -o -name '*.so*' -o -name '*.ko' \) -print0) | while IFS= read -r -d '' f; do
		! is_elf "$products/$f" || printf '%s\0' "${f#./}"
	done
}

made=0
while IFS= read -r -d '' f; do
	mkdir -p "$(dirname "$out/$f")"
	cp "$products/$f" "$out/$f.part"
	mv "$out/$f.part" "$out/$f"
	say "[build] $out/$f"
	made=$((made + 1))
done < <(results)
[ $made -gt 0 ] || die "the build of $dir made no program, shared library or module"
