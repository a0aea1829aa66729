#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The rules of urdma-abi.h for kernels and providers of different versions; a reregistration that the NIC refuses; details
# of objects for `rdma resource`. A failure of the first means that the next version of the driver breaks existing
# providers. A failure of the second means that a region is in another PD than its owner believes.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

abi urdma0 || fail "abi urdma0: status $?"
abi urdma0 clock || fail "abi urdma0 clock: status $?"
modprobe failat func=urdma_cmd_exec nth=2 value=-22 scope=urdma_rereg_user_mr || fail "no probe can be set"
abi urdma0 rereg || fail "abi urdma0 rereg: status $?"
[ "$(cat /sys/module/failat/parameters/failed)" = 1 ] || fail "no fault was injected"
modprobe -r failat
pingpong -c -n 10 -s 64

# detail KIND NAME VALUE: checks a detail of an object in `rdma resource`.
detail() {
	rdma resource show "$1" -dd | grep -q "drv_$2 $3 " || fail "no $1 has $2 $3: $(rdma resource show "$1" -dd)"
}
timeout "$limit" ibv_srq_pingpong -d urdma1 -g "$(gid_index urdma1)" -p 19333 -s 40000 >/dev/null &
pid=$!
wait-listen 19333 || fail "ibv_srq_pingpong does not listen"
detail mr page_shift '[1-3][0-9]'
detail mr access 1
detail cq entries 1024
detail srq max_wr 512
detail qp max_send_wr 128
# The kernel's QP 1, which has had no traffic.
detail qp sq_ci 0
kill $pid
wait $pid
echo "ok: the ABI, a registration anew that fails, details of objects"
