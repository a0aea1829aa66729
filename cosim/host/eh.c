// SPDX-License-Identifier: Apache-2.0
// The embedded host's driver: commands, rings, doorbells. See eh.h.
#include "host/eh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/eh_srq.h"
#include "rate.h"

#define READY_LIMIT   1000000u /* cycles until STATUS.READY */
#define TABLE_ENTRIES 512u     /* addresses in a 4 KB table */

struct eq {
	uint64_t *base;
	unsigned int log_entries;
	uint32_t ci;
};

struct pending {
	urdma_eh_cmd_done done;
	void *arg;
	bool used;
};

struct urdma_eh {
	struct urdma_embedded *host;
	struct urdma_embedded_dev *dev;
	struct urdma_cosim *c;
	struct urdma_eh_config cfg;
	struct urdma_eh_caps caps;
	struct urdma_eh_cmd *cmdq, *cplq;
	uint32_t cmd_pi, cpl_ci;
	struct pending *pending; /* index: tag */
	unsigned int n_pending;
	bool batch;	  /* do not wait for commands */
	int batch_status; /* of the first one that failed */
	struct eq *eq;
	unsigned int n_eqs;
};

/* Reads memory that a device wrote, word by word: the phase bit first, then the rest. */
static inline uint64_t load(const volatile uint64_t *p)
{
	return *p;
}

void urdma_eh_config_defaults(struct urdma_eh_config *config)
{
	memset(config, 0, sizeof(*config));
	config->log_cmdq = 6;
	config->log_eq = 8;
	config->n_eqs = 2;
}

struct urdma_embedded_dev *urdma_eh_dev(struct urdma_eh *eh)
{
	return eh->dev;
}

struct urdma_embedded *urdma_eh_host(struct urdma_eh *eh)
{
	return eh->host;
}

struct urdma_cosim *urdma_eh_cosim(struct urdma_eh *eh)
{
	return eh->c;
}

const struct urdma_eh_caps *urdma_eh_caps(const struct urdma_eh *eh)
{
	return &eh->caps;
}

uint64_t urdma_eh_reg(struct urdma_eh *eh, uint64_t offset)
{
	uint64_t v;

	if (urdma_embedded_read64(eh->dev, URDMA_BAR_REGS, offset, &v))
		return ~UINT64_C(0);
	return v;
}

uint64_t urdma_eh_counter(struct urdma_eh *eh, unsigned int index)
{
	return urdma_eh_reg(eh, URDMA_REG_COUNTERS + 8 * (uint64_t)index);
}

void urdma_eh_write_reg(struct urdma_eh *eh, uint64_t offset, uint64_t value)
{
	urdma_embedded_write64(eh->dev, URDMA_BAR_REGS, offset, value);
}

void urdma_eh_doorbell(struct urdma_eh *eh, unsigned int page, unsigned int offset, uint64_t word)
{
	urdma_embedded_write64(eh->dev, URDMA_BAR_DB, (uint64_t)page * URDMA_DB_PAGE_SIZE + offset,
			       word);
}

/* ---- bring-up ------------------------------------------------------------------------------ */

static int wait_ready(struct urdma_eh *eh)
{
	uint64_t limit = urdma_cosim_now(eh->c) + READY_LIMIT;

	for (;;) {
		uint64_t v;
		int ret = urdma_embedded_read64(eh->dev, URDMA_BAR_REGS, URDMA_REG_STATUS, &v);

		if (ret)
			return ret;
		if (v & URDMA_RF_STATUS_READY)
			return 0;
		if (urdma_cosim_now(eh->c) > limit)
			return -ETIMEDOUT;
		ret = urdma_cosim_run_until(eh->c, urdma_cosim_now(eh->c) + 1000);
		if (ret)
			return ret;
	}
}

static int read_caps(struct urdma_eh *eh)
{
	struct urdma_eh_caps *c = &eh->caps;
	uint64_t v = urdma_eh_reg(eh, URDMA_REG_VERSION);

	if (URDMA_GET(URDMA_RF_VERSION_MAGIC, v) != URDMA_MAGIC)
		return -ENODEV;
	c->major = (uint16_t)URDMA_GET(URDMA_RF_VERSION_MAJOR, v);
	c->minor = (uint16_t)URDMA_GET(URDMA_RF_VERSION_MINOR, v);
	if (c->major != URDMA_VERSION_MAJOR)
		return -EPROTONOSUPPORT;
	v = urdma_eh_reg(eh, URDMA_REG_CAP_OBJ);
	c->log_qp = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_QP, v);
	c->log_cq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_CQ, v);
	c->log_mr = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_MR, v);
	c->log_srq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_SRQ, v);
	c->log_eq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_EQ, v);
	c->log_pd = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_PD, v);
	c->log_db_pages = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_DB_PAGES, v);
	c->log_vectors = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_VECTORS, v);
	v = urdma_eh_reg(eh, URDMA_REG_CAP_QUEUE);
	c->max_sq_sge = (unsigned int)URDMA_GET(URDMA_RF_CAP_MAX_SQ_SGE, v);
	c->max_rq_sge = (unsigned int)URDMA_GET(URDMA_RF_CAP_MAX_RQ_SGE, v);
	c->max_inline = (unsigned int)URDMA_GET(URDMA_RF_CAP_MAX_INLINE, v);
	c->log_sq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_SQ, v);
	c->log_rq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_RQ, v);
	c->log_cqe = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_CQE, v);
	c->log_eqe = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_EQE, v);
	v = urdma_eh_reg(eh, URDMA_REG_CAP_XPORT);
	c->log_max_msg = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_MAX_MSG, v);
	c->log_max_mtu = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_MAX_MTU, v);
	c->gids = (unsigned int)URDMA_GET(URDMA_RF_CAP_GIDS, v);
	c->max_rd_atomic = (unsigned int)URDMA_GET(URDMA_RF_CAP_MAX_RD_ATOMIC, v);
	c->log_cmdq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_CMDQ, v);
	c->log_db_page_size = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_DB_PAGE_SIZE, v);
	c->page_shifts = urdma_eh_reg(eh, URDMA_REG_CAP_PAGES);
	c->features = urdma_eh_reg(eh, URDMA_REG_CAP_FEATURES);
	v = urdma_eh_reg(eh, URDMA_REG_CAP_ETH);
	c->eth_queues = (unsigned int)URDMA_GET(URDMA_RF_CAP_ETH_QUEUES, v);
	c->log_eth_ring = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_ETH_RING, v);
	c->log_eth_cq = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_ETH_CQ, v);
	c->eth_max_frame = (unsigned int)URDMA_GET(URDMA_RF_CAP_ETH_MAX_FRAME, v);
	c->eth_tx_descs = (unsigned int)URDMA_GET(URDMA_RF_CAP_ETH_TX_DESCS, v);
	c->eth_uc = (unsigned int)URDMA_GET(URDMA_RF_CAP_ETH_UC, v);
	v = urdma_eh_reg(eh, URDMA_REG_CAP_DM);
	c->log_dm = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_DM, v);
	c->log_dm_offset = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_DM_OFFSET, v);
	v = urdma_eh_reg(eh, URDMA_REG_CAP_CNT);
	c->log_cnt_sets = (unsigned int)URDMA_GET(URDMA_RF_CAP_LOG_CNT_SETS, v);
	c->clock_hz = urdma_eh_reg(eh, URDMA_REG_CLOCK_HZ);
	return 0;
}

static int create_eq(struct urdma_eh *eh, unsigned int eqn)
{
	struct eq *eq = &eh->eq[eqn];
	struct urdma_eh_cmd cmd = { 0 };
	int ret;

	eq->log_entries = eh->cfg.log_eq;
	eq->base =
		urdma_embedded_alloc_contig(eh->host, (size_t)URDMA_EQE_SIZE << eq->log_entries, 0);
	if (!eq->base)
		return -ENOMEM;
	cmd.w[0] =
		URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_EQ) | URDMA_SET(URDMA_CMD0_OBJ, eqn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_EQ1_LOG_ENTRIES, eq->log_entries) |
		   URDMA_SET(URDMA_CMD_EQ1_VECTOR, eqn);
	cmd.w[2] = urdma_embedded_bus(eh->host, eq->base);
	ret = urdma_eh_cmd(eh, &cmd, NULL);
	if (ret)
		return ret > 0 ? -EREMOTEIO : ret;
	eh->n_eqs = eqn + 1;
	urdma_eh_eq_poll(eh, eqn, NULL, 0, true);
	return 0;
}

