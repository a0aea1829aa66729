/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded host's driver for the Ethernet function: queue pairs, descriptors, completions.
 * Rules of eh.h hold: functions whose comment says "waits" run the simulation.
 */
#ifndef URDMA_COSIM_EH_ETH_H
#define URDMA_COSIM_EH_ETH_H

#include "host/eh.h"

struct urdma_eh_ethq_config {
	unsigned int log_tx, log_rx, log_cq; /* entries */
	unsigned int buf;		     /* bytes of a receive buffer, a multiple of 64 */
	unsigned int vector;
	unsigned int rx_frames, rx_usecs, tx_frames, tx_usecs;
};

struct urdma_eh_ethq {
	struct urdma_eh *eh;
	unsigned int n;
	struct urdma_eh_ethq_config cfg;
	uint64_t *tx, *rx, *cq;
	uint32_t tx_pi, tx_ci; /* put; done, as the last completion polled says */
	uint32_t rx_pi, cq_ci;
};

/* 256 descriptors each way, 512 completions, buffers of 2 KB, vector 2 + n, interrupts at once. */
void urdma_eh_ethq_defaults(unsigned int n, struct urdma_eh_ethq_config *config);

/* Enables queue pair n, nothing posted, not armed. Waits. */
int urdma_eh_ethq_open(struct urdma_eh *eh, unsigned int n,
		       const struct urdma_eh_ethq_config *config, struct urdma_eh_ethq *q);
/* Disables it and frees its rings. -ETIMEDOUT: it stays active. Waits. */
int urdma_eh_ethq_close(struct urdma_eh_ethq *q);

/* A register of the queue pair, URDMA_ETHQ_*. Reading waits, writing is posted. */
uint64_t urdma_eh_ethq_reg(struct urdma_eh_ethq *q, unsigned int reg);
void urdma_eh_ethq_write(struct urdma_eh_ethq *q, unsigned int reg, uint64_t value);

/* Options of a frame, in its first descriptor. */
struct urdma_eh_eth_offload {
	bool vlan, csum;
	uint16_t tci;
	unsigned int csum_start, csum_at;
};

/* One descriptor; offload (may be NULL) only with the first. No check for room in the ring. */
void urdma_eh_eth_put_tx(struct urdma_eh_ethq *q, uint64_t addr, uint32_t len, bool last,
			 const struct urdma_eh_eth_offload *offload);
void urdma_eh_eth_put_rx(struct urdma_eh_ethq *q, uint64_t addr);
/* Tell the NIC about all that was put. */
void urdma_eh_eth_ring_tx(struct urdma_eh_ethq *q);
void urdma_eh_eth_ring_rx(struct urdma_eh_ethq *q);

struct urdma_eh_eth_cqe {
	unsigned int kind; /* URDMA_ECQE_RX, _TX */
	bool err, vlan;
	unsigned int hash_type, bufs, len;
	uint16_t tci, csum, index;
	uint32_t hash;
	uint64_t cycles;
};

/* Takes the next completion, if there is one. Only arming writes the consumer index to the NIC. */
bool urdma_eh_eth_poll(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe);
/* An interrupt at the next completion (at once if there is one). */
void urdma_eh_eth_arm(struct urdma_eh_ethq *q);
/* The next completion; limit in cycles from now. Waits. */
int urdma_eh_eth_next(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe, uint64_t limit);

#endif
