// SPDX-License-Identifier: Apache-2.0
// The embedded host's driver for the Ethernet function. See eh_eth.h.
#include "host/eh_eth.h"

#include <errno.h>
#include <string.h>

#define ACTIVE_LIMIT 1000000u /* cycles until a queue pair must be inactive */

void urdma_eh_ethq_defaults(unsigned int n, struct urdma_eh_ethq_config *config)
{
	*config = (struct urdma_eh_ethq_config){
		.log_tx = 8, .log_rx = 8, .log_cq = 9, .buf = 2048, .vector = 2 + n
	};
}

uint64_t urdma_eh_ethq_reg(struct urdma_eh_ethq *q, unsigned int reg)
{
	return urdma_eh_reg(q->eh, URDMA_REG_ETHQ + URDMA_ETHQ_STRIDE * q->n + reg);
}

void urdma_eh_ethq_write(struct urdma_eh_ethq *q, unsigned int reg, uint64_t value)
{
	urdma_eh_write_reg(q->eh, URDMA_REG_ETHQ + URDMA_ETHQ_STRIDE * q->n + reg, value);
}

static uint64_t *ring(struct urdma_eh *eh, unsigned int log_entries, unsigned int size)
{
	return urdma_embedded_alloc_contig(urdma_eh_host(eh), (size_t)size << log_entries, 4096);
}

static void free_rings(struct urdma_eh_ethq *q)
{
	struct urdma_embedded *host = urdma_eh_host(q->eh);

	urdma_embedded_free(host, q->tx);
	urdma_embedded_free(host, q->rx);
	urdma_embedded_free(host, q->cq);
}

int urdma_eh_ethq_open(struct urdma_eh *eh, unsigned int n,
		       const struct urdma_eh_ethq_config *config, struct urdma_eh_ethq *q)
{
	struct urdma_embedded *host = urdma_eh_host(eh);

	memset(q, 0, sizeof(*q));
	q->eh = eh;
	q->n = n;
	q->cfg = *config;
	q->tx = ring(eh, config->log_tx, URDMA_ETXD_SIZE);
	q->rx = ring(eh, config->log_rx, URDMA_ERXD_SIZE);
	q->cq = ring(eh, config->log_cq, URDMA_ECQE_SIZE);
	if (!q->tx || !q->rx || !q->cq) {
		free_rings(q);
		return -ENOMEM;
	}
	urdma_eh_ethq_write(q, URDMA_ETHQ_TX_BASE, urdma_embedded_bus(host, q->tx));
	urdma_eh_ethq_write(q, URDMA_ETHQ_RX_BASE, urdma_embedded_bus(host, q->rx));
	urdma_eh_ethq_write(q, URDMA_ETHQ_CQ_BASE, urdma_embedded_bus(host, q->cq));
	urdma_eh_ethq_write(q, URDMA_ETHQ_SIZE,
			    URDMA_SET(URDMA_RF_ETHQ_LOG_TX, config->log_tx) |
				    URDMA_SET(URDMA_RF_ETHQ_LOG_RX, config->log_rx) |
				    URDMA_SET(URDMA_RF_ETHQ_LOG_CQ, config->log_cq) |
				    URDMA_SET(URDMA_RF_ETHQ_RX_BUF, config->buf / 64));
	urdma_eh_ethq_write(q, URDMA_ETHQ_INT,
			    URDMA_SET(URDMA_RF_ETHQ_VECTOR, config->vector) |
				    URDMA_SET(URDMA_RF_ETHQ_RX_FRAMES, config->rx_frames) |
				    URDMA_SET(URDMA_RF_ETHQ_TX_FRAMES, config->tx_frames) |
				    URDMA_SET(URDMA_RF_ETHQ_RX_USECS, config->rx_usecs) |
				    URDMA_SET(URDMA_RF_ETHQ_TX_USECS, config->tx_usecs));
	urdma_eh_ethq_write(q, URDMA_ETHQ_CTRL, URDMA_RF_ETHQ_CQ_ENABLE);
	urdma_eh_ethq_write(q, URDMA_ETHQ_CTRL,
			    URDMA_RF_ETHQ_CQ_ENABLE | URDMA_RF_ETHQ_RX_ENABLE |
				    URDMA_RF_ETHQ_TX_ENABLE);
	/* The read flushes the writes, so the queue pair is enabled before any doorbell. */
	return urdma_eh_ethq_reg(q, URDMA_ETHQ_CTRL) == ~UINT64_C(0) ? -EIO : 0;
}

static int disable(struct urdma_eh_ethq *q, uint64_t enabled, uint64_t active)
{
	struct urdma_cosim *c = urdma_eh_cosim(q->eh);
	uint64_t limit = urdma_cosim_now(c) + ACTIVE_LIMIT;

	urdma_eh_ethq_write(q, URDMA_ETHQ_CTRL, enabled);
	while (urdma_eh_ethq_reg(q, URDMA_ETHQ_CTRL) & active)
		if (urdma_cosim_now(c) > limit || urdma_cosim_error(c))
			return -ETIMEDOUT;
	return 0;
}