int urdma_eh_open(struct urdma_embedded *host, unsigned int nic,
		  const struct urdma_eh_config *config, struct urdma_eh **out)
{
	struct urdma_eh *eh = calloc(1, sizeof(*eh));
	size_t size;
	int ret;

	if (!eh)
		return -ENOMEM;
	if (config)
		eh->cfg = *config;
	else
		urdma_eh_config_defaults(&eh->cfg);
	eh->host = host;
	eh->c = urdma_embedded_cosim(host);
	ret = urdma_embedded_attach(host, nic, &eh->dev);
	if (ret) {
		free(eh);
		return ret;
	}
	size = (size_t)URDMA_CMD_SIZE << eh->cfg.log_cmdq;
	eh->cmdq = urdma_embedded_alloc_contig(host, size, 0);
	eh->cplq = urdma_embedded_alloc_contig(host, size, 0);
	eh->pending = calloc((size_t)1 << eh->cfg.log_cmdq, sizeof(*eh->pending));
	eh->eq = calloc(eh->cfg.n_eqs ? eh->cfg.n_eqs : 1, sizeof(*eh->eq));
	ret = -ENOMEM;
	if (!eh->cmdq || !eh->cplq || !eh->pending || !eh->eq)
		goto err;
	*out = eh;
	if (eh->cfg.no_init)
		return 0;
	ret = wait_ready(eh);
	if (!ret)
		ret = read_caps(eh);
	if (ret)
		goto err;
	urdma_eh_write_reg(eh, URDMA_REG_CMDQ_BASE, urdma_embedded_bus(host, eh->cmdq));
	urdma_eh_write_reg(eh, URDMA_REG_CMDQ_CPL_BASE, urdma_embedded_bus(host, eh->cplq));
	urdma_eh_write_reg(eh, URDMA_REG_CMDQ_LOG_SIZE, eh->cfg.log_cmdq);
	urdma_eh_write_reg(eh, URDMA_REG_CTRL, URDMA_RF_CTRL_ENABLE);
	for (unsigned int i = 0; i < eh->cfg.n_eqs && !ret; i++)
		ret = create_eq(eh, i);
	if (!ret)
		return 0;
err:
	urdma_eh_close(eh);
	*out = NULL;
	return ret;
}

void urdma_eh_close(struct urdma_eh *eh)
{
	if (!eh)
		return;
	urdma_embedded_detach(eh->dev);
	if (eh->cmdq)
		urdma_embedded_free(eh->host, eh->cmdq);
	if (eh->cplq)
		urdma_embedded_free(eh->host, eh->cplq);
	for (unsigned int i = 0; eh->eq && i < eh->cfg.n_eqs; i++)
		if (eh->eq[i].base)
			urdma_embedded_free(eh->host, eh->eq[i].base);
	free(eh->eq);
	free(eh->pending);
	free(eh);
}

/* ---- commands ------------------------------------------------------------------------------ */

int urdma_eh_cmd_post(struct urdma_eh *eh, const struct urdma_eh_cmd *cmd, urdma_eh_cmd_done done,
		      void *arg)
{
	uint32_t size = 1u << eh->cfg.log_cmdq, slot = eh->cmd_pi & (size - 1);
	struct urdma_eh_cmd *q = &eh->cmdq[slot];
	unsigned int tag = slot;

	/* Completions may be reordered, so a slot may be free before its tag is. */
	if (eh->n_pending == size)
		return -EAGAIN;
	while (eh->pending[tag].used)
		tag = (tag + 1) & (size - 1);
	eh->pending[tag].used = true;
	eh->pending[tag].done = done;
	eh->pending[tag].arg = arg;
	eh->n_pending++;
	*q = *cmd;
	q->w[0] = (q->w[0] & ~URDMA_CMD0_TAG) | URDMA_SET(URDMA_CMD0_TAG, tag);
	eh->cmd_pi++;
	urdma_eh_write_reg(eh, URDMA_REG_CMDQ_PI, eh->cmd_pi & 0xffff);
	return 0;
}

unsigned int urdma_eh_cmd_poll(struct urdma_eh *eh)
{
	uint32_t size = 1u << eh->cfg.log_cmdq;
	unsigned int n = 0;

	for (;;) {
		const struct urdma_eh_cmd *q = &eh->cplq[eh->cpl_ci & (size - 1)];
		unsigned int phase = !((eh->cpl_ci >> eh->cfg.log_cmdq) & 1);
		struct urdma_eh_cmd cpl;
		struct pending p;
		unsigned int tag;

		if (URDMA_GET(URDMA_CPL7_PHASE, load(&q->w[7])) != phase)
			return n;
		cpl = *q;
		eh->cpl_ci++;
		n++;
		tag = (unsigned int)URDMA_GET(URDMA_CPL0_TAG, cpl.w[0]);
		if (tag >= size || !eh->pending[tag].used)
			continue; /* unknown tag: the waiting function will time out */
		p = eh->pending[tag];
		eh->pending[tag].used = false;
		eh->n_pending--;
		if (p.done)
			p.done(p.arg, &cpl);
	}
}

unsigned int urdma_eh_cmd_pending(const struct urdma_eh *eh)
{
	return eh->n_pending;
}

struct cmd_wait {
	struct urdma_eh *eh;
	struct urdma_eh_cmd cpl;
	bool done;
};

static void cmd_done(void *arg, const struct urdma_eh_cmd *cpl)
{
	struct cmd_wait *w = arg;

	w->cpl = *cpl;
	w->done = true;
}

static bool cmd_is_done(void *arg)
{
	struct cmd_wait *w = arg;

	urdma_eh_cmd_poll(w->eh);
	return w->done;
}

static bool cmd_has_room(void *arg)
{
	struct urdma_eh *eh = arg;

	urdma_eh_cmd_poll(eh);
	return eh->n_pending < 1u << eh->cfg.log_cmdq;
}

static void batch_done(void *arg, const struct urdma_eh_cmd *cpl)
{
	struct urdma_eh *eh = arg;

	if (!eh->batch_status)
		eh->batch_status = (int)URDMA_GET(URDMA_CPL0_STATUS, cpl->w[0]);
}

void urdma_eh_batch_begin(struct urdma_eh *eh)
{
	eh->batch = true;
	eh->batch_status = 0;
}

static bool cmd_none_pending(void *arg)
{
	struct urdma_eh *eh = arg;

	urdma_eh_cmd_poll(eh);
	return !eh->n_pending;
}

int urdma_eh_batch_end(struct urdma_eh *eh)
{
	int ret = urdma_cosim_run_cond(eh->c, cmd_none_pending, eh,
				       urdma_cosim_now(eh->c) + URDMA_EH_CMD_CYCLES);

	eh->batch = false;
	return ret ? ret : eh->batch_status;
}

int urdma_eh_cmd(struct urdma_eh *eh, const struct urdma_eh_cmd *cmd, struct urdma_eh_cmd *cpl)
{
	struct cmd_wait w = { .eh = eh };
	uint64_t limit = urdma_cosim_now(eh->c) + URDMA_EH_CMD_CYCLES;
	int ret;

	ret = urdma_cosim_run_cond(eh->c, cmd_has_room, eh, limit);
	if (!ret && eh->batch && !cpl)
		return urdma_eh_cmd_post(eh, cmd, batch_done, eh);
	if (!ret)
		ret = urdma_eh_cmd_post(eh, cmd, cmd_done, &w);
	if (ret)
		return ret;
	ret = urdma_cosim_run_cond(eh->c, cmd_is_done, &w, limit);
	if (!w.done) {
		/* The completion may come after w has gone out of scope. */
		for (unsigned int i = 0; i < 1u << eh->cfg.log_cmdq; i++)
			if (eh->pending[i].arg == &w)
				eh->pending[i].done = NULL;
		return ret ? ret : -EINTR;
	}
	if (cpl)
		*cpl = w.cpl;
	return (int)URDMA_GET(URDMA_CPL0_STATUS, w.cpl.w[0]);
}

/* ---- rings and page lists ------------------------------------------------------------------ */

