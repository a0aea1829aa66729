// SPDX-License-Identifier: Apache-2.0
#include "rx_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seed.h"

struct beat {
	uint8_t data[64];
	uint64_t keep;
	bool last, err, home;
};

struct rd_beat {
	uint64_t when;
	int client;
	uint8_t data[64];
	bool last, err;
};

struct mr_frag {
	uint64_t when;
	struct rx_mrr rsp;
};

struct db {
	uint16_t qpn, pi;
};

/* ---- a queue of structs ------------------------------------------------------------------------
 */

static void fifo_init(struct fifo *f, size_t size)
{
	f->size = size;
	f->room = 64;
	f->head = f->tail = 0;
	f->data = malloc(size * f->room);
	assert_non_null(f->data);
}

static void fifo_put(struct fifo *f, const void *p)
{
	if (f->head == f->tail) {
		f->head = f->tail = 0;
	} else if (f->tail == f->room) {
		f->room *= 2;
		f->data = realloc(f->data, f->size * f->room);
		assert_non_null(f->data);
	}
	memcpy(f->data + f->size * f->tail++, p, f->size);
}

static void *fifo_head(struct fifo *f)
{
	return f->head == f->tail ? NULL : f->data + f->size * f->head;
}

/* ---- random numbers ------------------------------------------------------------------------- */

uint32_t rnd(struct bench *b)
{
	return rnd_next(&b->seed) >> 32;
}

unsigned int rnd_in(struct bench *b, unsigned int lo, unsigned int hi)
{
	return lo + rnd(b) % (hi - lo + 1);
}

static bool chance(struct bench *b, unsigned int percent)
{
	return percent >= 100 || (percent && rnd(b) % 100 < percent);
}

/* ---- host memory
 * ---------------------------------------------------------------------------------- */

/* Neighbouring pages of the process are no neighbours on the bus. */
uint64_t bench_bus(uint64_t off)
{
	return HOST_BUS + (off ^ 0x5000);
}

static uint8_t *host_at(struct bench *b, uint64_t bus, size_t len)
{
	uint64_t off = (bus - HOST_BUS) ^ 0x5000;

	if (bus < HOST_BUS || bus - HOST_BUS >= HOST_SIZE || (off & 4095) + len > 4096)
		fail_msg("cycle %llu: DMA to %#llx, %zu bytes: not a piece of a page it was given",
			 (unsigned long long)b->cycle, (unsigned long long)bus, len);
	return b->host + off;
}

void bench_put(struct bench *b, uint64_t va, const void *p, size_t len)
{
	assert_true(va >= HOST_VA && va + len <= HOST_VA + HOST_SIZE);
	memcpy(b->host + (va - HOST_VA), p, len);
	memcpy(b->shadow + (va - HOST_VA), p, len);
}

