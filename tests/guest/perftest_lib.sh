# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced, after common.sh, by the tests that run perftest's programs from urdma1 to urdma0.

runs=0

# run PROGRAM OPTIONS...: runs one pair of programs and prints one line; prints all output only on a failure. n is the
# number of exchanges.
run() {
	local start
	start=$(cut -d. -f1 /proc/uptime)
	# shellcheck disable=SC2154  # the caller's
	meet "$1" 127.0.0.1 urdma0 urdma1 -n "$n" "${@:2}"
	runs=$((runs + 1))
	printf '%-16s %-40s ok, %s s\n' "$1" "${*:2}" $(($(cut -d. -f1 /proc/uptime) - start))
}

# results SIZE ITERATIONS: the client of the last pair has printed its table, with this size and this number.
results() {
	awk -v size="$1" -v iterations="$2" '$1 == size && $2 == iterations && NF >= 5 { ok = 1 } END { exit !ok }' \
		/tmp/client.log || {
		cat /tmp/client.log
		fail "the client's table has no $2 iterations of $1 bytes"
	}
}
