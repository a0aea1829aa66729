#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two guests on one wire: urdma0 of the one talks to urdma0 of the other.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 1 || fail "an active device is expected here"
on 1 bash -c '. /opt/urdma/tests/common.sh; devices_up 1' || fail "an active device is expected in guest 1"
[ "$(on 1 hostname)" = host1 ] || fail "on 1 does not reach guest 1"
on 1 sh -c 'exit 9'
[ $? = 9 ] || fail "the exit status does not come back from guest 1"

g0=$(gid_index urdma0) g1=$(on 1 bash -c '. /opt/urdma/tests/common.sh; gid_index urdma0')
on 1 ibv_rc_pingpong -d urdma0 -g "$g1" -c -n 200 -s 4096 >/tmp/server.log 2>&1 &
server=$!
on 1 bash -c '. /opt/urdma/tests/common.sh; wait_listen 18515' || fail "no server: $(cat /tmp/server.log)"
ibv_rc_pingpong -d urdma0 -g "$g0" -c -n 200 -s 4096 host1 || fail "the client failed: $(cat /tmp/server.log)"
wait $server || fail "the server failed: $(cat /tmp/server.log)"
echo "ok: two guests talk"