static void mr_request(struct bench *b, int c)
{
	uint64_t va = b->out.mr[c].va, off, n, len = b->out.mr[c].len;
	struct fifo *f = &b->mrr[c];
	struct mr_frag r = { .when = b->cycle + rnd_in(b, b->mr_latency, 2 * b->mr_latency) };
	struct mr_frag *prev =
		f->head == f->tail ? NULL : (void *)(f->data + f->size * (f->tail - 1));
	bool ring = b->out.mr_ring >> c & 1;

	assert_in_range(len, 1, 4096);
	assert_int_equal(ring, c == 1);
	if (prev && prev->when > r.when)
		r.when = prev->when;
	if (ring) {
		b->n_watched += b->out.mr[c].pt_addr == b->watch;
		off = b->out.mr[c].pt_addr - HOST_BUS + va;
		if (off + len > HOST_SIZE)
			r.rsp.status = 5;
	} else {
		const struct bench_mr *m = NULL;
		uint8_t acc = b->out.mr[c].acc;

		for (unsigned int i = 0; i < b->mrs; i++)
			if (b->mr[i].key == b->out.mr[c].key && !b->mr_invalid[i])
				m = &b->mr[i];
		assert_true(acc == URDMA_ACC_LOCAL_WRITE || acc == URDMA_ACC_REMOTE_WRITE ||
			    acc == URDMA_ACC_REMOTE_READ ||
			    (acc == URDMA_ACC_REMOTE_ATOMIC && len == 8 && !(va & 7)) ||
			    (acc == URDMA_ACC_FLUSH_GLOBAL && len == 1));
		if (m && b->out.mr[c].whole)
			va = m->va;
		assert_in_range(b->out.mr[c].qpn, 5, 12);
		b->n_pieces++;
		if (b->fail_pt >= 0 && b->fail_pt-- == 0)
			r.rsp.status = 5;
		else if (!m)
			r.rsp.status = 1;
		else if (m->pd != b->out.mr[c].pd)
			r.rsp.status = 2;
		else if (va < m->va || va - m->va > m->len || len > m->len - (va - m->va) ||
			 (b->out.mr[c].aligned && m->key == b->odd_key))
			r.rsp.status = 3;
		else if (!(m->acc & acc))
			r.rsp.status = 4;
		off = va - HOST_VA;
	}
	if (r.rsp.status) {
		r.rsp.last = true;
		fifo_put(f, &r);
		return;
	}
	while (len) {
		n = 4096 - (off & 4095);
		if (n > len)
			n = len;
		r.rsp.addr = bench_bus(off);
		r.rsp.len = n;
		len -= n;
		off += n;
		r.rsp.last = !len;
		fifo_put(f, &r);
	}
}

static void read_request(struct bench *b, int c)
{
	uint64_t addr = b->out.rd_addr[c];
	unsigned int len = b->out.rd_len[c];
	const uint8_t *p = host_at(b, addr, len);
	struct rd_beat r = { .when = b->cycle + rnd_in(b, b->rd_latency, 2 * b->rd_latency),
			     .client = c };
	int *fail = c ? &b->fail_atm : &b->fail_rd;
	bool err = *fail >= 0 && (*fail)-- == 0;

	if (c) {
		b->atm_addr = addr;
		b->atm_writes = b->n_writes;
	}
	assert_in_range(len, 1, 4096);
	for (unsigned int i = 0; i < len; i += 64) {
		unsigned int n = len - i < 64 ? len - i : 64;

		memset(r.data, 0xee, 64);
		memcpy(r.data, p + i, n);
		r.last = i + 64 >= len;
		r.err = r.last && err;
		/* what a failed read brings is anything: also what is in memory */
		if (err && rnd(b) % 2)
			memset(r.data, 0xff, 64);
		fifo_put(&b->rdr, &r);
	}
}

static void write_beat(struct bench *b, int c)
{
	unsigned int n;

	if (!b->wr_pos[c]) {
		b->wr_addr[c] = b->out.wr_addr[c];
		b->wr_len[c] = b->out.wr_len[c];
		assert_in_range(b->wr_len[c], 1, 4096);
		host_at(b, b->wr_addr[c], b->wr_len[c]);
	}
	n = b->wr_len[c] - b->wr_pos[c] < 64 ? b->wr_len[c] - b->wr_pos[c] : 64;
	memcpy(host_at(b, b->wr_addr[c] + b->wr_pos[c], n), b->out.wr_data[c], n);
	b->wr_pos[c] += n;
	if ((b->out.wr_last >> c & 1) != (b->wr_pos[c] == b->wr_len[c]))
		fail_msg("cycle %llu: DMA write of %u bytes: last is wrong at byte %u",
			 (unsigned long long)b->cycle, b->wr_len[c], b->wr_pos[c]);
	if (b->out.wr_last >> c & 1) {
		b->wr_pos[c] = 0;
		b->n_writes++;
	}
	b->last_wr = b->cycle;
	if (!b->first_wr)
		b->first_wr = b->cycle;
}

