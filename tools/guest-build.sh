#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/guest-build.sh: builds what a guest gets from this checkout, in the cached Debian 13 tree,
# into build/guest: urdma.ko, the provider, the tests' modules (kverbs.ko, failat.ko), the programs of
# tools/guest and tests/guest, and from these payload.cpio, which the launcher appends to the first
# file system. Only what changed is built again.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
prog=guest-build
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

[ -e "$dev_dir/done" ] || die "the Debian 13 tree is not there: run tools/setup.sh first"
kver=$(cat "$dev_dir/kver")
id=$(printf '%s' "$top" | sha256sum | cut -c1-12)
work=$dev_dir/root/work/$id # seen from inside the tree as /work/$id
log=$guest_build/build.log

mkdir -p "$guest_build" "$work"
exec 8>"$guest_build/lock"
flock 8

# in_tree COMMAND...: run it inside the tree, as the present user.
in_tree() {
	as_root chroot --userspec="$(id -u):$(id -g)" "$dev_dir/root" \
		/usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C TMPDIR=/tmp "$@"
}

# hash_of PATH...: of the contents of the files there, and of the tree they are built in.
hash_of() {
	{
		echo "$dev_dir"
		find "$@" -type f ! -name '*.o' ! -name '*.cmd' ! -name '*.mod*' ! -name '*.ko' -print0 |
			sort -z | xargs -0 sha256sum
	} | sha256sum | cut -d' ' -f1
}

# stale NAME HASH: true when NAME was last made from something else.
stale() {
	[ "$(cat "$guest_build/$1.hash" 2>/dev/null)" != "$2" ]
}

fresh() {
	echo "$2" >"$guest_build/$1.hash"
}

# mirror_dir FROM TO: make TO's sources equal to FROM's; equal files keep their time, for make.
mirror_dir() {
	local f
	mkdir -p "$2"
	(cd "$1" && find . -type f \( -name '*.[chS]' -o -name Makefile -o -name Kbuild -o -name Kconfig \
		-o -name '*.txt' -o -name '*.map' -o -name '*.in' \)) | while read -r f; do
		cmp -s "$1/$f" "$2/$f" || { mkdir -p "$(dirname "$2/$f")" && cp "$1/$f" "$2/$f"; }
	done
	(cd "$2" && find . -type f -name '*.[chS]' ! -name '*.mod.c') | while read -r f; do
		[ -e "$1/$f" ] || rm -f "$2/$f"
	done
}

# step NAME COMMAND...: run it, with its output in the log, shown when it fails.
step() {
	local name=$1 t=$SECONDS
	shift
	if ! "$@" >"$log" 2>&1; then
		say "[guest] $name failed:"
		tail -n 40 "$log" >&2
		exit 1
	fi
	# Compilers' warnings are worth a look even where they are not errors.
	grep -E 'warning:' "$log" >&2 || true
	say "[guest] $name ... $((SECONDS - t)) s"
}

# build_module DIR NAME: the module NAME.ko, whose sources are in DIR.
build_module() {
	mirror_dir "$top/$1" "$work/$1"
	in_tree make -C "/usr/src/linux-headers-$kver" M="/work/$id/$1" -j 2 modules || return 1
	cp "$work/$1/$2.ko" "$guest_build/$2.ko"
}

# The provider goes where rdma-core keeps its own, with the headers it shares with the kernel.
build_provider() {
	local src=$work/rdma-core-$rdma_core_version
	if [ ! -e "$src/unpacked" ]; then
		rm -rf "$src"
		tar -xzf "$dev_dir/rdma-core.tar.gz" -C "$work" || return 1
		[ -e "$src/CMakeLists.txt" ] || return 1
		sed -i '/^add_subdirectory(providers\/rxe)/i add_subdirectory(providers/urdma)' \
			"$src/CMakeLists.txt" || return 1
		: >"$src/unpacked"
	fi
	mirror_dir "$top/provider" "$src/providers/urdma" || return 1
	local h
	for h in "$top"/driver/urdma_hw.h "$top"/driver/urdma-abi.h; do
		[ -e "$h" ] || continue
		cmp -s "$h" "$src/providers/urdma/${h##*/}" || cp "$h" "$src/providers/urdma/" || return 1
	done
	if [ ! -e "$src/build/build.ninja" ]; then
		in_tree cmake -S "/work/$id/${src##*/}" -B "/work/$id/${src##*/}/build" -G Ninja \
			-DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_BUILD_TYPE=RelWithDebInfo || return 1
	fi
	in_tree ninja -C "/work/$id/${src##*/}/build" -j 2 lib/liburdma-rdmav34.so || return 1
	cp -L "$src/build/lib/liburdma-rdmav34.so" "$guest_build/"
	# rdma-core's own tests, for the guest's /share: the same version as the guest's pyverbs.
	rm -rf "$guest_build/rdma-core-tests"
	cp -r "$src/tests" "$guest_build/rdma-core-tests"
}

