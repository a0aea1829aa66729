#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest part of host/system.sh: two guests whose NICs have PCIe links of their own, as examples/systems/slow-slot.json
# says. Each guest sees only the link of its own NIC, and they reach each other.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

bash /opt/urdma/tests/pcie.sh 2.5 4 128 512 1 || exit 1
on 1 bash /opt/urdma/tests/pcie.sh 16 8 512 4096 1 || exit 1
g0=$(gid_index urdma0) g1=$(on 1 bash -c '. /opt/urdma/tests/common.sh; gid_index urdma0')
on 1 ibv_rc_pingpong -d urdma0 -g "$g1" -c -n 100 -s 4096 >/tmp/server.log 2>&1 &
server=$!
on 1 wait-listen 18515 || fail "no server: $(cat /tmp/server.log)"
ibv_rc_pingpong -d urdma0 -g "$g0" -c -n 100 -s 4096 host1 || fail "the client failed: $(cat /tmp/server.log)"
wait $server || fail "the server failed: $(cat /tmp/server.log)"
ping -q -c 3 -A -w 120 10.77.0.2 >/tmp/ping.log 2>&1 || fail "ping: $(cat /tmp/ping.log)"
echo "ok: RDMA between a slow slot and a fast one"