/* A key is made invalid at once; rx is told some cycles later. */
static void mr_operation(struct bench *b)
{
	unsigned int i;

	assert_int_equal(b->out.mro_op, 4); /* MRO_INV_REMOTE */
	assert_int_equal(b->mro_wait, 0);
	for (i = 0; i < b->mrs; i++)
		if (b->mr[i].key == b->out.mro_key && !b->mr_invalid[i])
			break;
	b->mro_status = i == b->mrs ? 1 : b->mr[i].pd != b->out.mro_pd ? 2 : 0;
	b->inv_key = 0;
	if (!b->mro_status) {
		b->mr_invalid[i] = !b->mr_again;
		b->inv_key = b->out.mro_key;
	}
	b->mro_wait = rnd_in(b, 1, 10);
	b->n_mros++;
}

/* What was offered and not taken is offered in the next cycle, and is the same. */
static void stays(const struct bench *b, const char *port, int client, uint8_t refused,
		  uint8_t valid, const void *was, const void *is, size_t len)
{
	if ((refused >> client & 1) && (!(valid >> client & 1) || memcmp(was, is, len)))
		fail_msg("cycle %llu: %s of client %d changes before it is taken",
			 (unsigned long long)b->cycle, port, client);
}

static void ports_stay(struct bench *b, const struct rx_in *in, const struct rx_out *o)
{
	const struct rx_out *p = &b->before;

	for (int c = 0; c < 2; c++) {
		stays(b, "translation", c, b->refused_mr, o->mr_valid, &p->mr[c], &o->mr[c],
		      sizeof(o->mr[c]));
		stays(b, "DMA read", c, b->refused_rd, o->rd_valid, &p->rd_addr[c], &o->rd_addr[c],
		      sizeof(o->rd_addr[c]));
		stays(b, "DMA write", c, b->refused_wr, o->wr_valid, p->wr_data[c], o->wr_data[c],
		      sizeof(o->wr_data[c]));
		stays(b, "CQE", c, b->refused_cqe, o->cqe_valid, &p->cqe[c], &o->cqe[c],
		      sizeof(o->cqe[c]));
		stays(b, "error", c, b->refused_err, o->err_valid, &p->err[c], &o->err[c],
		      sizeof(o->err[c]));
	}
	b->refused_mr = o->mr_valid & ~in->mr_ready;
	b->refused_rd = o->rd_valid & ~in->rd_ready;
	b->refused_wr = o->wr_valid & ~in->wr_ready;
	b->refused_cqe = o->cqe_valid & ~in->cqe_ready;
	b->refused_err = o->err_valid & ~in->err_ready;
	b->before = *o;
}

/* ---- a cycle
 * ------------------------------------------------------------------------------------------ */

#define LOG(b, array, n, ...)                 \
	do {                                  \
		assert_true((n) < LOG_MAX);   \
		(array)[(n)++] = __VA_ARGS__; \
	} while (0)