static bool contiguous(struct urdma_embedded *host, const uint8_t *p, size_t n, uint64_t page)
{
	uint64_t bus = urdma_embedded_bus(host, p);

	for (size_t i = 1; i < n; i++)
		if (urdma_embedded_bus(host, p + i * page) != bus + i * page)
			return false;
	return true;
}

static uint64_t *add_table(struct urdma_embedded *host, struct urdma_eh_map *map, size_t entries)
{
	uint64_t *t = urdma_embedded_alloc_contig(host, entries * 8, 0);

	if (t)
		map->table[map->n_tables++] = t;
	return t;
}

int urdma_eh_map(struct urdma_embedded *host, const void *p, size_t len, int levels,
		 unsigned int page_shift, struct urdma_eh_map *map)
{
	const uint8_t *base;
	uint64_t page;
	uint64_t *top;
	size_t n;

	memset(map, 0, sizeof(*map));
	map->page_shift = page_shift ? page_shift : 12;
	page = UINT64_C(1) << map->page_shift;
	base = (const uint8_t *)p - (urdma_embedded_bus(host, p) & (page - 1));
	n = (size_t)(((const uint8_t *)p - base + len + page - 1) / page);
	if (!n)
		n = 1;
	if (levels < 0)
		levels = contiguous(host, base, n, page) ? 0 : n <= TABLE_ENTRIES ? 1 : 2;
	map->levels = (unsigned int)levels;
	if (!levels) {
		map->addr = urdma_embedded_bus(host, base);
		return 0;
	}
	if (levels == 1) {
		top = add_table(host, map, n);
		if (!top)
			return -ENOMEM;
		for (size_t i = 0; i < n; i++)
			top[i] = urdma_embedded_bus(host, base + i * page);
		map->addr = urdma_embedded_bus(host, top);
		return 0;
	}
	if ((n + TABLE_ENTRIES - 1) / TABLE_ENTRIES > TABLE_ENTRIES)
		return -E2BIG;
	top = add_table(host, map, (n + TABLE_ENTRIES - 1) / TABLE_ENTRIES);
	if (!top)
		return -ENOMEM;
	for (size_t i = 0; i < n; i += TABLE_ENTRIES) {
		uint64_t *t = add_table(host, map, TABLE_ENTRIES);

		if (!t) {
			urdma_eh_unmap(host, map);
			return -ENOMEM;
		}
		for (size_t k = 0; k < TABLE_ENTRIES && i + k < n; k++)
			t[k] = urdma_embedded_bus(host, base + (i + k) * page);
		top[i / TABLE_ENTRIES] = urdma_embedded_bus(host, t);
	}
	map->addr = urdma_embedded_bus(host, top);
	return 0;
}

void urdma_eh_unmap(struct urdma_embedded *host, struct urdma_eh_map *map)
{
	for (unsigned int i = 0; i < map->n_tables; i++)
		urdma_embedded_free(host, map->table[i]);
	map->n_tables = 0;
}

int urdma_eh_ring_create(struct urdma_eh *eh, unsigned int log_entries, unsigned int log_stride,
			 size_t behind, enum urdma_eh_ring_kind kind, struct urdma_eh_ring *ring)
{
	size_t size = ((size_t)1 << (log_entries + log_stride)) + behind;
	int ret;

	memset(ring, 0, sizeof(*ring));
	ring->log_entries = log_entries;
	ring->log_stride = log_stride;
	if (kind == URDMA_EH_RING_CONTIG)
		ring->base = urdma_embedded_alloc_contig(eh->host, size, 0);
	else
		ring->base = urdma_embedded_alloc(eh->host, size);
	if (!ring->base)
		return -ENOMEM;
	ret = urdma_eh_map(eh->host, ring->base, size, kind == URDMA_EH_RING_LEVELS_2 ? 2 : -1, 12,
			   &ring->map);
	if (ret)
		urdma_embedded_free(eh->host, ring->base);
	return ret;
}

void urdma_eh_ring_destroy(struct urdma_eh *eh, struct urdma_eh_ring *ring)
{
	if (!ring->base)
		return;
	urdma_eh_unmap(eh->host, &ring->map);
	urdma_embedded_free(eh->host, ring->base);
	ring->base = NULL;
}

uint64_t urdma_eh_ring_word(const struct urdma_eh_ring *ring)
{
	return URDMA_SET(URDMA_RING_LOG_ENTRIES, ring->log_entries) |
	       URDMA_SET(URDMA_RING_LOG_STRIDE, ring->log_stride) |
	       URDMA_SET(URDMA_RING_LEVELS, ring->map.levels) |
	       URDMA_SET(URDMA_RING_PAGE_SHIFT, ring->map.page_shift);
}

static uint64_t *ring_slot(const struct urdma_eh_ring *ring, uint32_t index)
{
	uint32_t slot = index & ((1u << ring->log_entries) - 1);

	return (uint64_t *)(ring->base + ((size_t)slot << ring->log_stride));
}

/* The phase bit of the entry with a free-running index. */
static unsigned int ring_phase(unsigned int log_entries, uint32_t index)
{
	return !((index >> log_entries) & 1);
}

/* ---- events -------------------------------------------------------------------------------- */

unsigned int urdma_eh_eq_poll(struct urdma_eh *eh, unsigned int eqn, struct urdma_eh_event *ev,
			      unsigned int n, bool arm)
{
	struct eq *eq = &eh->eq[eqn];
	unsigned int got = 0;

	while (got < n) {
		const uint64_t *e = eq->base + 2 * (size_t)(eq->ci & ((1u << eq->log_entries) - 1));
		uint64_t w1 = load(&e[1]), w;

		if (URDMA_GET(URDMA_EQE1_PHASE, w1) != ring_phase(eq->log_entries, eq->ci))
			break;
		w = load(e);
		ev[got].type = (unsigned int)URDMA_GET(URDMA_EQE0_TYPE, w);
		ev[got].obj = (uint32_t)URDMA_GET(URDMA_EQE0_OBJ, w);
		ev[got].data = (uint32_t)URDMA_GET(URDMA_EQE0_DATA, w);
		ev[got].cycles = URDMA_GET(URDMA_EQE1_CYCLES, w1);
		eq->ci++;
		got++;
	}
	if (got || arm)
		urdma_eh_doorbell(eh, 0, URDMA_DB_EQ,
				  URDMA_SET(URDMA_DBW_OBJ, eqn) |
					  URDMA_SET(URDMA_DBW_ARM,
						    arm ? URDMA_DB_ARM_ANY : URDMA_DB_ARM_NONE) |
					  URDMA_SET(URDMA_DBW_INDEX, eq->ci));
	return got;
}

/* ---- device memory -------------------------------------------------------------------------- */

/* An access must be within an aligned 8-byte word. */
static size_t dm_step(uint64_t offset)
{
	return offset % 8 ? 4 : 8;
}

void urdma_eh_dm_write(struct urdma_eh *eh, uint64_t offset, const void *p, size_t len)
{
	size_t step = dm_step(offset);

	for (size_t i = 0; i < len; i += step)
		urdma_embedded_write(eh->dev, URDMA_BAR_DB,
				     (1ull << eh->caps.log_dm_offset) + offset + i,
				     (const uint8_t *)p + i, step);
}

int urdma_eh_dm_read(struct urdma_eh *eh, uint64_t offset, void *p, size_t len)
{
	size_t step = dm_step(offset);
	int ret = 0;

	for (size_t i = 0; i < len && !ret; i += step)
		ret = urdma_embedded_read(eh->dev, URDMA_BAR_DB,
					  (1ull << eh->caps.log_dm_offset) + offset + i,
					  (uint8_t *)p + i, step);
	return ret;
}

/* ---- PD, MR -------------------------------------------------------------------------------- */

static int simple(struct urdma_eh *eh, unsigned int opcode, uint32_t obj)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, opcode) | URDMA_SET(URDMA_CMD0_OBJ, obj);
	return urdma_eh_cmd(eh, &cmd, NULL);
}

int urdma_eh_alloc_pd(struct urdma_eh *eh, uint32_t pd)
{
	return simple(eh, URDMA_CMD_ALLOC_PD, pd);
}

int urdma_eh_dealloc_pd(struct urdma_eh *eh, uint32_t pd)
{
	return simple(eh, URDMA_CMD_DEALLOC_PD, pd);
}