int urdma_eh_ethq_close(struct urdma_eh_ethq *q)
{
	int ret = disable(q, URDMA_RF_ETHQ_CQ_ENABLE,
			  URDMA_RF_ETHQ_TX_ACTIVE | URDMA_RF_ETHQ_RX_ACTIVE);

	if (!ret)
		ret = disable(q, 0, URDMA_RF_ETHQ_CQ_ACTIVE);
	if (!ret)
		free_rings(q);
	return ret;
}

void urdma_eh_eth_put_tx(struct urdma_eh_ethq *q, uint64_t addr, uint32_t len, bool last,
			 const struct urdma_eh_eth_offload *offload)
{
	uint64_t *d = q->tx + 2 * (q->tx_pi++ & ((1u << q->cfg.log_tx) - 1));

	d[0] = addr;
	d[1] = URDMA_SET(URDMA_ETXD1_LENGTH, len) | (last ? URDMA_ETXD1_LAST : 0);
	if (offload)
		d[1] |= (offload->vlan ? URDMA_ETXD1_VLAN : 0) |
			(offload->csum ? URDMA_ETXD1_CSUM : 0) |
			URDMA_SET(URDMA_ETXD1_TCI, offload->tci) |
			URDMA_SET(URDMA_ETXD1_CSUM_START, offload->csum_start) |
			URDMA_SET(URDMA_ETXD1_CSUM_AT, offload->csum_at);
}

void urdma_eh_eth_put_rx(struct urdma_eh_ethq *q, uint64_t addr)
{
	q->rx[q->rx_pi++ & ((1u << q->cfg.log_rx) - 1)] = addr;
}

static void ring_doorbell(struct urdma_eh_ethq *q, unsigned int offset, uint32_t index,
			  unsigned int arm)
{
	urdma_eh_doorbell(q->eh, 0, offset,
			  URDMA_SET(URDMA_DBW_OBJ, q->n) | URDMA_SET(URDMA_DBW_ARM, arm) |
				  URDMA_SET(URDMA_DBW_INDEX, index));
}

void urdma_eh_eth_ring_tx(struct urdma_eh_ethq *q)
{
	ring_doorbell(q, URDMA_DB_ETH_TX, q->tx_pi & 0xffff, 0);
}

void urdma_eh_eth_ring_rx(struct urdma_eh_ethq *q)
{
	ring_doorbell(q, URDMA_DB_ETH_RX, q->rx_pi & 0xffff, 0);
}

void urdma_eh_eth_arm(struct urdma_eh_ethq *q)
{
	ring_doorbell(q, URDMA_DB_ETH_CQ, q->cq_ci, URDMA_DB_ARM_ANY);
}

/* Read the phase bit first: the NIC's writes become visible in ascending order. */
static bool there(const struct urdma_eh_ethq *q, const volatile uint64_t **w)
{
	uint64_t phase = q->cq_ci >> q->cfg.log_cq & 1 ? 0 : URDMA_ECQE3_PHASE;

	*w = q->cq + 4 * (q->cq_ci & ((1u << q->cfg.log_cq) - 1));
	return ((*w)[3] & URDMA_ECQE3_PHASE) == phase;
}

bool urdma_eh_eth_poll(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe)
{
	const volatile uint64_t *w;

	if (!there(q, &w))
		return false;
	*cqe = (struct urdma_eh_eth_cqe){
		.kind = (unsigned int)URDMA_GET(URDMA_ECQE0_KIND, w[0]),
		.err = w[0] & URDMA_ECQE0_ERR,
		.vlan = w[0] & URDMA_ECQE0_VLAN,
		.hash_type = (unsigned int)URDMA_GET(URDMA_ECQE0_HASH_TYPE, w[0]),
		.bufs = (unsigned int)URDMA_GET(URDMA_ECQE0_BUFS, w[0]),
		.len = (unsigned int)URDMA_GET(URDMA_ECQE0_LENGTH, w[0]),
		.tci = (uint16_t)URDMA_GET(URDMA_ECQE0_TCI, w[0]),
		.csum = (uint16_t)URDMA_GET(URDMA_ECQE0_CSUM, w[0]),
		.hash = (uint32_t)URDMA_GET(URDMA_ECQE1_HASH, w[1]),
		.index = (uint16_t)URDMA_GET(URDMA_ECQE1_INDEX, w[1]),
		.cycles = URDMA_GET(URDMA_ECQE3_CYCLES, w[3]),
	};
	q->cq_ci++;
	if (cqe->kind == URDMA_ECQE_TX)
		q->tx_ci += (uint16_t)(cqe->index - q->tx_ci);
	return true;
}

static bool ready(void *arg)
{
	const volatile uint64_t *w;

	return there(arg, &w);
}

int urdma_eh_eth_next(struct urdma_eh_ethq *q, struct urdma_eh_eth_cqe *cqe, uint64_t limit)
{
	struct urdma_cosim *c = urdma_eh_cosim(q->eh);
	int ret = urdma_cosim_run_cond(c, ready, q, urdma_cosim_now(c) + limit);

	if (!ret)
		urdma_eh_eth_poll(q, cqe);
	return ret;
}
