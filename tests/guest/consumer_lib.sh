# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the tests of kernel consumers. Guest 0 is the client, guest 1 the server. Either may be the
# soft-RoCE peer (`./urdma run --peer rxe:N`).
# shellcheck source=tests/guest/common.sh
[ -n "${limit-}" ] || . /opt/urdma/tests/common.sh

# The last argument of the script.
form=${*: -1}
# Addresses of the server and of the client.
# shellcheck disable=SC2034  # used by those that source this
case $(sed -n 's/^peer=//p' /opt/urdma/run/options) in
self) server=10.77.0.1 client=10.77.0.100 ;;
other) server=10.77.0.100 client=10.77.0.1 ;;
*) server=10.77.0.2 client=10.77.0.1 ;;
esac

# far COMMAND...: runs it in guest 1. It may be any function of this script; guest 1 also has the variables that `shared` names.
shared=()
far() {
	on 1 bash -c "$(declare -f; declare -p patience limit server client "${shared[@]}")
		set -u
		\"\$@\"" far "$@"
}

# For UCX. Versions before 1.19 interpret a completion's service level as one vendor's NICs define it, do not find the
# destination, and drop the datagram. RC also needs datagrams to connect.
# shellcheck disable=SC2034  # used by those that source this
ucx=(UCX_NET_DEVICES=urdma0:1 UCX_UD_VERBS_ETH_DGID_CHECK=n)

# disk_opens DISK: waits, because a disk's node appears some time before it can be opened.
disk_opens() {
	[ -b "$1" ] && : <"$1"
}

# device: the RDMA device of this guest, urdma0 or rxe0.
device() {
	basename /sys/class/infiniband/*
}

# device_net: its net device.
device_net() {
	rdma link show "$(device)/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p'
}

# device_up: waits until the port of the device is active.
device_up() {
	waits "an active device" device_active
}
device_active() {
	grep -q ACTIVE "/sys/class/infiniband/$(device)/ports/1/state"
}

# device_goes and device_comes: unbind the driver, with all users of the device, and bind it again. rxe0 is deleted and created
# again.
device_goes() {
	if [ "$(device)" = rxe0 ]; then
		rdma link delete rxe0
	else
		pci_device >/sys/bus/pci/drivers/urdma/unbind
	fi
}
device_comes() {
	if [ -e /sys/class/net/peer0 ]; then
		rdma link add rxe0 type rxe netdev peer0 || fail "rxe0 does not come back"
	else
		pci_device >/sys/bus/pci/drivers/urdma/bind || fail "the driver does not come back"
		/opt/urdma/guest/addresses
	fi
	device_up
}

# pci_device: the PCI address of the NIC, with or without a driver.
pci_device() {
	lspci -D -d 1234:5244 | cut -d' ' -f1
}

# resources: as in common.sh, but without the CQs that the RDMA core keeps for the next consumer (ib_cq_pool_get) until the
# device is removed, and without the index, which differs when a device returns.
resources() {
	rdma resource show | sed -n '/urdma\|rxe/ { s/^[0-9]*: //; s/ cq [0-9]*//; p }' | sort
	rdma resource show cq | grep 'urdma\|rxe' | grep -v 'comm \[ib_core\]'
}

# beginning: waits until both guests are ready. ARP comes first: on a wire that loses frames, the RDMA core does not wait long
# enough.
beginning() {
	device_up
	far device_up || fail "guest 1 is not ready"
	ping -q -c 1 -A -w 120 "$server" >/dev/null || fail "guest 1 does not answer"
	baseline=$(resources)
	far_baseline=$(far resources)
	began=$SECONDS
}

# phase WHAT: reports that WHAT is done, and its duration.
phase() {
	echo "ok: $* ($((SECONDS - began)) s)"
	began=$SECONDS
}

