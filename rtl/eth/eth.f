eth/urdma_mac_tx.sv
