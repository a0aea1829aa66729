// SPDX-License-Identifier: Apache-2.0
// Every file of the NIC, relative to rtl/; urdma_hw_pkg.sv (generated) and urdma_pkg.sv come before.
urdma_trace_pkg.sv
-f lib/lib.f
-f pcie/urdma_pcie.f
-f queue/queue.f
-f mr/mr.f
-f tx/tx.f
-f rx/rx.f
-f eth/eth.f
urdma_top.sv
