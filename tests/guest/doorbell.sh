#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A process writes the QP number of another process to its own doorbell page. The only effect must
# be a count. A failure means that a process can make the NIC work on another process's queues.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

dropped=0
for d in urdma0 urdma1; do
	before=$(hw_counter $d db_owner)
	foreign_doorbell $d || fail "foreign_doorbell $d: status $?"
	after=$(hw_counter $d db_owner)
	[ "$after" -gt "$before" ] || fail "$d: the counter of dropped doorbells did not move: $before, $after"
	dropped=$((dropped + after - before))
done
pingpong -c -n 10 -s 64
echo "ok: $dropped foreign doorbells were dropped"
