#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# suite.sh "TEST [ARGUMENT...]"...: runs the tests one after another in one boot, and prints the time of each; the
# others run even if one fails.
set -u
bad=()
# Seconds for one test. The debug kernel is several times slower.
limit=900
[ ! -e /sys/kernel/debug/kmemleak ] || limit=3600
for t; do
	start=$(cut -d. -f1 /proc/uptime)
	printf '\n== %s\n' "$t"
	read -r -a words <<<"$t"
	if ! timeout -k 5 "$limit" bash "/opt/urdma/tests/${words[0]}.sh" "${words[@]:1}"; then
		bad+=("$t")
	fi
	echo "== $t: $(($(cut -d. -f1 /proc/uptime) - start)) s"
done
# shellcheck source=tools/guest/complaints.sh
. /opt/urdma/guest/complaints.sh
if dmesg | grep -E "$complaints" | grep -vE "$no_complaints"; then
	bad+=("the kernel's log (above)")
fi
[ ${#bad[@]} = 0 ] || {
	printf '\nFAILED: %s\n' "${bad[@]}"
	exit 1
}
printf '\nall passed\n'
