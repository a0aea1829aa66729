#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# gloo.sh short|full: Gloo's collectives over plain verbs between two guests, 2 and 4 ranks, or only 2 (gloo/allreduce.cc, in
# /share). The guests need Debian's libgloo0 (--packages).
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

# Four ranks share two guests with one processor each, perhaps of a busy host.
limit=900
beginning
far_index=$(on 1 bash -c '. /opt/urdma/tests/common.sh; gid_index urdma0')
counts=(2 4)
[ "$form" != short ] || counts=(2)
for ranks in "${counts[@]}"; do
	# The ranks find each other through files that both guests see.
	meeting=/share/meeting-$ranks
	rm -rf "$meeting"
	mkdir "$meeting"
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		if [ $((rank % 2)) = 0 ]; then at=(env) index=$(gid_index urdma0); else at=(on 1) index=$far_index; fi
		"${at[@]}" timeout "$limit" /share/allreduce $rank "$ranks" "$meeting" urdma0 "$index" >/tmp/rank$rank.log 2>&1 &
		pids+=($!)
	done
	for ((rank = 0; rank < ranks; rank++)); do
		{ wait "${pids[rank]}" && grep -q "^ok: rank $rank of $ranks" /tmp/rank$rank.log; } ||
			fail "$ranks ranks: $(tail -n 5 /tmp/rank*.log)"
	done
	rm -rf "$meeting"
	phase "$ranks ranks"
done
ending '' ''
echo "ok: Gloo"
