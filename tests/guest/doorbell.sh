#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A process writes the QP number of another process to its own doorbell page. Nothing may come of it
# but a counter. A failure means a process can make the NIC work on another's queues.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

before=$(hw_counter urdma0 db_owner)
foreign_doorbell urdma0 || fail "foreign_doorbell: status $?"
after=$(hw_counter urdma0 db_owner)
[ "$after" -gt "$before" ] || fail "the counter of dropped doorbells did not move: $before, $after"
pingpong -c -n 10 -s 64
echo "ok: $((after - before)) foreign doorbells were dropped"
