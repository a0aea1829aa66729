// SPDX-License-Identifier: Apache-2.0
// See model_nic.h. All outputs are registered: cycle() returns what was decided a cycle before.
#include "model_nic.h"

#include <stdlib.h>
#include <string.h>

#include "pcie/pg213.h"

#define MAX_FRAME 9000u

struct model {
	struct urdma_sim_out out;
	uint64_t reg[16];
	uint64_t cycles;
	/* Transmit: memory is read 256 bytes at a time, one tag a piece. */
	uint8_t buf[MAX_FRAME + 64];
	uint32_t len, asked, got, sent;
	bool reading, sending;
	uint32_t piece_at[256];
	uint32_t rc_at, rc_left; /* of the completion in progress: position, and bytes to come */
	/* Receive. */
	uint8_t rx[MAX_FRAME + 64];
	uint32_t rx_len, rx_written;
	bool rx_full;
	/* The write TLP being sent. */
	uint32_t dw[4 + 64], n_dw, dw_at;
	uint32_t first_be, last_be;
	bool irq[2];
	uint64_t timer;	   /* cycle count at which it fires, 0: off */
	uint32_t stale[2]; /* cycles left, as of the last clocks */
};

static enum model_nic_fault fault;

void model_nic_set_fault(enum model_nic_fault f)
{
	fault = f;
}

static void *create(const char *name, unsigned int index)
{
	(void)name;
	(void)index;
	return calloc(1, sizeof(struct model));
}

static void reg_write(struct model *m, unsigned int i, uint64_t v)
{
	m->reg[i % 16] = v;
	if (i == 9 && v >= 1 && v <= MAX_FRAME) {
		m->len = (uint32_t)v;
		m->asked = 0;
		m->got = 0;
		m->sent = 0;
		m->reading = true;
	} else if (i == 12) {
		m->timer = m->cycles + v;
	}
}

static void take_cq(struct model *m, const struct urdma_pcie_beat *b)
{
	unsigned int i = (pg213_get(b->data, PG213_REQ_ADDR_LO) << 2 & 0x7f) / 8;
	struct urdma_pcie_beat *c = &m->out.cc;
	uint64_t v;

	if (pg213_get(b->data, PG213_REQ_TYPE) == PG213_TYPE_MEM_WRITE) {
		memcpy(&v, &b->data[4], 8);
		reg_write(m, i, v);
		return;
	}
	v = i == 0 ? m->cycles : m->reg[i];
	memset(c, 0, sizeof(*c));
	pg213_set(c->data, PG213_CC_LOWER_ADDR, i * 8);
	pg213_set(c->data, PG213_CPL_BYTES, 8);
	pg213_set(c->data, PG213_CPL_DWORDS, 2);
	pg213_set(c->data, PG213_CPL_REQUESTER, pg213_get(b->data, PG213_REQ_REQUESTER));
	pg213_set(c->data, PG213_CPL_TAG, pg213_get(b->data, PG213_REQ_TAG));
	memcpy(&c->data[3], &v, 8);
	c->keep = 0x1f;
	c->last = 1;
	c->valid = 1;
	pg213_set(c->user, PG213_CC_IS_SOP, 1);
	pg213_set(c->user, PG213_CC_IS_EOP, 1);
	pg213_set(c->user, PG213_CC_EOP0_PTR, 4);
}