void bench_cycle(struct bench *b)
{
	struct rx_in *in = &b->in;
	struct rx_out *o = &b->out;
	struct beat *beat = fifo_head(&b->beats);
	struct rd_beat *rd = fifo_head(&b->rdr);
	void *p;

	in->mac_valid = beat && !chance(b, b->gap);
	if (in->mac_valid) {
		memcpy(in->mac_data, beat->data, 64);
		in->mac_keep = beat->keep;
		in->mac_last = beat->last;
		in->mac_err = beat->err;
		in->mac_home = beat->home;
		b->beats.head++;
		if (!b->first_mac)
			b->first_mac = b->cycle;
	}
	p = fifo_head(&b->db);
	in->db_valid = p;
	if (p) {
		in->db_qpn = ((struct db *)p)->qpn;
		in->db_pi = ((struct db *)p)->pi;
	}
	p = fifo_head(&b->srq_db);
	in->srq_db_valid = p;
	if (p) {
		in->srq_db_srqn = ((struct db *)p)->qpn;
		in->srq_db_pi = ((struct db *)p)->pi;
	}
	in->srq_ev_ready = !b->hold_srq_ev && chance(b, b->ready);
	p = fifo_head(&b->qpc);
	in->qpc_valid = p;
	if (p)
		in->qpc = *(struct rx_ctl *)p;
	p = fifo_head(&b->aqc);
	in->aqc_valid = p;
	if (p)
		in->aqc = *(struct rx_ctl *)p;
	p = fifo_head(&b->sent);
	in->sent_valid = p;
	if (p)
		in->sent = *(struct rx_sent *)p;
	p = fifo_head(&b->made);
	in->made_valid = p;
	if (p) {
		in->made_qpn = ((struct rx_sent *)p)->qpn;
		in->made_psn = ((struct rx_sent *)p)->psn;
		in->made_asks = !((struct rx_sent *)p)->unrel;
	}
	in->mrr_valid = 0;
	in->mr_ready = 0;
	in->qpr_ready = 0;
	in->cqe_ready = 0;
	in->err_ready = 0;
	for (int c = 0; c < 2; c++) {
		struct mr_frag *f = fifo_head(&b->mrr[c]);

		if (f && f->when <= b->cycle) {
			in->mrr_valid |= 1 << c;
			in->mrr[c] = f->rsp;
		}
		in->mr_ready |= chance(b, b->ready) << c;
		in->qpr_ready |= (!b->hold_qpr[c] && chance(b, b->ready)) << c;
		in->cqe_ready |= (!b->hold_cqe[c] && chance(b, b->ready)) << c;
		in->err_ready |= chance(b, b->ready) << c;
	}
	in->rd_ready = (!b->hold_rd && chance(b, b->ready)) | (!b->hold_atm && chance(b, b->ready))
								      << 1;
	in->rdr_valid = rd && rd->when <= b->cycle ? 1 << rd->client : 0;
	if (in->rdr_valid) {
		memcpy(in->rdr_data, rd->data, 64);
		in->rdr_last = rd->last;
		in->rdr_err = rd->err;
		b->rdr.head++;
	}
	in->wr_ready = (!b->hold_wr && chance(b, b->ready)) | (!b->hold_wr && chance(b, b->ready))
								      << 1;
	in->mro_ready = !b->hold_mro && !b->mro_wait && chance(b, b->ready);
	in->mro_rsp_valid = b->mro_wait && !--b->mro_wait;
	in->mro_rsp = b->mro_status;
	/* tx answers when it likes */
	in->reads_over = b->reads_owed && !b->hold_inv && chance(b, 30);
	b->reads_owed -= in->reads_over;
	in->cycles = b->cycle;
	in->acked_ready = chance(b, b->ready);
	in->ack_ready = !b->hold_ack && chance(b, b->ready);

	rx_model_settle(b->m, in, o);
	ports_stay(b, in, o);
	lanes_cycle(&b->lanes, in, o, b->cycle);
	if (in->db_valid && o->db_ready)
		b->db.head++;
	if (in->srq_db_valid && o->srq_db_ready)
		b->srq_db.head++;
	if (o->srq_ev_valid && in->srq_ev_ready)
		LOG(b, b->srq_evs, b->n_srq_evs,
		    (struct bench_err){ o->srq_ev_obj, o->srq_ev_type, true });
	if (in->sro_valid && o->sro_ready)
		b->sro = *o;
	if (in->qpc_valid && o->qpc_ready) {
		b->qpc.head++;
		b->ctl = *o;
	}
	if (in->aqc_valid && o->aqc_ready) {
		b->aqc.head++;
		b->ctl = *o;
	}
	if (in->sent_valid && o->sent_ready)
		b->sent.head++;
	if (in->made_valid && o->made_ready)
		b->made.head++;
	for (int c = 0; c < 2; c++) {
		if ((in->mrr_valid & o->mrr_ready) >> c & 1)
			b->mrr[c].head++;
		if ((o->mr_valid & in->mr_ready) >> c & 1)
			mr_request(b, c);
		if ((o->cqe_valid & in->cqe_ready) >> c & 1) {
			struct bench_cqe q = { o->cqe[c].cqn, o->cqe_solicited >> c & 1, { 0 } };

			memcpy(q.w, o->cqe[c].w, 32);
			if (!c)
				b->cqe_at[b->n_cqes[0] % LOG_MAX] = b->cycle;
			LOG(b, b->cqes[c], b->n_cqes[c], q);
		}
		/* tx has to know the NAK before the QP goes to ERR */
		if (!c && o->err_valid & 1 && !o->err[c].only && o->ack_valid &&
		    o->ack_kind == RSP_ACK && o->ack_syndrome > 0x60 && o->ack_qpn == o->err[c].qpn)
			fail_msg("cycle %llu: error of QP %u before its NAK",
				 (unsigned long long)b->cycle, o->err[c].qpn);
		if ((o->err_valid & in->err_ready) >> c & 1)
			LOG(b, b->errs[c], b->n_errs[c],
			    (struct bench_err){ o->err[c].qpn, o->err[c].event, o->err[c].only });
		if ((o->rd_valid & in->rd_ready) >> c & 1)
			read_request(b, c);
		if ((o->wr_valid & in->wr_ready) >> c & 1)
			write_beat(b, c);
	}
	if (o->inv_valid) {
		assert_false(b->mro_wait); /* the key is invalid already */
		assert_true(b->inv_key && o->inv_key == b->inv_key);
		b->inv_key = 0; /* once */
		b->n_invs++;
		assert_in_range(++b->reads_owed, 1, 32);
	}
	if (o->mro_valid && in->mro_ready)
		mr_operation(b);
	if (o->ack_valid && in->ack_ready) {
		struct bench_ack a = { .qpn = o->ack_qpn,
				       .kind = o->ack_kind,
				       .syndrome = o->ack_syndrome,
				       .psn = o->ack_psn,
				       .msn = o->ack_msn };

		if (a.kind == RSP_READ) {
			a.key = o->ack_key;
			a.pd = o->ack_pd;
			a.len = o->ack_len;
		}
		if (a.kind != RSP_ACK) {
			a.va = o->ack_va;
			a.dup = o->ack_dup;
		}
		LOG(b, b->acks, b->n_acks, a);
	}
	if (in->mco_valid && o->mco_ready) {
		b->mc_answered = true;
		b->mc_status = o->mco_status;
	}
	if (o->acked_valid && in->acked_ready)
		LOG(b, b->ackeds, b->n_ackeds,
		    (struct bench_acked){ o->acked_kind, o->acked_qpn, o->acked_wqe,
					  o->acked_una });
	for (int i = 0; i < URDMA_CNT_N; i++)
		b->cnt[i] += o->cnt >> i & 1;
	for (int i = 0; o->qc_rx_valid && i < URDMA_QCNT_RESP_ERR; i++)
		if (o->qc_rx_hit >> i & 1)
			b->qc[o->qc_rx_qpn][i] += i == URDMA_QCNT_RX_BYTES ? o->qc_rx_bytes : 1;
	for (int i = 0; o->qc_resp_valid && i < 2; i++)
		b->qc[o->qc_resp_qpn][URDMA_QCNT_RESP_ERR + i] += o->qc_resp_hit >> i & 1;
	b->bytes += o->rx_bytes;
	if (o->class_valid)
		b->classes[o->class_rdma]++;
	rx_model_edge(b->m);
	in->mco_valid &= !b->mc_answered;
	in->sro_valid &= !o->sro_ready;
	b->cycle++;
}

