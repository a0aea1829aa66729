#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ucx.sh short|full: UCX between two guests, by RC and by UD: tags, active messages, put, get, and streams of several sizes, or
# three of these tests with one size. The guests need Debian's ucx-utils (--packages).
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

n=200
tests=(tag_lat tag_bw ucp_am_lat ucp_am_bw ucp_put_lat ucp_put_bw ucp_get stream_lat stream_bw)
sizes=(8 4000 100000)
if [ "$form" = short ]; then
	tests=(tag_bw ucp_am_lat ucp_get)
	sizes=(4000)
fi
port=13337
ucx+=(UCX_LOG_LEVEL=warn)
beginning
ucx_info -v | head -1

# perf TRANSPORT TEST SIZE: ucx_perftest, its server in guest 1. UCX may use only the transport, so it fails if the NIC lacks a
# needed feature. UCX flushes the remote memory only with NICs of one vendor, and prints a message at the end of puts.
perf() {
	local status=0 server_status=0
	on 1 timeout "$limit" env "${ucx[@]}" "UCX_TLS=$1" ucx_perftest -P 0 -p $port >/tmp/server.log 2>&1 &
	on 1 wait-listen $port || fail "ucx_perftest's server does not listen: $(cat /tmp/server.log)"
	timeout "$limit" env "${ucx[@]}" "UCX_TLS=$1" ucx_perftest "$server" -P 0 -p $port -t "$2" -s "$3" -n "$n" -w 10 -f \
		>/tmp/client.log 2>&1 || status=$?
	wait $! || server_status=$?
	if [ $status-$server_status != 0-0 ] ||
		grep -E 'ERROR|WARN' /tmp/client.log | grep -qvE 'flush\(remote\)|error during flush'; then
		fail "ucx_perftest -t $2 -s $3 by $1: status $status, server's $server_status
$(cat /tmp/server.log /tmp/client.log)"
	fi
	echo "ok: $2, $3 bytes, by $1"
}

for transport in rc ud; do
	for test in "${tests[@]}"; do
		for size in "${sizes[@]}"; do
			perf "$transport" "$test" "$size"
		done
	done
done
ending '' ''