/* Prepares a request for up to 256 bytes inside a page. */
static uint32_t request(struct model *m, uint64_t addr, uint32_t left, const uint8_t *data,
			unsigned int tag)
{
	uint32_t len = left < 256 - addr % 4 ? left : 256 - (uint32_t)(addr % 4), dwords;

	if (len > 4096 - addr % 4096)
		len = 4096 - (uint32_t)(addr % 4096);
	dwords = ((uint32_t)(addr % 4) + len + 3) / 4;
	memset(m->dw, 0, sizeof(m->dw));
	pg213_set(m->dw, PG213_REQ_ADDR_LO, (uint32_t)addr >> 2);
	pg213_set(m->dw, PG213_REQ_ADDR_HI, (uint32_t)(addr >> 32));
	pg213_set(m->dw, PG213_REQ_DWORDS, dwords);
	pg213_set(m->dw, PG213_REQ_TYPE, data ? PG213_TYPE_MEM_WRITE : PG213_TYPE_MEM_READ);
	pg213_set(m->dw, PG213_REQ_TAG, tag);
	m->first_be = 0xfu << (addr % 4) & 0xf;
	m->last_be = (addr + len) % 4 ? 0xfu >> (4 - (addr + len) % 4) : 0xf;
	if (dwords == 1) {
		m->first_be &= m->last_be;
		m->last_be = fault == MODEL_NIC_BAD_TLP;
	} else if (fault == MODEL_NIC_BAD_TLP) {
		m->last_be = 0;
	}
	if (data)
		memcpy((uint8_t *)&m->dw[4] + addr % 4, data, len);
	m->n_dw = 4 + (data ? dwords : 0);
	m->dw_at = 0;
	return len;
}

static void next_rq(struct model *m)
{
	struct urdma_pcie_beat *b = &m->out.rq;
	uint32_t n;

	if (m->dw_at == m->n_dw) {
		if (m->rx_full && m->rx_written < m->rx_len) {
			m->rx_written +=
				request(m, m->reg[10] + m->rx_written, m->rx_len - m->rx_written,
					m->rx + m->rx_written, 0);
		} else if (m->rx_full) {
			m->rx_full = false;
			m->reg[11]++;
			m->irq[0] = true;
			m->rx_len = 0;
		} else if (m->reading && m->asked < m->len) {
			unsigned int tag = m->asked / 64 % 256;

			m->piece_at[tag] = m->asked;
			m->asked += request(m, m->reg[8] + m->asked, m->len - m->asked, NULL, tag);
		}
		if (m->dw_at == m->n_dw)
			return;
	}
	n = m->n_dw - m->dw_at > 16 ? 16 : m->n_dw - m->dw_at;
	memset(b, 0, sizeof(*b));
	memcpy(b->data, &m->dw[m->dw_at], n * 4);
	b->keep = (uint16_t)((1u << n) - 1);
	b->valid = 1;
	if (!m->dw_at) {
		pg213_set(b->user, PG213_RQ_FIRST_BE, m->first_be);
		pg213_set(b->user, PG213_RQ_LAST_BE, m->last_be);
		pg213_set(b->user, PG213_RQ_IS_SOP, 1);
	}
	m->dw_at += n;
	b->last = m->dw_at == m->n_dw;
	if (b->last) {
		pg213_set(b->user, PG213_RQ_IS_EOP, 1);
		pg213_set(b->user, PG213_RQ_EOP0_PTR, n - 1);
	}
}

/* Completions here fit in MPS 256, so they have at most 5 beats; the tag says where data goes. */
static void take_rc(struct model *m, const struct urdma_pcie_beat *b)
{
	uint32_t from = 0, n = (uint32_t)__builtin_popcount(b->keep) * 4;

	if (pg213_get(b->user, PG213_RC_IS_SOP)) {
		unsigned int tag = pg213_get(b->data, PG213_CPL_TAG);
		uint64_t start = m->reg[8] + m->piece_at[tag];
		uint32_t lower = pg213_get(b->data, PG213_RC_LOWER_ADDR);

		m->rc_at = m->piece_at[tag] + ((lower - (uint32_t)start) & 0xfff);
		m->rc_left = pg213_get(b->data, PG213_CPL_DWORDS) * 4 - lower % 4;
		if (m->rc_left > pg213_get(b->data, PG213_CPL_BYTES))
			m->rc_left = pg213_get(b->data, PG213_CPL_BYTES);
		from = 12 + lower % 4;
	}
	n -= from;
	if (n > m->rc_left)
		n = m->rc_left;
	memcpy(m->buf + m->rc_at, (const uint8_t *)b->data + from, n);
	m->rc_at += n;
	m->rc_left -= n;
	m->got += n;
	if (m->got == m->len) {
		m->reading = false;
		m->sending = true;
	}
}