void bench_run(struct bench *b, unsigned int cycles)
{
	while (cycles--)
		bench_cycle(b);
}

void bench_drain(struct bench *b, unsigned int limit)
{
	unsigned int quiet = 0;

	while (quiet < 3) {
		bench_cycle(b);
		if (fifo_head(&b->beats) || fifo_head(&b->db) || fifo_head(&b->srq_db) ||
		    fifo_head(&b->qpc) || fifo_head(&b->aqc) || fifo_head(&b->sent) ||
		    fifo_head(&b->made) || b->out.busy)
			quiet = 0;
		else
			quiet++;
		if (!limit--)
			fail_msg("cycle %llu: urdma_rx does not become idle",
				 (unsigned long long)b->cycle);
	}
	if (fifo_head(&b->mrr[0]) || fifo_head(&b->mrr[1]) || fifo_head(&b->rdr) || b->wr_pos[0] ||
	    b->wr_pos[1])
		fail_msg("cycle %llu: idle, but an answer is on its way or a write is not complete",
			 (unsigned long long)b->cycle);
	lanes_end(&b->lanes, b->cnt, b->qc, b->responses);
}

void bench_settings(struct bench *b, unsigned int ready, unsigned int gap, unsigned int mr_lat,
		    unsigned int rd_lat)
{
	b->ready = ready;
	b->gap = gap;
	b->mr_latency = mr_lat;
	b->rd_latency = rd_lat;
}

