#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# p9.sh short|full: the kernel's 9p over RDMA between two guests. The kernel has only the client; the server in guest 1 is
# p9_server.c. Small files and a large one are copied to the server, read back and compared; then the server dies and another
# one starts.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

case ${1-} in
short) files=50 mb=4 mounts=3 ;;
full) files=300 mb=20 mounts=10 ;;
*) fail "usage: p9.sh short|full" ;;
esac
shared=(mb)

export_there() {
	mkdir -p /srv/p9
	mount -t tmpfs -o size=$((mb + 64))m tmpfs /srv/p9 || fail "no file system"
}
start_server() {
	on 1 p9_server "$server" /srv/p9 >/tmp/p9.log 2>&1 &
	server_pid=$!
	waits "the server" grep listening /tmp/p9.log
}
# Its process in guest 1 ends, and with it that of `on` here.
kill_server() {
	on 1 pkill -x p9_server || fail "there is no server"
	wait $server_pid
}
mounted() {
	mount -i -t 9p -o "trans=rdma,port=5640,version=9p2000.L,msize=131072,access=any${1-}" "$server" /mnt/p9
}
unmounted() {
	umount /mnt/p9 || fail "umount"
}

beginning
mkdir -p /mnt/p9
modprobe -a 9p 9pnet_rdma || fail "no client"
! mounted ,timeout=5000 2>/dev/null || fail "mounted from a server that is not there"
far export_there || fail "no directory"
start_server
mounted || fail "cannot mount: $(dmesg | tail -n 5; cat /tmp/p9.log)"
[ "$(rdma resource show qp | grep -c 'type RC state RTS .*comm \[rdma_cm\]')" = 1 ] ||
	fail "not over RDMA: $(rdma resource show qp)"
phase "mounted"

exchange /mnt/p9 /srv/p9 $files $mb $mounts

# The server dies while it has no request: with any NIC, the kernel never ends a request in progress when the connection breaks.
kill_server
sleep 5
! timeout -s KILL 300 cat /mnt/p9/large >/dev/null 2>/tmp/cat.log || fail "read from a server that is not there"
[ -s /tmp/cat.log ] || fail "the read did not end when the server was away"
unmounted
start_server
mounted || fail "cannot mount from the new server"
same /tmp/tree /mnt/p9/moved
phase "the server died, another one came: $(cat /tmp/cat.log)"
unmounted
kill_server
far umount /srv/p9 || fail "the directory stays"
ending "9pnet_rdma" ""
echo "ok: 9p over RDMA"
