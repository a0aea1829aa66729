// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "work.h"

#define FILL 0xeeu /* guards, and memory that will be overwritten */
#define GAP  37u   /* between pieces */

const char *work_name(unsigned int opcode)
{
	static const char *const name[] = { "SEND",	   "SEND_IMM", "SEND_INV",  "WRITE",
					    "WRITE_IMM",   "READ",     "ATOMIC_CS", "ATOMIC_FA",
					    "LOCAL_INV",   "REG_MR",   "BIND_MW",   "FLUSH",
					    "ATOMIC_WRITE" };

	return opcode < sizeof(name) / sizeof(name[0]) ? name[opcode] : "?";
}

bool work_takes_recv(unsigned int opcode)
{
	return opcode <= URDMA_WR_SEND_INV || opcode == URDMA_WR_WRITE_IMM;
}

bool work_is_atomic(unsigned int opcode)
{
	return opcode == URDMA_WR_ATOMIC_CS || opcode == URDMA_WR_ATOMIC_FA;
}

bool work_is_mpe(unsigned int opcode)
{
	return opcode == URDMA_WR_FLUSH || opcode == URDMA_WR_ATOMIC_WRITE;
}

static bool is_send(unsigned int opcode)
{
	return opcode <= URDMA_WR_SEND_INV;
}

static bool has_imm(unsigned int opcode)
{
	return opcode == URDMA_WR_SEND_IMM || opcode == URDMA_WR_WRITE_IMM;
}

static uint32_t imm_of(const struct work *w)
{
	return w->seed * 0x9e3779b9u + 1;
}

uint32_t work_psns(unsigned int opcode, uint32_t len, unsigned int mtu)
{
	uint32_t bytes = 128u << mtu;

	return work_is_atomic(opcode) || work_is_mpe(opcode) || !len ? 1
								     : (len + bytes - 1) / bytes;
}

size_t work_slot(uint32_t len)
{
	return (2 * WORK_GUARD + 128 + WORK_SGES * GAP + len + 63u) & ~(size_t)63;
}

/*
 * Makes up to n pieces of unequal length; returns how many. Empty ones may have any key. one: the
 * bytes have to be contiguous, as they are at a remote address.
 */
static unsigned int lay_out(const struct work *w, const struct urdma_eh_mr *mr, uint8_t *slot,
			    unsigned int n, struct urdma_eh_sge *sge)
{
	uint64_t addr = (uintptr_t)slot + WORK_GUARD + w->odd;
	uint32_t left = w->len;

	if (!n)
		n = 1;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? left : (w->seed >> i) % 5 ? left / (n - i) + i : 0;

		if (part > left)
			part = left;
		sge[i] = (struct urdma_eh_sge){ addr, part, part || i + 1 == n ? mr->key : 0xbad };
		addr += part + GAP;
		left -= part;
	}
	return n;
}

/* Copies the message's bytes into the pieces of a slot or its image. */
static void scatter(const struct work *w, const struct urdma_eh_sge *sge, unsigned int n,
		    const uint8_t *slot, uint8_t *image)
{
	uint8_t *data = malloc(w->len + 8u), *p = data;

	rig_fill(data, w->len, w->seed);
	for (unsigned int i = 0; i < n; i++) {
		memcpy(image + (sge[i].addr - (uintptr_t)slot), p, sge[i].length);
		p += sge[i].length;
	}
	free(data);
}

static uint64_t word(const struct work *w, unsigned int k)
{
	uint64_t v;
	uint8_t bytes[32];

	rig_fill(bytes, sizeof(bytes), w->seed ^ 0x77);
	memcpy(&v, bytes + 8 * k, 8);
	return v;
}

