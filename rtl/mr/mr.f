// SPDX-License-Identifier: Apache-2.0
mr/urdma_mr_pkg.sv
mr/urdma_mr_ctx.sv
mr/urdma_mr_list.sv
mr/urdma_mr_op.sv
mr/urdma_pte_cache.sv
mr/urdma_mr.sv
