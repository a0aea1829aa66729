#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/guest-build.sh [stock|debug]: builds the guest's files of this checkout, in the cached Debian 13 trees,
# into build/guest: the provider and the programs of tools/guest and tests/guest; for the named kernel (default
# stock) urdma.ko and the tests' modules; and from these payload.cpio, which the launcher appends to the first file
# system. Files for the debug kernel are in build/guest/debug. Only changed files are rebuilt.
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=guest-build
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

[ -e "$dev_dir/done" ] || die "the Debian 13 tree is not there: run tools/setup.sh first"
kernel=${1-stock}
kernel_dir=$(kernel_dir "$kernel")
[ -n "$kernel_dir" ] || die "usage: tools/guest-build.sh [stock|debug]"
[ -e "$kernel_dir/done" ] || die "the debug kernel is not there: run tools/setup.sh debug"
kver=$(cat "$kernel_dir/kver")
headers=$(kernel_headers "$kernel")
# Directories for modules and payload.
built=$(kernel_build "$kernel")
id=$(printf '%s' "$top" | sha256sum | cut -c1-12)
# Inside the trees it is /work/$id.
work=$dev_dir/root/work/$id
module_work=$kernel_dir/root/work/$id
log=$guest_build/build.log

mkdir -p "$built" "$work" "$module_work"
exec 8>"$guest_build/lock"
flock 8

# in_tree COMMAND..., in_kernel_tree COMMAND...: run it inside a tree, as the current user.
in_tree() {
	inside "$dev_dir/root" "$@"
}
in_kernel_tree() {
	inside "$kernel_dir/root" "$@"
}

# hash_of TREE PATH...: a hash of the contents of these files and of the tree they are built in.
hash_of() {
	{
		echo "$1"
		find "${@:2}" -type f ! -name '*.o' ! -name '*.cmd' ! -name '*.mod*' ! -name '*.ko' -print0 |
			sort -z | xargs -0 sha256sum
	} | sha256sum | cut -d' ' -f1
}

# stale NAME HASH: true if NAME, a path, was last built from another hash.
stale() {
	[ "$(cat "$1.hash" 2>/dev/null)" != "$2" ]
}

fresh() {
	echo "$2" >"$1.hash"
}

# `set -e` does not apply inside a step: each command must handle its failure.

# mirror_dir FROM TO: makes TO's sources equal to FROM's; unchanged files keep their time, for make.
mirror_dir() {
	local f
	mkdir -p "$2" || return 1
	(cd "$1" && find . -type f \( -name '*.[chS]' -o -name Makefile -o -name Kbuild -o -name Kconfig \
		-o -name '*.txt' -o -name '*.map' -o -name '*.in' \)) | while read -r f; do
		cmp -s "$1/$f" "$2/$f" || { mkdir -p "$(dirname "$2/$f")" && cp "$1/$f" "$2/$f"; } || return 1
	done || return 1
	(cd "$2" && find . -type f -name '*.[chS]' ! -name '*.mod.c') | while read -r f; do
		[ -e "$1/$f" ] || rm -f "$2/$f"
	done
}

# step NAME COMMAND...: runs it with its output in the log, which is shown on a failure.
step() {
	local name=$1 t=$SECONDS
	shift
	if ! "$@" >"$log" 2>&1; then
		say "[guest] $name failed:"
		tail -n 40 "$log" >&2
		exit 1
	fi
	# Show compiler warnings even if they are not errors.
	grep -E 'warning:' "$log" >&2 || true
	say "[guest] $name ... $((SECONDS - t)) s"
}

# build_module DIR NAME: the module NAME.ko, whose sources are in DIR.
build_module() {
	mirror_dir "$top/$1" "$module_work/$1" || return 1
	in_kernel_tree make -C "$headers" M="/work/$id/$1" -j 2 modules || return 1
	cp "$module_work/$1/$2.ko" "$built/$2.ko"
}

# The provider goes to rdma-core's providers/, with the headers that it shares with the kernel.
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
	cp -L "$src/build/lib/liburdma-rdmav34.so" "$guest_build/" || return 1
	# rdma-core's own tests, for the guest's /share: the same version as the guest's pyverbs.
	rm -rf "$guest_build/rdma-core-tests" || return 1
	cp -r "$src/tests" "$guest_build/rdma-core-tests"
}

build_programs() {
	local f
	mkdir -p "$work/programs" "$guest_build/bin" || return 1
	for f in "$top"/tools/guest/*.c "$top"/tests/guest/*.c; do
		[ -e "$f" ] || continue
		cp "$f" "$work/programs/" || return 1
		find "$top/driver" "$top/tests/guest" -maxdepth 1 -name "*.h" -exec cp -t "$work/programs" {} + || return 1
		in_tree gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "/work/$id/programs/$(basename "$f" .c)" \
			"/work/$id/programs/${f##*/}" -Wl,--as-needed -lrdmacm -libverbs || return 1
		cp "$work/programs/$(basename "$f" .c)" "$guest_build/bin/" || return 1
	done
}