/* Converts access rights to the NIC's bits. */
static unsigned int rights(unsigned int access)
{
	return access & ~URDMA_EH_ZERO_BASED;
}

static uint64_t first_address(unsigned int access, uint64_t va)
{
	return access & URDMA_EH_ZERO_BASED ? 0 : va;
}

/* Uses the map in mr. */
static int create_mr(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
		     unsigned int access, size_t len, uint64_t va, struct urdma_eh_mr *mr)
{
	struct urdma_eh_cmd cmd = { 0 };

	mr->eh = eh;
	mr->index = index;
	mr->key = index << 8 | variant;
	mr->va = first_address(access, va);
	mr->length = len;
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_MR) |
		   URDMA_SET(URDMA_CMD0_OBJ, index);
	cmd.w[1] = URDMA_SET(URDMA_CMD_MR1_PD, pd) |
		   URDMA_SET(URDMA_CMD_MR1_ACCESS, rights(access)) |
		   URDMA_SET(URDMA_CMD_MR1_ZERO_BASED, !!(access & URDMA_EH_ZERO_BASED)) |
		   URDMA_SET(URDMA_CMD_MR1_VARIANT, variant) |
		   URDMA_SET(URDMA_CMD_MR1_LEVELS, mr->map.levels) |
		   URDMA_SET(URDMA_CMD_MR1_PAGE_SHIFT, mr->map.page_shift);
	cmd.w[2] = va;
	cmd.w[3] = len;
	cmd.w[4] = mr->map.addr;
	return urdma_eh_cmd(eh, &cmd, NULL);
}

int urdma_eh_create_mr_map(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			   unsigned int access, void *p, size_t len, uint64_t va, int levels,
			   unsigned int page_shift, struct urdma_eh_mr *mr)
{
	int ret;

	memset(mr, 0, sizeof(*mr));
	ret = urdma_eh_map(eh->host, p, len, levels, page_shift, &mr->map);
	if (ret)
		return ret;
	ret = create_mr(eh, index, variant, pd, access, len, va, mr);
	if (ret)
		urdma_eh_unmap(eh->host, &mr->map);
	return ret;
}

int urdma_eh_create_mr_dm(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			  unsigned int access, uint64_t offset, size_t len, struct urdma_eh_mr *mr)
{
	memset(mr, 0, sizeof(*mr));
	mr->map.page_shift = 12;
	mr->map.addr = URDMA_ADDR_DM | offset;
	return create_mr(eh, index, variant, pd, access, len, 0, mr);
}

int urdma_eh_create_mr(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
		       unsigned int access, void *p, size_t len, uint64_t va,
		       struct urdma_eh_mr *mr)
{
	return urdma_eh_create_mr_map(eh, index, variant, pd, access, p, len, va, -1, 12, mr);
}

int urdma_eh_create_mr_kind(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			    unsigned int kind, struct urdma_eh_mr *mr)
{
	struct urdma_eh_cmd cmd = { 0 };

	memset(mr, 0, sizeof(*mr));
	mr->eh = eh;
	mr->index = index;
	mr->key = index << 8 | variant;
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_MR) |
		   URDMA_SET(URDMA_CMD0_OBJ, index);
	cmd.w[1] = URDMA_SET(URDMA_CMD_MR1_PD, pd) | URDMA_SET(URDMA_CMD_MR1_VARIANT, variant) |
		   URDMA_SET(URDMA_CMD_MR1_KIND, kind);
	return urdma_eh_cmd(eh, &cmd, NULL);
}

int urdma_eh_destroy_mr(struct urdma_eh_mr *mr)
{
	int ret = simple(mr->eh, URDMA_CMD_DESTROY_MR, mr->index);

	if (!ret)
		urdma_eh_unmap(mr->eh->host, &mr->map);
	return ret;
}

/* ---- CQ ------------------------------------------------------------------------------------ */

int urdma_eh_create_cq(struct urdma_eh *eh, uint32_t cqn, unsigned int log_entries,
		       unsigned int eqn, unsigned int db_page, enum urdma_eh_ring_kind kind,
		       struct urdma_eh_cq *cq)
{
	struct urdma_eh_cmd cmd = { 0 };
	int ret;

	memset(cq, 0, sizeof(*cq));
	cq->eh = eh;
	cq->cqn = cqn;
	cq->db_page = db_page;
	ret = urdma_eh_ring_create(eh, log_entries, 5, 0, kind, &cq->ring);
	if (ret)
		return ret;
	cmd.w[0] =
		URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_CQ) | URDMA_SET(URDMA_CMD0_OBJ, cqn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_CQ1_RING, urdma_eh_ring_word(&cq->ring)) |
		   URDMA_SET(URDMA_CMD_CQ1_EQN, eqn) | URDMA_SET(URDMA_CMD_CQ1_DB_PAGE, db_page);
	cmd.w[2] = cq->ring.map.addr;
	ret = urdma_eh_cmd(eh, &cmd, NULL);
	if (ret)
		urdma_eh_ring_destroy(eh, &cq->ring);
	return ret;
}

int urdma_eh_destroy_cq(struct urdma_eh_cq *cq)
{
	int ret = simple(cq->eh, URDMA_CMD_DESTROY_CQ, cq->cqn);

	if (!ret)
		urdma_eh_ring_destroy(cq->eh, &cq->ring);
	return ret;
}

int urdma_eh_modify_cq(struct urdma_eh_cq *cq, unsigned int count, unsigned int period)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_MODIFY_CQ) |
		   URDMA_SET(URDMA_CMD0_OBJ, cq->cqn);
	cmd.w[1] =
		URDMA_SET(URDMA_CMD_MCQ1_COUNT, count) | URDMA_SET(URDMA_CMD_MCQ1_PERIOD, period);
	return urdma_eh_cmd(cq->eh, &cmd, NULL);
}

int urdma_eh_resize_cq(struct urdma_eh_cq *cq, unsigned int log_entries,
		       enum urdma_eh_ring_kind kind)
{
	struct urdma_eh_cmd cmd = { 0 }, cpl;
	struct urdma_eh_ring ring;
	uint32_t step;
	int ret = urdma_eh_ring_create(cq->eh, log_entries, 5, 0, kind, &ring);

	if (ret)
		return ret;
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_RESIZE_CQ) |
		   URDMA_SET(URDMA_CMD0_OBJ, cq->cqn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_CQ1_RING, urdma_eh_ring_word(&ring));
	cmd.w[2] = ring.map.addr;
	cmd.w[3] = URDMA_SET(URDMA_CMD_RCQ3_CI, cq->base + cq->ci);
	ret = urdma_eh_cmd(cq->eh, &cmd, &cpl);
	if (ret) {
		urdma_eh_ring_destroy(cq->eh, &ring);
		return ret;
	}
	/* Copy the CQEs of the old ring to the entries before entry 0 of the new one. */
	step = (uint32_t)URDMA_GET(URDMA_CPL_CQ1_BASE, cpl.w[1]) - cq->base;
	for (uint32_t i = cq->ci; i != step; i++) {
		const uint64_t *from = ring_slot(&cq->ring, i);
		uint64_t *to = ring_slot(&ring, i - step);

		memcpy(to, from, URDMA_CQE_SIZE);
		to[3] = (from[3] & ~URDMA_CQE3_PHASE) |
			URDMA_SET(URDMA_CQE3_PHASE, ring_phase(log_entries, i - step));
	}
	urdma_eh_ring_destroy(cq->eh, &cq->ring);
	cq->ring = ring;
	cq->ci -= step;
	cq->base += step;
	return 0;
}

bool urdma_eh_cq_ready(const struct urdma_eh_cq *cq)
{
	const uint64_t *e = ring_slot(&cq->ring, cq->ci);

	return URDMA_GET(URDMA_CQE3_PHASE, load(&e[3])) == ring_phase(cq->ring.log_entries, cq->ci);
}

static void cq_doorbell(struct urdma_eh_cq *cq, unsigned int arm)
{
	urdma_eh_doorbell(cq->eh, cq->db_page, URDMA_DB_CQ,
			  URDMA_SET(URDMA_DBW_OBJ, cq->cqn) | URDMA_SET(URDMA_DBW_ARM, arm) |
				  URDMA_SET(URDMA_DBW_INDEX, cq->base + cq->ci));
}

