#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Device memory, on both devices: runs dm.c, and kills a process that has all of it mapped. A failure means that a
# process gets the memory or the data of another one, or that memory leaks when a process ends.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

bad=$(counted mmio_bad)
for d in urdma0 urdma1; do
	dm $d || fail "dm $d: status $? (3: it has no device memory)"
	dm $d hold >/tmp/dm.log 2>&1 &
	pid=$!
	for _ in $(seq "$patience"); do
		! grep -q '^held' /tmp/dm.log || break
		sleep 0.1
	done
	grep -q '^held' /tmp/dm.log || fail "$d: no memory for a process that is to be killed: $(cat /tmp/dm.log)"
	kill -KILL $pid
	wait $pid 2>/dev/null
	dm $d all || fail "$d: after the end of a process that had all of the memory: status $?"
done
# Accesses that the NIC does not accept.
[ "$(counted mmio_bad)" = "$bad" ] || fail "copies made accesses of more than a word: $bad, now $(counted mmio_bad)"
# A process that unmaps a part must not trigger this message of x86's PAT code.
! dmesg | grep 'freeing invalid memtype' || fail "mappings of more than a page"
echo "ok: device memory"