void bench_clear_logs(struct bench *b)
{
	b->n_acks = b->n_ackeds = b->n_srq_evs = 0;
	for (int c = 0; c < 2; c++)
		b->n_cqes[c] = b->n_errs[c] = 0;
	memset(b->cnt, 0, sizeof(b->cnt));
	memset(b->qc, 0, sizeof(b->qc));
	b->responses = false;
	lanes_clear(&b->lanes);
	memset(b->classes, 0, sizeof(b->classes));
	b->bytes = 0;
	b->first_mac = b->first_wr = 0;
	b->n_mros = b->n_invs = b->n_pieces = 0;
}

void bench_cfg(struct bench *b, const struct rx_cfg *cfg)
{
	b->in.cfg_we = true;
	b->in.cfg = *cfg;
	bench_cycle(b);
	b->in.cfg_we = false;
}

void bench_gid(struct bench *b, const struct rx_gid *gid)
{
	b->in.gid_we = true;
	b->in.gid = *gid;
	bench_cycle(b);
	b->in.gid_we = false;
}

/* A READ response or ATOMIC acknowledge, by its BTH. */
static bool is_response(const struct frame *f)
{
	size_t ip = f->b[12] == 0x81 ? 18 : 14, bth = ip + (f->b[ip] >> 4 == 4 ? 20 : 40) + 8;
	uint8_t op = f->b[bth] & 0x1f;

	return bth < f->len && ((op >= 0x0d && op <= 0x10) || op == 0x12);
}

void bench_frame(struct bench *b, const struct frame *f, bool err)
{
	size_t len = f->len < 60 ? 60 : f->len;
	struct beat t;

	b->responses |= is_response(f);
	lanes_frame(&b->lanes, f);
	for (size_t i = 0; i < len; i += 64) {
		size_t n = len - i < 64 ? len - i : 64;

		for (size_t k = 0; k < 64; k++)
			t.data[k] = i + k < f->len ? f->b[i + k] : k < n ? 0 : rnd(b);
		t.keep = n == 64 ? ~0ull : (1ull << n) - 1;
		t.last = i + 64 >= len;
		t.err = t.last && err;
		t.home = b->home;
		fifo_put(&b->beats, &t);
	}
}

void bench_db(struct bench *b, uint16_t qpn, uint16_t pi)
{
	fifo_put(&b->db, &(struct db){ qpn, pi });
}

void bench_srq_db(struct bench *b, uint16_t srqn, uint16_t pi)
{
	fifo_put(&b->srq_db, &(struct db){ srqn, pi });
}

void bench_srq(struct bench *b, const struct rx_sro *op)
{
	b->in.sro = *op;
	b->in.sro_valid = true;
	for (int i = 0; b->in.sro_valid; i++) {
		assert_true(i < 10000);
		bench_cycle(b);
	}
}