unsigned int urdma_eh_poll_cq(struct urdma_eh_cq *cq, struct urdma_eh_cqe *cqe, unsigned int n)
{
	unsigned int got = 0;

	while (got < n && urdma_eh_cq_ready(cq)) {
		const uint64_t *e = ring_slot(&cq->ring, cq->ci);
		struct urdma_eh_cqe *o = &cqe[got];

		o->status = (unsigned int)URDMA_GET(URDMA_CQE0_STATUS, e[0]);
		o->opcode = (unsigned int)URDMA_GET(URDMA_CQE0_OPCODE, e[0]);
		o->vendor = (unsigned int)URDMA_GET(URDMA_CQE0_VENDOR, e[0]);
		o->wqe = (unsigned int)URDMA_GET(URDMA_CQE0_WQE, e[0]);
		o->recv = e[0] & URDMA_CQE0_RECV;
		o->has_imm = e[0] & URDMA_CQE0_IMM;
		o->has_inv = e[0] & URDMA_CQE0_INV;
		o->solicited = e[0] & URDMA_CQE0_SOLICITED;
		o->grh = e[0] & URDMA_CQE0_GRH;
		o->ipv4 = e[0] & URDMA_CQE0_IPV4;
		o->vlan = e[0] & URDMA_CQE0_VLAN;
		o->tci = (uint16_t)URDMA_GET(URDMA_CQE0_TCI, e[0]);
		o->length = (uint32_t)URDMA_GET(URDMA_CQE1_LENGTH, e[1]);
		o->qpn = (uint32_t)URDMA_GET(URDMA_CQE1_QPN, e[1]);
		o->imm = (uint32_t)URDMA_GET(URDMA_CQE2_IMM, e[2]);
		o->xrc = e[0] & URDMA_CQE0_XRC;
		o->src_qpn = o->srqn = 0;
		if (o->xrc)
			o->srqn = (uint32_t)URDMA_GET(URDMA_CQE2_SRQN, e[2]);
		else
			o->src_qpn = (uint32_t)URDMA_GET(URDMA_CQE2_SRC_QPN, e[2]);
		o->cycles = URDMA_GET(URDMA_CQE3_CYCLES, e[3]);
		cq->ci++;
		got++;
	}
	if (got)
		cq_doorbell(cq, URDMA_DB_ARM_NONE);
	return got;
}

void urdma_eh_arm_cq(struct urdma_eh_cq *cq, bool solicited_only)
{
	cq_doorbell(cq, solicited_only ? URDMA_DB_ARM_SOLICITED : URDMA_DB_ARM_ANY);
}

static bool cq_is_ready(void *arg)
{
	return urdma_eh_cq_ready(arg);
}

int urdma_eh_wait_cq(struct urdma_eh_cq *cq, uint64_t limit)
{
	return urdma_cosim_run_cond(cq->eh->c, cq_is_ready, cq, urdma_cosim_now(cq->eh->c) + limit);
}

int urdma_eh_next_cqe(struct urdma_eh_cq *cq, struct urdma_eh_cqe *cqe, uint64_t limit)
{
	int ret = urdma_eh_wait_cq(cq, limit);

	if (!ret && !urdma_eh_poll_cq(cq, cqe, 1))
		ret = -EAGAIN;
	return ret;
}

/* ---- QP ------------------------------------------------------------------------------------ */

static bool has_send_queue(const struct urdma_eh_qp *qp)
{
	return qp->type != URDMA_QPT_XRC_TGT;
}

static bool has_recv_queue(const struct urdma_eh_qp *qp)
{
	return qp->type != URDMA_QPT_XRC_TGT && qp->type != URDMA_QPT_XRC_INI;
}

int urdma_eh_create_qp(struct urdma_eh *eh, const struct urdma_eh_qp_attr *attr,
		       struct urdma_eh_qp *qp)
{
	struct urdma_eh_cmd cmd = { 0 };
	int ret = 0;

	memset(qp, 0, sizeof(*qp));
	qp->eh = eh;
	qp->qpn = attr->qpn;
	qp->type = attr->type ? attr->type : URDMA_QPT_RC;
	qp->db_page = attr->db_page;
	if (has_send_queue(qp))
		ret = urdma_eh_ring_create(eh, attr->log_sq, attr->log_sq_stride, 0, attr->kind,
					   &qp->sq);
	if (ret)
		return ret;
	if (!attr->srq && has_recv_queue(qp))
		ret = urdma_eh_ring_create(eh, attr->log_rq, attr->log_rq_stride, 0, attr->kind,
					   &qp->rq);
	if (ret) {
		urdma_eh_ring_destroy(eh, &qp->sq);
		return ret;
	}
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_QP) |
		   URDMA_SET(URDMA_CMD0_OBJ, attr->qpn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_QP1_PD, attr->pd) |
		   URDMA_SET(URDMA_CMD_QP1_DB_PAGE, attr->db_page) |
		   URDMA_SET(URDMA_CMD_QP1_TYPE, qp->type) |
		   URDMA_SET(URDMA_CMD_QP1_SEND_CQ, attr->send_cq ? attr->send_cq->cqn : 0) |
		   URDMA_SET(URDMA_CMD_QP1_SIG_ALL, attr->sig_all) |
		   URDMA_SET(URDMA_CMD_QP1_PRIV, attr->priv) |
		   URDMA_SET(URDMA_CMD_QP1_MCAST_NO_LOOP, attr->no_loop);
	cmd.w[2] = URDMA_SET(URDMA_CMD_QP2_RECV_CQ, attr->recv_cq ? attr->recv_cq->cqn : 0);
	cmd.w[3] = URDMA_SET(URDMA_CMD_QP3_SQ_RING, urdma_eh_ring_word(&qp->sq));
	cmd.w[4] = qp->sq.map.addr;
	if (attr->srq) {
		cmd.w[1] |= URDMA_SET(URDMA_CMD_QP1_SRQ, 1);
		cmd.w[5] = URDMA_SET(URDMA_CMD_QP5_SRQN, attr->srq->srqn);
	} else {
		cmd.w[5] = URDMA_SET(URDMA_CMD_QP5_RQ_RING, urdma_eh_ring_word(&qp->rq));
		cmd.w[6] = qp->rq.map.addr;
	}
	ret = urdma_eh_cmd(eh, &cmd, NULL);
	if (ret) {
		urdma_eh_ring_destroy(eh, &qp->sq);
		urdma_eh_ring_destroy(eh, &qp->rq);
	}
	return ret;
}

int urdma_eh_destroy_qp(struct urdma_eh_qp *qp)
{
	int ret = simple(qp->eh, URDMA_CMD_DESTROY_QP, qp->qpn);

	if (!ret) {
		urdma_eh_ring_destroy(qp->eh, &qp->sq);
		urdma_eh_ring_destroy(qp->eh, &qp->rq);
	}
	return ret;
}

int urdma_eh_modify_qp(struct urdma_eh_qp *qp, struct urdma_eh_cmd *cmd)
{
	cmd->w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_MODIFY_QP) |
		    URDMA_SET(URDMA_CMD0_OBJ, qp->qpn);
	return urdma_eh_cmd(qp->eh, cmd, NULL);
}

int urdma_eh_query_qp(struct urdma_eh_qp *qp, struct urdma_eh_cmd *cpl)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_QUERY_QP) |
		   URDMA_SET(URDMA_CMD0_OBJ, qp->qpn);
	return urdma_eh_cmd(qp->eh, &cmd, cpl);
}

int urdma_eh_qp_info(struct urdma_eh_qp *qp, struct urdma_eh_qp_info *info)
{
	struct urdma_eh_cmd cpl;
	int ret = urdma_eh_query_qp(qp, &cpl);

	if (ret)
		return ret;
	info->state = (unsigned int)URDMA_GET(URDMA_CPL_QP1_STATE, cpl.w[1]);
	info->draining = cpl.w[1] & URDMA_CPL_QP1_SQ_DRAINING;
	info->sq_psn = (uint32_t)URDMA_GET(URDMA_CPL_QP2_SQ_PSN, cpl.w[2]);
	info->rq_psn = (uint32_t)URDMA_GET(URDMA_CPL_QP2_RQ_PSN, cpl.w[2]);
	info->sq_pi = (uint16_t)URDMA_GET(URDMA_CPL_QP3_SQ_PI, cpl.w[3]);
	info->sq_ci = (uint16_t)URDMA_GET(URDMA_CPL_QP3_SQ_CI, cpl.w[3]);
	info->rq_pi = (uint16_t)URDMA_GET(URDMA_CPL_QP3_RQ_PI, cpl.w[3]);
	info->rq_ci = (uint16_t)URDMA_GET(URDMA_CPL_QP3_RQ_CI, cpl.w[3]);
	return 0;
}

