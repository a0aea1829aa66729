#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# rds.sh short|full: datagrams of RDS over RDMA (rds_rdma) between two guests. A server in guest 1 echoes the datagrams;
# lengths and bytes are compared.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

case ${1-} in
short) messages=100 ;;
full) messages=2000 ;;
*) fail "usage: rds.sh short|full" ;;
esac

beginning
modprobe rds_rdma || fail "no rds_rdma"
far modprobe rds_rdma || fail "no rds_rdma in guest 1"
! timeout 60 rds client "$client" "$server" 1 2>/dev/null || fail "an answer, and there is no server"
phase "no server, no answer"
before=$(counted tx_rdma_pkts)
on 1 timeout 900 rds server "$server" $messages >/tmp/server.log 2>&1 &
server_pid=$!
waits "the server" grep listening /tmp/server.log
timeout 900 rds client "$client" "$server" $messages || fail "$(cat /tmp/server.log)"
wait $server_pid || fail "the server: $(cat /tmp/server.log)"
packets=$(($(counted tx_rdma_pkts) - before))
[ $packets -ge $messages ] || fail "these were not packets of RDMA: $packets"
phase "$messages messages there and back, $packets packets of RDMA"
ending rds_rdma rds_rdma
echo "ok: RDS"