# unload MODULE...: unloads them, and the modules that only they use.
unload() {
	local m
	for m; do
		[ -e "/sys/module/${m//-/_}" ] || continue
		# Closed sockets and controllers release their module a little later.
		waits "module $m cannot be unloaded: $(lsmod | grep "^${m//-/_} ")" modprobe -r "$m"
	done
}

# ending "MODULES HERE" "MODULES IN GUEST 1": checks that these can be unloaded and leave nothing behind, and that the driver
# can be unloaded too. In the short forms the driver stays: they share a boot, and a reloaded driver would reuse QP numbers, by
# which the judge of the wire distinguishes connections.
ending() {
	# shellcheck disable=SC2086  # words
	unload $1
	# shellcheck disable=SC2086
	far unload $2 || fail "modules stay in guest 1"
	wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"
	far wait_resources "$far_baseline" || fail "objects are left in guest 1: $(on 1 rdma resource show)"
	if [ "$form" != short ]; then
		unload urdma rdma_rxe
		far unload urdma rdma_rxe || fail "the driver of guest 1 stays"
	fi
	phase "nothing is left"
}

# tree DIR FILES: creates files of very different lengths, in directories of a hundred.
tree() {
	local i d lengths=(0 1 100 511 1024 4095 4097 9000)
	head -c 1M /dev/urandom >/tmp/pool
	for i in $(seq "$2"); do
		d=$1/$((i / 100))
		[ -d "$d" ] || mkdir -p "$d"
		tail -c +$((i * 977 % 1000000 + 1)) /tmp/pool | head -c "${lengths[RANDOM % 8]}" >"$d/$i"
	done
}

# same A B: checks that the trees are equal; caches are dropped before, so that B is read.
same() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	diff -r "$1" "$2" >/tmp/diff.log 2>&1 || fail "$2 differs from $1: $(head -n 5 /tmp/diff.log)"
}

# one_byte NEW: in guest 1, sets byte 12345 of the RAM disk to NEW; prints the old value.
one_byte() {
	dd if=/dev/ram0 of=/tmp/block bs=4096 skip=3 count=1 iflag=direct 2>/dev/null || fail "the disk cannot be read"
	od -An -tu1 -j57 -N1 /tmp/block | tr -d ' '
	# shellcheck disable=SC2059  # the byte
	printf "\\$(printf %o "$1")" | dd of=/tmp/block bs=1 seek=57 conv=notrunc 2>/dev/null
	dd if=/tmp/block of=/dev/ram0 bs=4096 seek=3 count=1 oflag=direct 2>/dev/null || fail "the disk cannot be written"
}

# flip FILE: changes byte 1234567.
flip() {
	python3 -c 'import sys
f = open(sys.argv[1], "r+b")
f.seek(1234567)
byte = f.read(1)[0]
f.seek(1234567)
f.write(bytes([byte ^ 1]))' "$1"
}

# exchange MOUNT EXPORT FILES MB MOUNTS: copies FILES small files and one of MB megabytes to the server, which has them in
# EXPORT, reads them back and compares them, the large one also after MOUNTS more mounts. The script must define `mounted` and
# `unmounted`. Leaves /tmp/tree, /tmp/large, MOUNT/moved and MOUNT/large.
exchange() {
	local files=$3 mb=$4 mounts=$5
	mkdir -p /tmp/tree
	tree /tmp/tree "$files"
	cp -r /tmp/tree "$1/tree" || fail "cp"
	same /tmp/tree "$1/tree"
	mv "$1/tree" "$1/moved" || fail "mv"
	same /tmp/tree "$1/moved"
	phase "$files small files"
	dd if=/dev/urandom of=/tmp/large bs=1M count="$mb" 2>/dev/null
	cp /tmp/large "$1/large" || fail "cp"
	unmounted
	[ "$(md5sum </tmp/large)" = "$(far md5sum "$2/large" | sed "s|$2.*|-|")" ] || fail "the server's copy of the large file"
	mounted || fail "cannot mount again"
	cmp /tmp/large "$1/large" || fail "the large file"
	phase "a file of $mb MB"
	unmounted
	far flip "$2/large"
	mounted || fail "cannot mount again"
	! cmp -s /tmp/large "$1/large" || fail "a changed byte was not noticed"
	phase "a changed byte is noticed"
	for _ in $(seq "$mounts"); do
		unmounted
		mounted || fail "cannot mount again"
		cmp -n 100000 /tmp/large "$1/large" || fail "the large file, after another mount"
	done
	phase "$mounts mounts"
}

# file_system DISK FILES AWAY AGAIN: creates ext4 and files on the disk, removes and restores the disk by the two commands, and
# compares the files.
file_system() {
	mkfs.ext4 -q -F "$1" 64M || fail "mkfs.ext4"
	mkdir -p /mnt/disk /tmp/tree
	tree /tmp/tree "$2"
	mount -t ext4 "$1" /mnt/disk || fail "mount"
	cp -r /tmp/tree /mnt/disk/tree || fail "cp"
	umount /mnt/disk || fail "umount"
	e2fsck -fn "$1" >/tmp/fsck.log 2>&1 || fail "e2fsck: $(cat /tmp/fsck.log)"
	"$3"
	"$4"
	mount -t ext4 "$1" /mnt/disk || fail "mount, when the disk has come again"
	same /tmp/tree /mnt/disk/tree
	umount /mnt/disk || fail "umount"
}