int urdma_eh_set_qp_cnt(struct urdma_eh_qp *qp, uint32_t set)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_SET_QP_CNT) |
		   URDMA_SET(URDMA_CMD0_OBJ, qp->qpn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_QPC1_SET, set);
	return urdma_eh_cmd(qp->eh, &cmd, NULL);
}

int urdma_eh_query_cnt(struct urdma_eh *eh, uint32_t set, uint64_t value[URDMA_QCNT_N])
{
	for (unsigned int i = 0; i < URDMA_QCNT_N; i += URDMA_QCNT_GROUP) {
		struct urdma_eh_cmd cmd = { 0 }, cpl;
		int ret;

		cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_QUERY_CNT) |
			   URDMA_SET(URDMA_CMD0_OBJ, set);
		cmd.w[1] = URDMA_SET(URDMA_CMD_QCNT1_GROUP, i / URDMA_QCNT_GROUP);
		ret = urdma_eh_cmd(eh, &cmd, &cpl);
		if (ret)
			return ret;
		for (unsigned int k = 0; k < URDMA_QCNT_GROUP && i + k < URDMA_QCNT_N; k++)
			value[i + k] = URDMA_GET(URDMA_CPL_QCNT1_VALUE, cpl.w[1 + k]);
	}
	return 0;
}

int urdma_eh_clear_cnt(struct urdma_eh *eh, uint32_t set)
{
	return simple(eh, URDMA_CMD_CLEAR_CNT, set);
}

static uint64_t bytes_le(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

int urdma_eh_to_init(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[1] =
		URDMA_SET(URDMA_CMD_MOD1_MASK,
			  URDMA_QPM_STATE | URDMA_QPM_PKEY |
				  (qp->type == URDMA_QPT_UD ? URDMA_QPM_QKEY : URDMA_QPM_ACCESS)) |
		URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_INIT);
	cmd.w[3] = URDMA_SET(URDMA_CMD_MOD3_QKEY, conn->qkey);
	cmd.w[7] = URDMA_SET(URDMA_CMD_MOD7_PKEY, conn->pkey ? conn->pkey : 0xffff) |
		   URDMA_SET(URDMA_CMD_MOD7_ACCESS,
			     (conn->access & ~(unsigned int)URDMA_ACC_FLUSH_GLOBAL) >> 1) |
		   URDMA_SET(URDMA_CMD_MOD7_FLUSH_GLOBAL,
			     (conn->access & URDMA_ACC_FLUSH_GLOBAL) != 0);
	return urdma_eh_modify_qp(qp, &cmd);
}

int urdma_eh_to_rtr(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn)
{
	struct urdma_eh_cmd cmd = { 0 };
	uint16_t sport =
		conn->udp_sport ? conn->udp_sport : (uint16_t)(0xc000 | (qp->qpn & 0x3fff));

	uint64_t mask = URDMA_QPM_STATE | URDMA_QPM_MTU;

	if (qp->type != URDMA_QPT_UD)
		mask |= URDMA_QPM_AV | URDMA_QPM_DEST_QPN | URDMA_QPM_RQ_PSN;
	if (qp->type == URDMA_QPT_RC || qp->type == URDMA_QPT_XRC_TGT)
		mask |= URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR;
	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, mask) |
		   URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_RTR) |
		   URDMA_SET(URDMA_CMD_MOD1_MTU, conn->mtu) |
		   URDMA_SET(URDMA_CMD_MOD1_MIN_RNR, conn->min_rnr);
	cmd.w[2] = URDMA_SET(URDMA_CMD_MOD2_DEST_QPN, conn->dest_qpn) |
		   URDMA_SET(URDMA_CMD_MOD2_RQ_PSN, conn->rq_psn) |
		   URDMA_SET(URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, conn->max_dest_rd_atomic);
	cmd.w[3] = URDMA_SET(URDMA_CMD_MOD3_SGID_INDEX, conn->sgid_index);
	cmd.w[4] = URDMA_SET(URDMA_CMD_MOD4_DMAC, bytes_le(conn->dmac, 6)) |
		   URDMA_SET(URDMA_CMD_MOD4_TCLASS, conn->tclass) |
		   URDMA_SET(URDMA_CMD_MOD4_HOP_LIMIT, conn->hop_limit ? conn->hop_limit : 64);
	cmd.w[5] = bytes_le(conn->dgid, 8);
	cmd.w[6] = bytes_le(conn->dgid + 8, 8);
	cmd.w[7] = URDMA_SET(URDMA_CMD_MOD7_FLOW_LABEL, conn->flow_label) |
		   URDMA_SET(URDMA_CMD_MOD7_UDP_SPORT, sport) |
		   URDMA_SET(URDMA_CMD_MOD7_PCP, conn->pcp);
	return urdma_eh_modify_qp(qp, &cmd);
}

int urdma_eh_to_rts(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn)
{
	struct urdma_eh_cmd cmd = { 0 };

	uint64_t mask = URDMA_QPM_STATE | URDMA_QPM_SQ_PSN;

	if (qp->type == URDMA_QPT_RC || qp->type == URDMA_QPT_XRC_INI)
		mask |= URDMA_QPM_TIMEOUT | URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY |
			URDMA_QPM_MAX_RD_ATOMIC;
	else if (qp->type == URDMA_QPT_XRC_TGT)
		mask |= URDMA_QPM_TIMEOUT;
	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, mask) |
		   URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_RTS) |
		   URDMA_SET(URDMA_CMD_MOD1_TIMEOUT, conn->timeout) |
		   URDMA_SET(URDMA_CMD_MOD1_RETRY, conn->retry) |
		   URDMA_SET(URDMA_CMD_MOD1_RNR_RETRY, conn->rnr_retry);
	cmd.w[2] = URDMA_SET(URDMA_CMD_MOD2_MAX_RD_ATOMIC, conn->max_rd_atomic);
	cmd.w[3] = URDMA_SET(URDMA_CMD_MOD3_SQ_PSN, conn->sq_psn);
	return urdma_eh_modify_qp(qp, &cmd);
}

static int to_state(struct urdma_eh_qp *qp, unsigned int state)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, URDMA_QPM_STATE) |
		   URDMA_SET(URDMA_CMD_MOD1_STATE, state);
	return urdma_eh_modify_qp(qp, &cmd);
}

int urdma_eh_to_err(struct urdma_eh_qp *qp)
{
	return to_state(qp, URDMA_QPS_ERR);
}

int urdma_eh_to_sqd(struct urdma_eh_qp *qp, bool event)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK,
			     URDMA_QPM_STATE | (event ? URDMA_QPM_SQD_EVENT : 0)) |
		   URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_SQD);
	return urdma_eh_modify_qp(qp, &cmd);
}

int urdma_eh_sqd_to_rts(struct urdma_eh_qp *qp)
{
	return to_state(qp, URDMA_QPS_RTS);
}

int urdma_eh_to_reset(struct urdma_eh_qp *qp)
{
	int ret = to_state(qp, URDMA_QPS_RESET);

	if (!ret) {
		qp->sq_pi = 0;
		qp->rq_pi = 0;
	}
	return ret;
}

int urdma_eh_mac(struct urdma_eh *eh, uint8_t mac[6])
{
	uint64_t v = urdma_eh_reg(eh, URDMA_REG_MAC);

	if (v == ~UINT64_C(0))
		return -EIO;
	memcpy(mac, &v, 6);
	return 0;
}