/* Operands; half of the CS find the value that they compare with. */
static void lay_out_atomic(struct work *w, uint8_t *const slot[2])
{
	const uint64_t before = word(w, 0);
	uint8_t *target = w->image[1] + WORK_GUARD + (w->odd & ~7u);
	uint64_t after;

	w->swap_add = word(w, 1);
	w->compare = w->seed & 1 ? before : word(w, 2);
	if (w->opcode == URDMA_WR_ATOMIC_FA)
		after = before + w->swap_add;
	else
		after = w->compare == before ? w->swap_add : before;
	memcpy(slot[1] + (target - w->image[1]), &before, 8);
	memcpy(target, &after, 8);
	memcpy(w->image[0] + WORK_GUARD + w->odd, &before, 8);
}

/*
 * FLUSH of a range of len bytes, or of the region; ATOMIC WRITE. Neither has data at the requester.
 */
static void lay_out_mpe(struct work *w, uint8_t *const slot[2], struct urdma_eh_send *wr)
{
	size_t at = WORK_GUARD + (w->odd & ~7u);

	w->n_sge[0] = 0;
	wr->raddr = (uintptr_t)slot[1] + at;
	wr->flush_type = URDMA_FLUSH_GLOBAL;
	wr->flush_level = w->seed % 4 ? URDMA_FLUSH_RANGE : URDMA_FLUSH_MR;
	wr->flush_length = w->len;
	wr->write_value = word(w, 1);
	if (w->opcode == URDMA_WR_ATOMIC_WRITE)
		memcpy(w->image[1] + at, &wr->write_value, 8);
}

void work_put_recv(struct rig *rig, struct work *w)
{
	struct urdma_eh_qp *qp = &rig->side[!w->from].qp[w->pair];

	w->rq_index = qp->rq_pi;
	assert_int_equal(urdma_eh_put_recv(qp, w->sge[1], is_send(w->opcode) ? w->n_sge[1] : 0), 0);
}

void work_put(struct rig *rig, struct work *w)
{
	struct rig_side *side[2] = { &rig->side[w->from], &rig->side[!w->from] };
	uint8_t *slot[2] = { side[0]->buffer + w->at, side[1]->buffer + w->at };
	struct urdma_eh_send wr = { .opcode = w->opcode,
				    .signaled = !w->unsignaled,
				    .solicited = w->solicited,
				    .fence = w->fence,
				    .imm = imm_of(w),
				    .key = w->inv };
	bool read = w->opcode == URDMA_WR_READ;
	uint8_t *data = NULL;

	if (work_is_atomic(w->opcode) || w->opcode == URDMA_WR_ATOMIC_WRITE)
		w->len = 8;
	w->slot = work_slot(w->len);
	assert_true(w->at + w->slot <= rig->config.buffer);
	for (unsigned int i = 0; i < 2; i++) {
		bool list = is_send(w->opcode) || (i == 0 && !work_is_atomic(w->opcode));

		memset(slot[i], (int)FILL, w->slot);
		w->image[i] = malloc(w->slot);
		memset(w->image[i], (int)FILL, w->slot);
		w->n_sge[i] = lay_out(w, &side[i]->mr, slot[i], list ? w->pieces : 1, w->sge[i]);
	}
	if (work_is_mpe(w->opcode)) {
		lay_out_mpe(w, slot, &wr);
	} else if (work_is_atomic(w->opcode)) {
		lay_out_atomic(w, slot);
		wr.raddr = (uintptr_t)slot[1] + WORK_GUARD + (w->odd & ~7u);
	} else {
		/* memory that is read stays as it is; memory that is written has to have the same
		 * bytes */
		if (!w->inlined)
			scatter(w, w->sge[read], w->n_sge[read], slot[read], slot[read]);
		for (unsigned int i = 0; i < 2; i++)
			if (!w->inlined || i)
				scatter(w, w->sge[i], w->n_sge[i], slot[i], w->image[i]);
		wr.raddr = w->sge[1][0].addr;
	}
	if (!is_send(w->opcode))
		wr.rkey = side[1]->mr.key;
	wr.swap_add = w->swap_add;
	wr.compare = w->compare;
	if (work_takes_recv(w->opcode) && !w->late_recv)
		work_put_recv(rig, w);
	if (w->inlined) {
		data = malloc(w->len + 8u);
		rig_fill(data, w->len, w->seed);
		wr.inline_data = data;
		wr.inline_len = w->len;
	} else {
		wr.sge = w->sge[0];
		wr.n_sge = w->n_sge[0];
	}
	w->sq_index = side[0]->qp[w->pair].sq_pi;
	assert_int_equal(urdma_eh_put_send(&side[0]->qp[w->pair], &wr), 0);
	free(data);
}