static void next_tx(struct model *m)
{
	struct urdma_eth_beat *t = &m->out.tx;
	uint32_t n = m->len - m->sent;

	if (!m->sending)
		return;
	if (fault == MODEL_NIC_GAP && m->sent == 64 && m->len > 128 && m->cycles % 2)
		return;
	if (n > 64)
		n = 64;
	memset(t, 0, sizeof(*t));
	memcpy(t->data, m->buf + m->sent, n);
	t->keep = n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
	t->valid = 1;
	m->sent += n;
	t->last = m->sent == m->len;
	if (t->last)
		m->sending = false;
}

static void cycle(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out)
{
	struct model *m = model;

	m->out.cq_ready = fault != MODEL_NIC_DEAF && !m->out.cc.valid;
	m->out.rc_ready = 1;
	m->out.idle = !m->out.cc.valid && !m->out.rq.valid && !m->out.tx.valid &&
		      !m->out.irq_valid && !m->reading && !m->sending && !m->rx_full &&
		      !m->rx_len && !m->irq[0] && !m->irq[1];
	m->out.timer_armed = m->timer != 0;
	/* It waits for the host's memory, and nothing in it changes. */
	m->out.still = m->out.idle || (m->reading && m->asked == m->len && m->dw_at == m->n_dw &&
				       !m->out.rq.valid && !m->out.cc.valid && !m->out.tx.valid &&
				       !m->out.irq_valid && !m->sending && !m->rx_full &&
				       !m->rx_len && !m->irq[0] && !m->irq[1]);
	m->out.timer_cycles = (uint32_t)(m->timer - m->cycles);
	if (fault == MODEL_NIC_STALE_TIMER) {
		/* armed, and not yet reported: not quiet */
		m->out.idle &= !m->timer || m->stale[0];
		m->out.still = m->out.idle;
		m->out.timer_armed = m->stale[0] != 0;
		m->out.timer_cycles = m->stale[0];
		m->stale[0] = m->stale[1];
		m->stale[1] = m->timer ? (uint32_t)(m->timer - m->cycles) : 0;
	}
	*out = m->out;
	if (in->rst) {
		memset(m, 0, sizeof(*m));
		return;
	}
	m->cycles += 1 + (in->skip_valid ? in->skip_cycles : 0);
	if (in->cc_ready)
		m->out.cc.valid = 0;
	if (in->rq_ready)
		m->out.rq.valid = 0;
	if (in->tx_ready)
		m->out.tx.valid = 0;
	if (in->irq_ready)
		m->out.irq_valid = 0;
	if (in->cq.valid && out->cq_ready)
		take_cq(m, &in->cq);
	if (in->rc.valid)
		take_rc(m, &in->rc);
	if (in->rx.valid && !m->rx_full) {
		uint32_t n = (uint32_t)__builtin_popcountll(in->rx.keep);

		if (m->rx_len + n <= MAX_FRAME) {
			memcpy(m->rx + m->rx_len, in->rx.data, n);
			m->rx_len += n;
		}
		if (in->rx.last) {
			m->rx_full = true;
			m->rx_written = 0;
		}
	}
	if (m->timer && m->cycles >= m->timer) {
		m->timer = 0;
		m->irq[1] = true;
	}
	if (!m->out.rq.valid)
		next_rq(m);
	if (!m->out.tx.valid)
		next_tx(m);
	if (!m->out.irq_valid && !m->out.rq.valid) {
		for (unsigned int i = 0; i < 2; i++) {
			if (m->irq[i]) {
				m->irq[i] = false;
				m->out.irq_valid = 1;
				m->out.irq_vec = (uint8_t)i;
				break;
			}
		}
	}
}

const struct urdma_model_ops model_nic = {
	.create = create,
	.destroy = free,
	.cycle = cycle,
};