int urdma_eh_set_gid(struct urdma_eh *eh, unsigned int index, const uint8_t gid[16], bool ipv4)
{
	struct urdma_eh_cmd cmd = { 0 };
	uint8_t mac[6];
	int ret;

	ret = urdma_eh_mac(eh, mac);
	if (ret)
		return ret;
	cmd.w[0] =
		URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_SET_GID) | URDMA_SET(URDMA_CMD0_OBJ, index);
	cmd.w[1] = URDMA_CMD_GID1_VALID | (ipv4 ? URDMA_CMD_GID1_IPV4 : 0);
	cmd.w[2] = bytes_le(mac, 6);
	cmd.w[3] = bytes_le(gid, 8);
	cmd.w[4] = bytes_le(gid + 8, 8);
	return urdma_eh_cmd(eh, &cmd, NULL);
}

void urdma_eh_gid_ipv4(uint8_t gid[16], uint32_t ipv4)
{
	memset(gid, 0, 16);
	gid[10] = 0xff;
	gid[11] = 0xff;
	for (unsigned int i = 0; i < 4; i++)
		gid[12 + i] = (uint8_t)(ipv4 >> (24 - 8 * i));
}

void urdma_eh_own_gid(struct urdma_eh *eh, bool ipv6, uint8_t gid[16])
{
	unsigned int nic = urdma_embedded_nic(eh->dev);

	if (ipv6) {
		memset(gid, 0, 16);
		gid[0] = 0xfd;
		gid[15] = (uint8_t)(nic + 1);
	} else {
		urdma_eh_gid_ipv4(gid, 0x0a000001u + nic);
	}
}

int urdma_eh_ah_to(struct urdma_eh *eh, bool ipv6, struct urdma_eh_ah *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->sgid_index = ipv6;
	urdma_eh_own_gid(eh, ipv6, ah->dgid);
	return urdma_eh_mac(eh, ah->dmac);
}

void urdma_eh_ah_group(const uint8_t gid[16], struct urdma_eh_ah *ah)
{
	memset(ah, 0, sizeof(*ah));
	memcpy(ah->dgid, gid, 16);
	if (gid[0] == 0xff) { /* RFC 2464, 7 */
		ah->sgid_index = 1;
		ah->dmac[0] = ah->dmac[1] = 0x33;
		memcpy(ah->dmac + 2, gid + 12, 4);
	} else { /* RFC 1112, 6.4 */
		ah->dmac[0] = 1;
		ah->dmac[2] = 0x5e;
		memcpy(ah->dmac + 3, gid + 13, 3);
		ah->dmac[3] &= 0x7f;
	}
}

static int membership(struct urdma_eh_qp *qp, unsigned int opcode, const uint8_t gid[16])
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, opcode) | URDMA_SET(URDMA_CMD0_OBJ, qp->qpn);
	memcpy(&cmd.w[5], gid, 16);
	return urdma_eh_cmd(qp->eh, &cmd, NULL);
}

int urdma_eh_attach_mcast(struct urdma_eh_qp *qp, const uint8_t gid[16])
{
	return membership(qp, URDMA_CMD_ATTACH_MCAST, gid);
}

int urdma_eh_detach_mcast(struct urdma_eh_qp *qp, const uint8_t gid[16])
{
	return membership(qp, URDMA_CMD_DETACH_MCAST, gid);
}

void urdma_eh_conn_defaults(struct urdma_eh_conn *conn, unsigned int mtu)
{
	*conn = (struct urdma_eh_conn){
		.mtu = mtu,
		.timeout = 8, /* 1.05 ms */
		.retry = 7,
		.rnr_retry = 7,
		.min_rnr = 1, /* 0.01 ms */
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.access = URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC |
			  URDMA_ACC_FLUSH_GLOBAL,
		.qkey = 0x11111111,
	};
}

/* The common part of connections of two NICs, or of one with itself. conn[i]: of side i. */
static int connection(struct urdma_eh *const eh[2], const struct urdma_eh_conn *base, bool ipv6,
		      struct urdma_eh_conn conn[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t psn[2];
		uint8_t gid[16];
		int ret;

		urdma_eh_own_gid(eh[i], ipv6, gid);
		ret = urdma_eh_set_gid(eh[i], ipv6, gid, !ipv6);
		if (ret)
			return ret;
		conn[i] = *base;
		/* Different PSNs, one of which wraps soon. */
		psn[0] = base->sq_psn || base->rq_psn ? base->sq_psn : 0x000123;
		psn[1] = base->sq_psn || base->rq_psn ? base->rq_psn : 0xfffff0;
		conn[i].sq_psn = psn[i];
		conn[i].rq_psn = psn[!i];
		conn[i].sgid_index = ipv6;
		urdma_eh_own_gid(eh[!i], ipv6, conn[i].dgid);
		ret = urdma_eh_mac(eh[!i], conn[i].dmac);
		if (ret)
			return ret;
	}
	return 0;
}

static int connect_pair(struct urdma_eh_qp *const qp[2], struct urdma_eh_conn conn[2])
{
	int ret;

	for (unsigned int i = 0; i < 2; i++) {
		conn[i].dest_qpn = qp[!i]->qpn;
		ret = urdma_eh_to_init(qp[i], &conn[i]);
		if (!ret)
			ret = urdma_eh_to_rtr(qp[i], &conn[i]);
		if (ret)
			return ret;
	}
	for (unsigned int i = 0; i < 2; i++) {
		ret = urdma_eh_to_rts(qp[i], &conn[i]);
		if (ret)
			return ret;
	}
	return 0;
}

int urdma_eh_connect_as(struct urdma_eh_qp *a, struct urdma_eh_qp *b,
			const struct urdma_eh_conn *base, bool ipv6)
{
	struct urdma_eh_qp *const qp[2] = { a, b };
	struct urdma_eh *const eh[2] = { a->eh, b->eh };
	struct urdma_eh_conn conn[2];
	int ret = connection(eh, base, ipv6, conn);

	return ret ? ret : connect_pair(qp, conn);
}

int urdma_eh_connect_many(struct urdma_eh_qp *a, struct urdma_eh_qp *b, unsigned int n,
			  const struct urdma_eh_conn *base, bool ipv6)
{
	struct urdma_eh *const eh[2] = { a->eh, b->eh };
	struct urdma_eh_conn conn[2];
	int ret = connection(eh, base, ipv6, conn);

	if (ret)
		return ret;
	urdma_eh_batch_begin(eh[0]);
	urdma_eh_batch_begin(eh[1]);
	for (unsigned int i = 0; i < n && !ret; i++) {
		struct urdma_eh_qp *const qp[2] = { &a[i], &b[i] };

		ret = connect_pair(qp, conn);
	}
	for (unsigned int i = 0; i < 2; i++) {
		int end = urdma_eh_batch_end(eh[i]);

		ret = ret ? ret : end;
	}
	return ret;
}

int urdma_eh_connect(struct urdma_eh_qp *a, struct urdma_eh_qp *b, unsigned int mtu, bool ipv6)
{
	struct urdma_eh_conn conn;

	urdma_eh_conn_defaults(&conn, mtu);
	return urdma_eh_connect_as(a, b, &conn, ipv6);
}

/* ---- work ---------------------------------------------------------------------------------- */

static void put_sges(uint64_t *w, const struct urdma_eh_sge *sge, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		w[2 * i] = sge[i].addr;
		w[2 * i + 1] = URDMA_SET(URDMA_SGE1_LENGTH, sge[i].length) |
			       URDMA_SET(URDMA_SGE1_LKEY, sge[i].lkey);
	}
}

static bool is_atomic(unsigned int opcode)
{
	return opcode == URDMA_WR_ATOMIC_CS || opcode == URDMA_WR_ATOMIC_FA;
}

static bool has_imm(unsigned int opcode)
{
	return opcode == URDMA_WR_SEND_IMM || opcode == URDMA_WR_WRITE_IMM;
}

/* Writes a UD WQE's destination and its reserved bytes. */
static void put_ah(uint64_t *w, const struct urdma_eh_ah *ah)
{
	w[4] = bytes_le(ah->dgid, 8);
	w[5] = bytes_le(ah->dgid + 8, 8);
	w[6] = URDMA_SET(URDMA_SQE6_DMAC, bytes_le(ah->dmac, 6)) |
	       URDMA_SET(URDMA_SQE6_TCLASS, ah->tclass) |
	       URDMA_SET(URDMA_SQE6_HOP_LIMIT, ah->hop_limit ? ah->hop_limit : 64);
	w[7] = URDMA_SET(URDMA_SQE7_FLOW_LABEL, ah->flow_label) |
	       URDMA_SET(URDMA_SQE7_UDP_SPORT, ah->udp_sport ? ah->udp_sport : 0xc000) |
	       URDMA_SET(URDMA_SQE7_SGID_INDEX, ah->sgid_index) |
	       URDMA_SET(URDMA_SQE7_PCP, ah->pcp);
	memset(w + 8, 0, URDMA_SQE_UD_DATA_OFFSET - 64);
}

