#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# nfs.sh short|full: NFS over RDMA between two guests: the kernel's nfsd and its client, version 4.2. Small files and a large
# one are copied to the server, read back and compared; the server's own copy is compared too. Then the server's device is
# removed under load and returns.
#
# The guest has no nfs-utils. The test writes the answers of rpc.mountd about clients, exports and file handles into the
# kernel's caches beforehand.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

case ${1-} in
short) files=50 mb=4 mounts=3 outages=1 load_mb=4 ;;
full) files=2000 mb=50 mounts=20 outages=2 load_mb=8 ;;
*) fail "usage: nfs.sh short|full" ;;
esac
shared=(mb)

# ---- the server -----------------------------------------------------------------------------------------------------------
server_up() {
	local never=4000000000 rpc=/proc/net/rpc
	modprobe -a nfsd rpcrdma || fail "no nfsd"
	mkdir -p /srv/nfs /var/lib/nfs/v4recovery
	# nfsd needs a file system with its own file handles.
	mount -t tmpfs -o size=$((mb * 2 + 64))m tmpfs /srv/nfs || fail "no file system"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || fail "no /proc/fs/nfsd"
	# A client; the export (rw, insecure, no_subtree_check, no_root_squash, crossmnt, and fsid=0: the root of version 4);
	# its handle.
	echo "nfsd $client $never clients" >$rpc/auth.unix.ip/channel || fail "no client"
	echo "clients /srv/nfs $never $((0x6402)) -2 -2 0" >$rpc/nfsd.export/channel || fail "no export"
	printf 'clients 1 \\x00000000 %s /srv/nfs\n' $never >$rpc/nfsd.fh/channel || fail "no handle"
	# Version 3 would need rpcbind.
	echo "-3 +4 +4.1 +4.2" >/proc/fs/nfsd/versions
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo "rdma 20049" >/proc/fs/nfsd/portlist || fail "no port 20049"
	echo 4 >/proc/fs/nfsd/threads || fail "no threads of nfsd"
	# No client has state to reclaim.
	echo Y >/proc/fs/nfsd/v4_end_grace
}
server_down() {
	local c
	echo 0 >/proc/fs/nfsd/threads
	for c in /proc/net/rpc/{nfsd.fh,nfsd.export,auth.unix.ip}; do
		date +%s >"$c/flush"
	done
	umount /srv/nfs || fail "the export stays"
	umount /proc/fs/nfsd
}

# ---- the client -----------------------------------------------------------------------------------------------------------
mounted() {
	# mount.nfs is not needed: these are all the options that the kernel needs.
	mount -i -t nfs4 -o "vers=4.2,proto=rdma,port=20049,addr=$server,clientaddr=$client,${1-hard}" "$server:/" /mnt/nfs
}
unmounted() {
	umount /mnt/nfs || fail "umount"
}

beginning
mkdir -p /mnt/nfs
modprobe -a nfsv4 rpcrdma || fail "no client"
! mounted soft,timeo=20,retrans=1 2>/dev/null || fail "mounted from a server that is not there"
far server_up || fail "no server"
mounted || fail "cannot mount: $(dmesg | tail -n 5)"
grep ' /mnt/nfs ' /proc/mounts | grep -q proto=rdma || fail "not over RDMA: $(grep /mnt/nfs /proc/mounts)"
phase "mounted: $(sed -n 's|.* /mnt/nfs nfs4 \([^ ]*\).*|\1|p' /proc/mounts)"

exchange /mnt/nfs /srv/nfs $files $mb $mounts

head -c ${load_mb}M /tmp/large >/tmp/load
for _ in $(seq $outages); do
	(
		for i in 1 2 3; do
			cp /tmp/load /mnt/nfs/load$i || exit 1
			# The comparison reads from the server.
			sync && echo 3 >/proc/sys/vm/drop_caches
			cmp /tmp/load /mnt/nfs/load$i && rm /mnt/nfs/load$i || exit 1
		done
	) &
	load=$!
	sleep 2
	far device_goes || fail "the device of guest 1 stays"
	sleep 2
	far device_comes || fail "the device of guest 1 does not come back"
	wait $load || fail "a copy while the server's device was away"
	phase "the server's device gone under load"
done
unmounted
far server_down || fail "the server stays"
ending "nfsv4 rpcrdma" "rpcrdma nfsd"
echo "ok: NFS over RDMA"
