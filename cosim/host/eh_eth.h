/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded host's driver for the Ethernet function: queue pairs, descriptors, completions. The
 * rules of eh.h apply: functions whose comment says "waits" run the simulation.
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
	uint32_t tx_pi, tx_ci; /* put; done, according to the last completion */
	uint32_t rx_pi, cq_ci;
};

/* 256 descriptors in each direction, 512 completions, 2 KB buffers, vector 2 + n, no moderation. */
void urdma_eh_ethq_defaults(unsigned int n, struct urdma_eh_ethq_config *config);

/* Enables queue pair n with nothing posted, not armed. Waits. */
int urdma_eh_ethq_open(struct urdma_eh *eh, unsigned int n,
		       const struct urdma_eh_ethq_config *config, struct urdma_eh_ethq *q);
/* Disables it and frees its rings. -ETIMEDOUT: it is still active. Waits. */
int urdma_eh_ethq_close(struct urdma_eh_ethq *q);

/* A register of the queue pair, URDMA_ETHQ_*. A read waits, a write is posted. */
uint64_t urdma_eh_ethq_reg(struct urdma_eh_ethq *q, unsigned int reg);
void urdma_eh_ethq_write(struct urdma_eh_ethq *q, unsigned int reg, uint64_t value);

/* Options of a frame, in its first descriptor. */
struct urdma_eh_eth_offload {
	bool vlan, csum;
	uint16_t tci;
	unsigned int csum_start, csum_at;
};

/* Writes one descriptor; offload (may be NULL) only with the first. Does not check for room. */
void urdma_eh_eth_put_tx(struct urdma_eh_ethq *q, uint64_t addr, uint32_t len, bool last,
			 const struct urdma_eh_eth_offload *offload);
void urdma_eh_eth_put_rx(struct urdma_eh_ethq *q, uint64_t addr);
/* Ring the doorbell for all descriptors put so far. */
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

/* Takes the next completion, if any. Only arming writes the consumer index to the NIC. */
bool urdma_eh_eth_poll(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe);
/* Requests an interrupt at the next completion (at once if there is one). */
void urdma_eh_eth_arm(struct urdma_eh_ethq *q);
/* Takes the next completion, after at most limit cycles. Waits. */
int urdma_eh_eth_next(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe, uint64_t limit);

#endif