int urdma_eh_put_send(struct urdma_eh_qp *qp, const struct urdma_eh_send *wr)
{
	size_t at = wr->ah ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET;
	size_t room = ((size_t)1 << qp->sq.log_stride) - at;
	uint64_t *w = ring_slot(&qp->sq, qp->sq_pi);
	uint32_t length = wr->inline_len;

	if (at > (size_t)1 << qp->sq.log_stride)
		return -E2BIG;
	if (is_atomic(wr->opcode))
		room = URDMA_SGE_SIZE;
	if (wr->inline_data ? wr->inline_len > room : (size_t)wr->n_sge * URDMA_SGE_SIZE > room)
		return -E2BIG;
	if (!wr->inline_data) {
		length = 0;
		for (unsigned int i = 0; i < wr->n_sge; i++)
			length += wr->sge[i].length;
		put_sges(w + at / 8, wr->sge, wr->n_sge);
	} else {
		memcpy(w + at / 8, wr->inline_data, wr->inline_len);
	}
	w[0] = URDMA_SET(URDMA_SQE0_OPCODE, wr->opcode) |
	       URDMA_SET(URDMA_SQE0_SIGNALED, wr->signaled) |
	       URDMA_SET(URDMA_SQE0_SOLICITED, wr->solicited) |
	       URDMA_SET(URDMA_SQE0_FENCE, wr->fence) |
	       URDMA_SET(URDMA_SQE0_INLINE, wr->inline_data != NULL) |
	       URDMA_SET(URDMA_SQE0_NUM_SGE, wr->inline_data ? 0 : wr->n_sge);
	w[1] = URDMA_SET(URDMA_SQE1_IMM, has_imm(wr->opcode) ? wr->imm : wr->key) |
	       URDMA_SET(URDMA_SQE1_XRC_SRQN, wr->srqn);
	if (wr->opcode == URDMA_WR_FLUSH)
		w[1] = URDMA_SET(URDMA_SQE1_FLUSH_TYPE, wr->flush_type) |
		       URDMA_SET(URDMA_SQE1_FLUSH_LEVEL, wr->flush_level) |
		       URDMA_SET(URDMA_SQE1_XRC_SRQN, wr->srqn);
	w[2] = wr->raddr;
	w[3] = URDMA_SET(URDMA_SQE3_RKEY, wr->rkey) | URDMA_SET(URDMA_SQE3_LENGTH, length);
	if (wr->ah) {
		put_ah(w, wr->ah);
		w[2] = URDMA_SET(URDMA_SQE2_DEST_QPN, wr->dest_qpn);
		w[3] = URDMA_SET(URDMA_SQE3_QKEY, wr->qkey) | URDMA_SET(URDMA_SQE3_LENGTH, length);
	} else if (is_atomic(wr->opcode)) {
		w[6] = wr->swap_add;
		w[7] = wr->compare;
	} else if (wr->opcode == URDMA_WR_FLUSH) {
		w[4] = URDMA_SET(URDMA_SQE4_FLUSH_LENGTH, wr->flush_length);
	} else if (wr->opcode == URDMA_WR_ATOMIC_WRITE) {
		w[6] = wr->write_value;
	} else if (wr->opcode == URDMA_WR_REG_MR || wr->opcode == URDMA_WR_BIND_MW) {
		w[4] = wr->mr_length;
		w[5] = wr->map ? wr->map->addr : 0;
		w[6] = URDMA_SET(URDMA_SQE6_MR_ACCESS, rights(wr->mr_access)) |
		       URDMA_SET(URDMA_SQE6_MR_ZERO_BASED, !!(wr->mr_access & URDMA_EH_ZERO_BASED));
		if (wr->map)
			w[6] |= URDMA_SET(URDMA_SQE6_MR_LEVELS, wr->map->levels) |
				URDMA_SET(URDMA_SQE6_MR_PAGE_SHIFT, wr->map->page_shift);
	}
	qp->sq_pi++;
	return 0;
}

int urdma_eh_put_reg_mr(struct urdma_eh_qp *qp, struct urdma_eh_mr *mr, uint8_t variant,
			unsigned int access, void *p, size_t len, uint64_t va, int levels,
			unsigned int page_shift, bool signaled)
{
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_REG_MR,
		.signaled = signaled,
		.rkey = mr->index << 8 | variant,
		.raddr = va,
		.mr_length = len,
		.mr_access = access,
		.map = &mr->map,
	};
	int ret;

	urdma_eh_unmap(mr->eh->host, &mr->map);
	ret = urdma_eh_map(mr->eh->host, p, len, levels, page_shift, &mr->map);
	if (ret)
		return ret;
	mr->key = wr.rkey;
	mr->va = first_address(access, va);
	mr->length = len;
	return urdma_eh_put_send(qp, &wr);
}

int urdma_eh_put_bind_mw(struct urdma_eh_qp *qp, struct urdma_eh_mr *mw, uint8_t variant,
			 unsigned int access, const struct urdma_eh_mr *region, uint64_t va,
			 size_t len, bool signaled)
{
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_BIND_MW,
		.signaled = signaled,
		.rkey = mw->index << 8 | variant,
		.key = region->key,
		.raddr = va,
		.mr_length = len,
		.mr_access = access,
	};

	mw->key = wr.rkey;
	mw->va = first_address(access, va);
	mw->length = len;
	return urdma_eh_put_send(qp, &wr);
}

int urdma_eh_put_local_inv(struct urdma_eh_qp *qp, uint32_t key, bool signaled)
{
	struct urdma_eh_send wr = { .opcode = URDMA_WR_LOCAL_INV,
				    .signaled = signaled,
				    .key = key };

	return urdma_eh_put_send(qp, &wr);
}

int urdma_eh_put_rqe(struct urdma_eh_ring *ring, uint32_t index, const struct urdma_eh_sge *sge,
		     unsigned int n_sge)
{
	size_t room = ((size_t)1 << ring->log_stride) - URDMA_RQE_DATA_OFFSET;
	uint64_t *w = ring_slot(ring, index);

	if ((size_t)n_sge * URDMA_SGE_SIZE > room)
		return -E2BIG;
	put_sges(w + URDMA_RQE_DATA_OFFSET / 8, sge, n_sge);
	w[0] = URDMA_SET(URDMA_RQE0_NUM_SGE, n_sge);
	w[1] = 0;
	return 0;
}

int urdma_eh_put_recv(struct urdma_eh_qp *qp, const struct urdma_eh_sge *sge, unsigned int n_sge)
{
	int ret = urdma_eh_put_rqe(&qp->rq, qp->rq_pi, sge, n_sge);

	if (!ret)
		qp->rq_pi++;
	return ret;
}

void urdma_eh_ring_sq(struct urdma_eh_qp *qp)
{
	urdma_eh_doorbell(qp->eh, qp->db_page, URDMA_DB_SQ,
			  URDMA_SET(URDMA_DBW_OBJ, qp->qpn) |
				  URDMA_SET(URDMA_DBW_INDEX, qp->sq_pi));
}

void urdma_eh_ring_rq(struct urdma_eh_qp *qp)
{
	urdma_eh_doorbell(qp->eh, qp->db_page, URDMA_DB_RQ,
			  URDMA_SET(URDMA_DBW_OBJ, qp->qpn) |
				  URDMA_SET(URDMA_DBW_INDEX, qp->rq_pi));
}

int urdma_eh_post_send(struct urdma_eh_qp *qp, const struct urdma_eh_send *wr)
{
	int ret = urdma_eh_put_send(qp, wr);

	if (!ret)
		urdma_eh_ring_sq(qp);
	return ret;
}

int urdma_eh_post_recv(struct urdma_eh_qp *qp, const struct urdma_eh_sge *sge, unsigned int n_sge)
{
	int ret = urdma_eh_put_recv(qp, sge, n_sge);

	if (!ret)
		urdma_eh_ring_rq(qp);
	return ret;
}
