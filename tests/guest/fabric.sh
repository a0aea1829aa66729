#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fabric.sh short|full: libfabric between two guests: fi_pingpong with compared data over the provider `verbs`, with messages
# and with ofi_rxm's reliable datagrams over them, with lengths up to 1 MB, or only 64 KB. The guests need Debian's
# libfabric-bin (--packages).
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
	on 1 wait-listen $port || fail "fi_pingpong's server does not listen: $(cat /tmp/server.log)"
	timeout "$limit" fi_pingpong "${options[@]}" -P $port "$server" >/tmp/client.log 2>&1 || status=$?
	wait $! || server_status=$?
	[ $status-$server_status = 0-0 ] || fail "fi_pingpong -p $1 -e $2 -S $3: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	echo "ok: $1, $2, $3 bytes"
}

# Each of the 50 longest messages, by both providers, has at least this many packets with path MTU 1024.
sizes=(1 64 1000 4096 65536 1048576) packets_of_longest=1024
[ "$form" != short ] || sizes=(65536) packets_of_longest=64
before=$(counted tx_rdma_pkts)
for size in "${sizes[@]}"; do
	pingpong verbs msg "$size" 50
	pingpong "verbs;ofi_rxm" rdm "$size" 50
done
packets=$(($(counted tx_rdma_pkts) - before))
[ $packets -gt $((2 * 50 * packets_of_longest)) ] || fail "these were not packets of RDMA: $packets"
ending '' ''
echo "ok: libfabric, $packets packets of RDMA"