#define DESCRIBE(w) work_name((w)->opcode), (w)->len, (w)->pair, (w)->from, (w)->sq_index & 0xffff

void work_check_memory(struct rig *rig, struct work *w)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *slot = rig->side[i ? !w->from : w->from].buffer + w->at;

		for (size_t k = 0; memcmp(slot, w->image[i], w->slot); k++)
			if (slot[k] != w->image[i][k])
				fail_msg("%s of %u bytes, pair %u from side %u, WQE %u: byte %zu "
					 "of %zu "
					 "in the %s's slot is %02x instead of %02x",
					 DESCRIBE(w), k, w->slot, i ? "responder" : "requester",
					 slot[k], w->image[i][k]);
		free(w->image[i]);
		w->image[i] = NULL;
	}
}

#define CHECK(field, want)                                                               \
	do {                                                                             \
		if ((uint64_t)(field) != (uint64_t)(want))                               \
			fail_msg("%s of %u bytes, pair %u from side %u, WQE %u: " #field \
				 " is %llu instead of %llu",                             \
				 DESCRIBE(w), (unsigned long long)(field),               \
				 (unsigned long long)(want));                            \
	} while (0)

void work_check_send(struct rig *rig, const struct work *w, const struct urdma_eh_cqe *cqe)
{
	CHECK(cqe->status, URDMA_WC_SUCCESS);
	CHECK(cqe->opcode, w->opcode);
	CHECK(cqe->wqe, w->sq_index & 0xffff);
	CHECK(cqe->qpn, rig->side[w->from].qp[w->pair].qpn);
	CHECK(cqe->recv, 0);
}

void work_check_recv(struct rig *rig, const struct work *w, const struct urdma_eh_cqe *cqe)
{
	CHECK(cqe->status, URDMA_WC_SUCCESS);
	CHECK(cqe->opcode, w->opcode);
	CHECK(cqe->wqe, w->rq_index & 0xffff);
	CHECK(cqe->qpn, rig->side[!w->from].qp[w->pair].qpn);
	CHECK(cqe->src_qpn, rig->side[w->from].qp[w->pair].qpn);
	CHECK(cqe->recv, 1);
	CHECK(cqe->length, w->len);
	CHECK(cqe->solicited, w->solicited);
	CHECK(cqe->has_imm, has_imm(w->opcode));
	CHECK(cqe->has_inv, w->opcode == URDMA_WR_SEND_INV);
	if (has_imm(w->opcode))
		CHECK(cqe->imm, imm_of(w));
	if (cqe->has_inv)
		CHECK(cqe->imm, w->inv);
}

void work_ring(struct rig *rig, const struct work *w, size_t n)
{
	bool sq[2][RIG_MAX_QPS] = { 0 }, rq[2][RIG_MAX_QPS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		sq[w[i].from][w[i].pair] = true;
		rq[!w[i].from][w[i].pair] |= work_takes_recv(w[i].opcode) && !w[i].late_recv;
	}
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < rig->config.qps; i++)
			if (rq[side][i])
				urdma_eh_ring_rq(&rig->side[side].qp[i]);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < rig->config.qps; i++)
			if (sq[side][i])
				urdma_eh_ring_sq(&rig->side[side].qp[i]);
}

/* The first message from index *next on to which a CQE of this QP may belong. */
static struct work *expected(struct work *w, size_t n, size_t *next, unsigned int side,
			     unsigned int pair, bool recv)
{
	for (; *next < n; (*next)++) {
		struct work *c = &w[*next];

		if (c->pair == pair && (c->from == side) != recv &&
		    (recv ? work_takes_recv(c->opcode) : !c->unsignaled))
			return c;
	}
	return NULL;
}

