#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# suite.sh TEST...: runs the tests one after the other in one boot, with the time each took; one that
# fails does not keep the others from running.
set -u
bad=()
for t; do
	start=$(cut -d. -f1 /proc/uptime)
	printf '\n== %s\n' "$t"
	if ! timeout -k 5 900 bash "/opt/urdma/tests/$t.sh"; then
		bad+=("$t")
	fi
	echo "== $t: $(($(cut -d. -f1 /proc/uptime) - start)) s"
done
if dmesg | grep -E 'WARNING: CPU|WARNING: possible|BUG[: ]|Oops|soft lockup|LOCKUP|rcu:.*stall|blocked for more than'; then
	bad+=("the kernel's log (above)")
fi
[ ${#bad[@]} = 0 ] || {
	printf '\nFAILED: %s\n' "${bad[@]}"
	exit 1
}
printf '\nall passed\n'