build_payload() {
	local p=$built/payload m
	rm -rf "$p" "$built/modroot" || return 1
	mkdir -p "$p/opt/urdma/guest" "$p/opt/urdma/tests" "$p/opt/urdma/bin" || return 1
	cp "$top"/tools/guest/{init,addresses,complaints.sh,check-kernel} "$p/opt/urdma/guest/" || return 1
	find "$top/tests/guest" -maxdepth 1 -type f ! -name '*.[ch]' ! -name CMakeLists.txt ! -name '*.md' \
		-exec cp -p -t "$p/opt/urdma/tests" {} + || return 1
	cp "$guest_build"/bin/* "$p/opt/urdma/bin/" || return 1
	cp "$top"/tools/guest/{cosim,wait-listen} "$p/opt/urdma/bin/" || return 1
	if [ -e "$guest_build/liburdma-rdmav34.so" ]; then
		mkdir -p "$p/usr/lib/x86_64-linux-gnu/libibverbs" "$p/etc/libibverbs.d" || return 1
		cp "$guest_build/liburdma-rdmav34.so" "$p/usr/lib/x86_64-linux-gnu/libibverbs/" || return 1
		echo 'driver urdma' >"$p/etc/libibverbs.d/urdma.driver" || return 1
	fi
	if [ -e "$built/urdma.ko" ]; then
		# The index of the guest's modules, including ours: depmod in the guest would take seconds. Hard
		# links, because depmod does not follow symbolic links to directories.
		m=$built/modroot/lib/modules/$kver
		mkdir -p "$m/updates" || return 1
		cp -a "$kernel_dir/image/usr/lib/modules/$kver"/modules.{builtin,order,builtin.modinfo} "$m/" ||
			return 1
		cp -al "$kernel_dir/image/usr/lib/modules/$kver/kernel" "$m/" 2>/dev/null ||
			{ rm -rf "$m/kernel" && cp -a "$kernel_dir/image/usr/lib/modules/$kver/kernel" "$m/"; } ||
			return 1
		cp "$built"/*.ko "$m/updates/" || return 1
		depmod -b "$built/modroot" "$kver" || return 1
		rm -rf "$m/kernel" || return 1
		mkdir -p "$p/usr/lib/modules" || return 1
		mv "$m" "$p/usr/lib/modules/" || return 1
		rm -rf "$built/modroot"
	fi
	# Non-root users of the guest read it too, independent of the checkout's umask.
	chmod -R u=rwX,go=rX "$p" || return 1
	(cd "$built" && find payload -print0 | cpio -0 -o -H newc -R 0:0 --quiet) \
		>"$built/payload.cpio.part" || return 1
	(cd "$top" && cpio_init tools/guest/initramfs) >>"$built/payload.cpio.part" || return 1
	mv "$built/payload.cpio.part" "$built/payload.cpio"
}

# The payload also has the /init of the first file system, so changing it rebuilds nothing else.
cpio_init() {
	local d status=0
	d=$(mktemp -d) || return 1
	cp "$1" "$d/init" && chmod 755 "$d/init" &&
		(cd "$d" && echo init | cpio -o -H newc -R 0:0 --quiet) || status=1
	rm -rf "$d"
	return $status
}

if [ -e "$top/driver/Makefile" ]; then
	h=$(hash_of "$kernel_dir" "$top/driver")
	if stale "$built/module" "$h" || [ ! -e "$built/urdma.ko" ]; then
		step "urdma.ko" build_module driver urdma
		fresh "$built/module" "$h"
	fi
fi
for m in kverbs failat plant; do
	h=$(hash_of "$kernel_dir" "$top/tests/guest/$m")
	if stale "$built/$m" "$h" || [ ! -e "$built/$m.ko" ]; then
		step "$m.ko" build_module tests/guest/$m $m
		fresh "$built/$m" "$h"
	fi
done
if [ -e "$top/provider/CMakeLists.txt" ]; then
	h=$(hash_of "$dev_dir" "$top/provider" "$top/driver")
	if stale "$guest_build/provider" "$h" || [ ! -e "$guest_build/liburdma-rdmav34.so" ]; then
		step "provider" build_provider
		fresh "$guest_build/provider" "$h"
	fi
fi
h=$(hash_of "$dev_dir" "$top/tools/guest" "$top/tests/guest" "$top/driver")
if stale "$guest_build/programs" "$h"; then
	step "guest programs" build_programs
	fresh "$guest_build/programs" "$h"
fi
made=("$guest_build/bin")
for f in "$built/urdma.ko" "$guest_build/liburdma-rdmav34.so"; do
	[ ! -e "$f" ] || made+=("$f")
done
h=$(hash_of "$kernel_dir" "$top/tools/guest-build.sh" "$top/tools/guest" "$top/tests/guest" "${made[@]}")
# hash_of skips module files: they are build products.
for f in "$built"/*.ko; do
	[ ! -e "$f" ] || h=$h-$(sha256sum <"$f" | cut -c1-16)
done
if stale "$built/payload" "$h" || [ ! -e "$built/payload.cpio" ]; then
	step "payload" build_payload
	fresh "$built/payload" "$h"
fi