struct finish {
	struct rig *rig;
	struct work *w;
	size_t n, left;
	size_t next[2][RIG_MAX_QPS]
		   [2]; /* index of the message whose CQE is next, by side and kind */
	const char *what;
	work_other_fn other; /* or NULL */
	void *ctx;
};

static bool cq_has_any(void *arg)
{
	struct finish *f = arg;

	for (unsigned int n = 0; n < 2; n++)
		if (urdma_eh_cq_ready(&f->rig->side[n].send_cq) ||
		    urdma_eh_cq_ready(&f->rig->side[n].recv_cq))
			return true;
	return false;
}

static void take(struct finish *f, unsigned int side, bool recv)
{
	struct rig_side *s = &f->rig->side[side];
	unsigned int pair;
	struct urdma_eh_cqe cqe;

	while (f->left && urdma_eh_poll_cq(recv ? &s->recv_cq : &s->send_cq, &cqe, 1)) {
		struct work *w;

		if (f->other && f->other(f->ctx, side, &cqe))
			continue;
		pair = cqe.qpn - RIG_QPN(0);
		if (pair >= f->rig->config.qps)
			fail_msg("%s: a CQE of QP %u", f->what, cqe.qpn);
		w = expected(f->w, f->n, &f->next[side][pair][recv], side, pair, recv);
		if (!w)
			fail_msg("%s: pair %u, side %u: a %s CQE too many: opcode %u status %u WQE "
				 "%u",
				 f->what, pair, side, recv ? "receive" : "send", cqe.opcode,
				 cqe.status, cqe.wqe);
		if (recv)
			work_check_recv(f->rig, w, &cqe);
		else
			work_check_send(f->rig, w, &cqe);
		f->next[side][pair][recv]++;
		f->left--;
	}
}

void work_finish_beside(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what,
			work_other_fn other, void *ctx)
{
	struct finish *f = test_calloc(1, sizeof(*f));
	uint64_t end = urdma_cosim_now(rig->cosim) + limit;

	f->rig = rig;
	f->w = w;
	f->n = n;
	f->what = what;
	f->other = other;
	f->ctx = ctx;
	for (size_t i = 0; i < n; i++)
		f->left += !w[i].unsignaled + work_takes_recv(w[i].opcode);
	while (f->left) {
		int ret = urdma_cosim_run_cond(rig->cosim, cq_has_any, f, end);

		if (ret == -ETIMEDOUT) {
			for (size_t i = 0; i < n; i++) {
				unsigned int from = w[i].from, pair = w[i].pair;

				if (!w[i].unsignaled && f->next[from][pair][0] <= i)
					fail_msg("%s: %s of %u bytes, pair %u from side %u, WQE %u "
						 "does not complete",
						 what, DESCRIBE(&w[i]));
			}
			fail_msg("%s: %zu receive CQEs do not come", what, f->left);
		}
		rig_check(rig, ret, what);
		for (unsigned int k = 0; k < 4; k++)
			take(f, k / 2, k % 2);
	}
	test_free(f);
	for (size_t i = 0; i < n; i++)
		work_check_memory(rig, &w[i]);
}

void work_finish(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what)
{
	work_finish_beside(rig, w, n, limit, what, NULL, NULL);
}

void work_run(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what)
{
	for (size_t i = 0; i < n; i++)
		work_put(rig, &w[i]);
	work_ring(rig, w, n);
	work_finish(rig, w, n, limit, what);
}

size_t work_bystanders(struct work *w, unsigned int pair, size_t at)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND_IMM, URDMA_WR_READ, URDMA_WR_WRITE,
					       URDMA_WR_ATOMIC_FA };

	for (unsigned int i = 0; i < WORK_BYSTANDERS; i++) {
		w[i] = (struct work){ .opcode = opcode[i / 2],
				      .from = i % 2,
				      .pair = pair,
				      .len = 2500,
				      .seed = 77 + i,
				      .at = at };
		at += work_slot(2500);
	}
	return WORK_BYSTANDERS;
}
