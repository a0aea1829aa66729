#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# hostile.sh [SECONDS [SEED]]: a process bypasses its provider and writes doorbells, WQEs, indices, keys and addresses
# (hostile.c). Meanwhile a neighbour on the same NICs transfers and compares data, and another one has data in device memory. A
# failure means that a process can disturb another one, or the NIC. suite.sh checks the kernel's log. The neighbour's slowdown
# is printed, not judged: it also includes time of the guest's CPUs.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

seconds=${1-10} seed=${2-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
devices_up 2 || fail "two active devices are expected"
baseline=$(resources)

# usec: time of an exchange, from the client of the last pingpong.
usec() {
	sed -nE 's/.* = ([0-9]+)\.[0-9]+ usec\/iter/\1/p' /tmp/client.log
}

pingpong -c -n 200 -s 4096 >/dev/null
alone=$(usec)
: >/tmp/dm.log
dm urdma0 keep >/tmp/dm.log 2>&1 &
keeper=$!
for _ in $(seq "$patience"); do
	! grep -q '^held' /tmp/dm.log || break
	sleep 0.1
done
hostile urdma0 "$seconds" "$seed" >/tmp/hostile.log 2>&1 &
pid=$!
rounds=0 worst=0
while kill -0 $pid 2>/dev/null; do
	pingpong -c -n 200 -s 4096 >/dev/null
	rounds=$((rounds + 1))
	[ "$(usec)" -le "$worst" ] || worst=$(usec)
done
wait $pid || fail "hostile with seed $seed ended with status $?: $(cat /tmp/hostile.log)"
cat /tmp/hostile.log
echo "seed $seed"
echo "an exchange of the neighbour: $alone us alone, at most $worst us in $rounds runs beside it"
[ $rounds -gt 0 ] || fail "the neighbour had no turn"
pingpong -c -n 100 -s 4096 >/dev/null
kill $keeper
wait $keeper || fail "the neighbour's device memory: status $?: $(cat /tmp/dm.log)"
wait_resources "$baseline" || fail "objects are left: $(resources), before $baseline"
echo "ok"