void bench_ctl(struct bench *b, bool ack, enum qpc_op op, uint16_t qpn, uint32_t psn)
{
	fifo_put(ack ? &b->aqc : &b->qpc, &(struct rx_ctl){ op, qpn, psn & 0xffffff });
}

void bench_ctl_wait(struct bench *b, bool ack, enum qpc_op op, uint16_t qpn, uint32_t psn,
		    unsigned int limit)
{
	bench_ctl(b, ack, op, qpn, psn);
	while (fifo_head(ack ? &b->aqc : &b->qpc)) {
		if (!limit--)
			fail_msg("cycle %llu: a control message is not taken (op %d, QP %u)",
				 (unsigned long long)b->cycle, op, qpn);
		bench_cycle(b);
	}
}

void bench_made(struct bench *b, uint16_t qpn, uint32_t psn)
{
	struct rx_sent s = { .qpn = qpn, .psn = psn };

	fifo_put(&b->made, &s);
}

void bench_sent(struct bench *b, const struct rx_sent *s)
{
	if (!s->status)
		fifo_put(&b->made, s);
	fifo_put(&b->sent, s);
}

void bench_mc_put(struct bench *b, enum mc_op op, uint16_t qpn, const uint8_t *gid)
{
	assert_false(b->in.mco_valid || b->mc_answered);
	b->in.mco_valid = true;
	b->in.mco_kind = op;
	b->in.mco_qpn = qpn;
	if (gid)
		memcpy(b->in.mco_gid, gid, 16);
}

bool bench_mc_done(struct bench *b, enum mc_status *status)
{
	bool done = b->mc_answered;

	b->mc_answered = false;
	*status = b->mc_status;
	return done;
}

enum mc_status bench_mc(struct bench *b, enum mc_op op, uint16_t qpn, const uint8_t *gid)
{
	enum mc_status status;

	bench_mc_put(b, op, qpn, gid);
	for (unsigned int limit = 5000; !bench_mc_done(b, &status); limit--) {
		if (!limit)
			fail_msg("cycle %llu: an operation of groups is not answered",
				 (unsigned long long)b->cycle);
		bench_cycle(b);
	}
	return status;
}

struct bench *bench_new(uint32_t seed)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->m = rx_model_new();
	b->seed = seed ? seed : 1;
	b->host = calloc(1, HOST_SIZE);
	b->shadow = calloc(1, HOST_SIZE);
	assert_non_null(b->host);
	assert_non_null(b->shadow);
	b->fail_rd = b->fail_atm = b->fail_pt = -1;
	fifo_init(&b->beats, sizeof(struct beat));
	fifo_init(&b->db, sizeof(struct db));
	fifo_init(&b->srq_db, sizeof(struct db));
	fifo_init(&b->qpc, sizeof(struct rx_ctl));
	fifo_init(&b->aqc, sizeof(struct rx_ctl));
	fifo_init(&b->sent, sizeof(struct rx_sent));
	fifo_init(&b->made, sizeof(struct rx_sent));
	fifo_init(&b->mrr[0], sizeof(struct mr_frag));
	fifo_init(&b->mrr[1], sizeof(struct mr_frag));
	fifo_init(&b->rdr, sizeof(struct rd_beat));
	bench_settings(b, 100, 0, 4, 100);
	b->in.rst = true;
	bench_run(b, 4);
	b->in.rst = false;
	bench_run(b, 4200);
	assert_true(b->out.init_done);
	bench_drain(b, 100);
	bench_clear_logs(b);
	return b;
}

void bench_free(struct bench *b)
{
	struct fifo *f[] = { &b->beats, &b->db,	  &b->srq_db, &b->qpc,	  &b->aqc,
			     &b->sent,	&b->made, &b->mrr[0], &b->mrr[1], &b->rdr };

	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
		free(f[i]->data);
	lanes_free(&b->lanes);
	rx_model_free(b->m);
	free(b->host);
	free(b->shadow);
	free(b);
}
