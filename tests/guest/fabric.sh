#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fabric.sh: libfabric between two guests: fi_pingpong with compared data over the provider `verbs`, with messages and with
# ofi_rxm's reliable datagrams on top of them, with lengths up to 1 MB. The guests need Debian's libfabric-bin (--packages).
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

port=47592
beginning
fi_info --version | head -1

# pingpong PROVIDER ENDPOINT SIZE N
pingpong() {
	local options=(-p "$1" -e "$2" -S "$3" -I "$4" -c -m msg) status=0 server_status=0
	on 1 timeout "$limit" fi_pingpong "${options[@]}" -B $port >/tmp/server.log 2>&1 &
	far wait_listen $port
	timeout "$limit" fi_pingpong "${options[@]}" -P $port "$server" >/tmp/client.log 2>&1 || status=$?
	wait $! || server_status=$?
	[ $status-$server_status = 0-0 ] || fail "fi_pingpong -p $1 -e $2 -S $3: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	echo "ok: $1, $2, $3 bytes"
}

before=$(counted tx_rdma_pkts)
for size in 1 64 1000 4096 65536 1048576; do
	pingpong verbs msg $size 50
	pingpong "verbs;ofi_rxm" rdm $size 50
done
packets=$(($(counted tx_rdma_pkts) - before))
# Each of 50 messages of 1 MB there and back is at least 1024 packets of the path MTU 1024.
[ $packets -gt 100000 ] || fail "these were not packets of RDMA: $packets"
ending '' ''
echo "ok: libfabric, $packets packets of RDMA"