build_programs() {
	local f
	mkdir -p "$work/programs" "$guest_build/bin"
	for f in "$top"/tools/guest/*.c "$top"/tests/guest/*.c; do
		[ -e "$f" ] || continue
		cp "$f" "$work/programs/" || return 1
		find "$top/driver" "$top/tests/guest" -maxdepth 1 -name "*.h" -exec cp -t "$work/programs" {} + || return 1
		in_tree gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "/work/$id/programs/$(basename "$f" .c)" \
			"/work/$id/programs/${f##*/}" -libverbs || return 1
		cp "$work/programs/$(basename "$f" .c)" "$guest_build/bin/" || return 1
	done
}

build_payload() {
	local p=$guest_build/payload m
	rm -rf "$p" "$guest_build/modroot"
	mkdir -p "$p/opt/urdma/guest" "$p/opt/urdma/tests" "$p/opt/urdma/bin" || return 1
	cp "$top/tools/guest/init" "$top/tools/guest/addresses" "$p/opt/urdma/guest/" || return 1
	find "$top/tests/guest" -maxdepth 1 -type f ! -name '*.[ch]' ! -name CMakeLists.txt ! -name '*.md' \
		-exec cp -p -t "$p/opt/urdma/tests" {} + || return 1
	cp "$guest_build"/bin/* "$p/opt/urdma/bin/" || return 1
	cp "$top/tools/guest/cosim" "$p/opt/urdma/bin/" || return 1
	if [ -e "$guest_build/liburdma-rdmav34.so" ]; then
		mkdir -p "$p/usr/lib/x86_64-linux-gnu/libibverbs" "$p/etc/libibverbs.d" || return 1
		cp "$guest_build/liburdma-rdmav34.so" "$p/usr/lib/x86_64-linux-gnu/libibverbs/" || return 1
		echo 'driver urdma' >"$p/etc/libibverbs.d/urdma.driver"
	fi
	if [ -e "$guest_build/urdma.ko" ]; then
		# The index of the guest's modules, with ours among them: depmod in the guest takes
		# seconds. Hard links, because depmod does not enter linked directories.
		m=$guest_build/modroot/lib/modules/$kver
		mkdir -p "$m/updates" || return 1
		cp -a "$dev_dir/image/usr/lib/modules/$kver"/modules.{builtin,order,builtin.modinfo} "$m/" ||
			return 1
		cp -al "$dev_dir/image/usr/lib/modules/$kver/kernel" "$m/" 2>/dev/null ||
			{ rm -rf "$m/kernel" && cp -a "$dev_dir/image/usr/lib/modules/$kver/kernel" "$m/"; } ||
			return 1
		cp "$guest_build"/*.ko "$m/updates/" || return 1
		depmod -b "$guest_build/modroot" "$kver" || return 1
		rm -rf "$m/kernel"
		mkdir -p "$p/usr/lib/modules" || return 1
		mv "$m" "$p/usr/lib/modules/" || return 1
		rm -rf "$guest_build/modroot"
	fi
	(cd "$guest_build" && find payload -print0 | cpio -0 -o -H newc -R 0:0 --quiet) \
		>"$guest_build/payload.cpio.part" || return 1
	(cd "$top" && cpio_init tools/guest/initramfs) >>"$guest_build/payload.cpio.part" || return 1
	mv "$guest_build/payload.cpio.part" "$guest_build/payload.cpio"
}

# The /init of the first file system comes with the payload too: a change of it rebuilds nothing.
cpio_init() {
	local d
	d=$(mktemp -d)
	cp "$1" "$d/init"
	chmod 755 "$d/init"
	(cd "$d" && echo init | cpio -o -H newc -R 0:0 --quiet)
	rm -rf "$d"
}

if [ -e "$top/driver/Makefile" ]; then
	h=$(hash_of "$top/driver")
	if stale module "$h" || [ ! -e "$guest_build/urdma.ko" ]; then
		step "urdma.ko" build_module driver urdma
		fresh module "$h"
	fi
fi
for m in kverbs failat; do
	h=$(hash_of "$top/tests/guest/$m")
	if stale $m "$h" || [ ! -e "$guest_build/$m.ko" ]; then
		step "$m.ko" build_module tests/guest/$m $m
		fresh $m "$h"
	fi
done
if [ -e "$top/provider/CMakeLists.txt" ]; then
	h=$(hash_of "$top/provider" "$top/driver")
	if stale provider "$h" || [ ! -e "$guest_build/liburdma-rdmav34.so" ]; then
		step "provider" build_provider
		fresh provider "$h"
	fi
fi
h=$(hash_of "$top/tools/guest" "$top/tests/guest" "$top/driver")
if stale programs "$h"; then
	step "guest programs" build_programs
	fresh programs "$h"
fi
made=("$guest_build/bin")
for f in "$guest_build/urdma.ko" "$guest_build/kverbs.ko" "$guest_build/failat.ko" "$guest_build/liburdma-rdmav34.so"; do
	[ ! -e "$f" ] || made+=("$f")
done
h=$(hash_of "$top/tools/guest-build.sh" "$top/tools/guest" "$top/tests/guest" "${made[@]}")
# hash_of leaves modules' files out: they are build products.
for f in "$guest_build"/*.ko; do
	[ ! -e "$f" ] || h=$h-$(sha256sum <"$f" | cut -c1-16)
done
if stale payload "$h" || [ ! -e "$guest_build/payload.cpio" ]; then
	step "payload" build_payload
	fresh payload "$h"
fi
