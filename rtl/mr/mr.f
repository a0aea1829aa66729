mr/urdma_mr_ctx.sv
mr/urdma_pte_cache.sv
mr/urdma_mr.sv
