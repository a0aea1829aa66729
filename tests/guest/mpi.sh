#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi.sh short|full: Open MPI over UCX between two guests, 2 and 4 ranks, by RC and by UD, or 2 ranks only by RC
# (mpi/collectives.c, in /share). The guests need Debian's openmpi-bin (--packages).
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

# Four ranks share two guests with one processor each, perhaps of a busy host.
limit=900
beginning
# The command that mpirun uses instead of ssh: the first word is the host. The daemon in guest 1 must find it
# too.
agent() {
	printf '#!/bin/bash\nshift\nexec on 1 bash -c "$*"\n' >/tmp/agent
	chmod +x /tmp/agent
}
agent
far agent
# Guest 1 gets them too.
exported=(-x UCX_TLS)
for setting in "${ucx[@]}"; do
	exported+=(-x "${setting%%=*}")
done
transports=(rc ud) counts=(2 4)
[ "$form" != short ] || transports=(rc) counts=(2)
for transport in "${transports[@]}"; do
	for ranks in "${counts[@]}"; do
		timeout "$limit" env "${ucx[@]}" "UCX_TLS=$transport,self,sm" mpirun.openmpi --allow-run-as-root \
			--leave-session-attached --prtemca plm_ssh_agent /tmp/agent --mca pml ucx --mca osc ucx \
			--host $client:$((ranks / 2)),$server:$((ranks / 2)) -np "$ranks" --map-by slot:OVERSUBSCRIBE \
			--bind-to none "${exported[@]}" /share/collectives >/tmp/mpi.log 2>&1 ||
			fail "$ranks ranks by $transport: $(cat /tmp/mpi.log)"
		grep -q "^ok: $ranks ranks" /tmp/mpi.log || fail "$ranks ranks by $transport: $(cat /tmp/mpi.log)"
		echo "$(cat /tmp/mpi.log), by $transport"
	done
done
ending '' ''
