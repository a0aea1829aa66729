// SPDX-License-Identifier: Apache-2.0
/*
 * XRC, from the specification (volume 1, annex A14): initiator QPs send to target QPs, each message
 * to an SRQ that it names. Keys have to belong to the SRQ's PD, and completions go to the SRQ's CQ.
 * A message to an SRQ that does not exist or is in another domain moves the target QP to ERR and
 * touches no memory.
 *
 * Every byte of every source, target and receive buffer is compared, also those after the message.
 * The wire checker watches both ports. At the end the NIC's indices are compared with the WQEs that
 * have not completed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "rig.h"
#include "seed.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define QPS	 64u
#define SRQS	 8u
#define PDS	 2u /* SRQ s belongs to PD s % PDS, its CQEs go to CQ s / 2 % CQS */
#define CQS	 2u
#define WINDOW	 4u /* messages of a QP under way */
#define TURN	 200u
#define LIMIT	 4000000u /* cycles in which something has to complete */
#define GUARD	 64u
#define PATTERN	 0xa5
#define OTHER_PD 3u /* SRQs with an odd number */
#define OTHER_CQ 3u

struct plan {
	const char *name;
	unsigned int qps; /* the second half sends from side 1 to side 0 */
	unsigned int srqs, log_srq, mtu;
	unsigned int messages; /* of each QP */
	uint32_t max_len;
	const char *faults[5];
	bool ipv6;
	bool sizes;	   /* lengths are those of a table */
	bool starve;	   /* WQEs come late, a few at a time */
	unsigned int ends; /* QPs that go to ERR in the traffic, and are made again */
};

#define PLAN(name_, qps_, srqs_, log_srq_, mtu_, messages_, max_len_, ...)                   \
	{                                                                                    \
		.name = name_, .qps = qps_, .srqs = srqs_, .log_srq = log_srq_, .mtu = mtu_, \
		.messages = messages_, .max_len = max_len_, __VA_ARGS__                      \
	}

/* What a side receives through an SRQ. */
struct shared {
	struct urdma_eh_srq srq;
	bool *owned; /* by place: the NIC has its WQE */
	unsigned int taken;
};

/* A QP, at its sending end and at its receiving end. */
struct flow {
	unsigned int posted, sent, life;
	unsigned int got[CQS]; /* of each CQ: next message that may complete there */
	unsigned int received;
	unsigned int flushed;
};

static struct rig rig;
static struct judge judge;
static bool running, judged;
static const struct plan *plan;
static struct flow flows[QPS];
static struct shared shared[2][SRQS];
static struct urdma_eh_mr other_mr[2];
static struct urdma_eh_cq other_cq[2];
static uint64_t random_state;
static size_t slot, recv_slot; /* bytes of a message's source or target; of a place's buffer */

/* ---- messages: the i-th of a QP -------------------------------------------------------------- */

static const uint8_t opcodes[] = { URDMA_WR_SEND,      URDMA_WR_WRITE,	   URDMA_WR_SEND_IMM,
				   URDMA_WR_READ,      URDMA_WR_WRITE_IMM, URDMA_WR_ATOMIC_FA,
				   URDMA_WR_ATOMIC_CS, URDMA_WR_SEND };

static uint32_t content(unsigned int q, unsigned int i)
{
	return (q << 20) + (flows[q].life << 15) + i + 1;
}

static uint64_t drawn(unsigned int q, unsigned int i)
{
	uint64_t state = content(q, i) * UINT64_C(0x9e3779b97f4a7c15);

	rnd_next(&state);
	return state;
}

static unsigned int opcode_of(unsigned int q, unsigned int i)
{
	return opcodes[(i + q) % COUNT(opcodes)];
}

static unsigned int srq_of(unsigned int q, unsigned int i)
{
	uint64_t state = drawn(q, i);

	return rig_draw(&state, plan->srqs);
}

static bool is_atomic(unsigned int opcode)
{
	return opcode == URDMA_WR_ATOMIC_FA || opcode == URDMA_WR_ATOMIC_CS;
}

static bool is_mpe(unsigned int opcode)
{
	return opcode == URDMA_WR_FLUSH || opcode == URDMA_WR_ATOMIC_WRITE;
}

static bool takes_recv(unsigned int opcode)
{
	return opcode <= URDMA_WR_SEND_INV || opcode == URDMA_WR_WRITE_IMM;
}

static bool has_imm(unsigned int opcode)
{
	return opcode == URDMA_WR_SEND_IMM || opcode == URDMA_WR_WRITE_IMM;
}

static uint32_t len_of(unsigned int q, unsigned int i)
{
	uint32_t mtu = 128u << plan->mtu;
	const uint32_t table[] = { 0,	1,	 3,   63,      64,	    65,		mtu - 1,
				   mtu, mtu + 1, 127, 2 * mtu, 2 * mtu + 1, 5 * mtu + 7 };
	uint64_t state = drawn(q, i) ^ 0x5555;

	if (is_atomic(opcode_of(q, i)))
		return 8;
	if (plan->sizes)
		return table[i / COUNT(opcodes) % COUNT(table)];
	return rig_draw_len(&state, mtu, plan->max_len);
}

static unsigned int sender(unsigned int q)
{
	return rig_sends(&rig, 0, q) ? 0 : 1;
}

static const struct urdma_eh_mr *mr_of(unsigned int side, unsigned int s)
{
	return s % PDS ? &other_mr[side] : &rig.side[side].mr;
}

static unsigned int cq_of(unsigned int s)
{
	return s / 2 % CQS;
}

static struct urdma_eh_cq *recv_cq(unsigned int side, unsigned int k)
{
	return k ? &other_cq[side] : &rig.side[side].recv_cq;
}

/* ---- memory: sources of a side, targets of WRITEs and READs, buffers of places ----------------
 */

static uint8_t *source(unsigned int q, unsigned int i)
{
	return rig.side[sender(q)].buffer + ((size_t)q * WINDOW + i % WINDOW) * slot;
}

static uint8_t *target(unsigned int q, unsigned int i)
{
	return rig.side[!sender(q)].buffer + ((size_t)q * WINDOW + i % WINDOW) * slot;
}

static uint8_t *place_buffer(unsigned int side, unsigned int s, unsigned int place)
{
	return rig.side[side].buffer + plan->qps * WINDOW * slot +
	       (((size_t)s << plan->log_srq) + place) * recv_slot;
}

static uint64_t word(unsigned int q, unsigned int i, unsigned int k)
{
	uint64_t v[4];

	rig_fill(v, sizeof(v), content(q, i) ^ 0x700000);
	return v[k];
}

static void check_pattern(const uint8_t *p, size_t from, size_t to)
{
	for (size_t k = from; k < to; k++)
		if (p[k] != PATTERN)
			fail_msg("%s: byte %zu behind a message is %02x", plan->name, k, p[k]);
}

/* Written memory has the data, memory that is read is unchanged, and nothing else has changed. */
static void check_target(unsigned int q, unsigned int i)
{
	unsigned int opcode = opcode_of(q, i);
	uint32_t len = len_of(q, i);
	uint64_t v;

	if (is_atomic(opcode)) {
		memcpy(&v, target(q, i), 8);
		if (opcode == URDMA_WR_ATOMIC_FA)
			assert_int_equal(v, word(q, i, 0) + word(q, i, 1));
		else
			assert_int_equal(v, i & 1 ? word(q, i, 1) : word(q, i, 0));
	} else if (opcode <= URDMA_WR_SEND_INV) {
		len = 0;
	} else {
		assert_int_equal(rig_verify(target(q, i), len, content(q, i)), len);
	}
	check_pattern(target(q, i), len, slot);
}

static void check_source(unsigned int q, unsigned int i)
{
	uint32_t len = len_of(q, i);
	uint64_t v;

	if (is_atomic(opcode_of(q, i))) {
		memcpy(&v, source(q, i), 8);
		assert_int_equal(v, word(q, i, 0));
	} else {
		assert_int_equal(rig_verify(source(q, i), len, content(q, i)), len);
	}
	check_pattern(source(q, i), len, slot);
}

/* ---- a rig ---------------------------------------------------------------------------------- */

static void forget(void)
{
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int s = 0; s < SRQS; s++)
			free(shared[n][s].owned);
	memset(shared, 0, sizeof(shared));
	memset(flows, 0, sizeof(flows));
	running = false;
}

static void drop_judge(void)
{
	if (judged)
		judge_drop(&judge);
	judged = false;
}

static void make_srq(unsigned int n, unsigned int s, uint32_t xrcd)
{
	struct urdma_eh_srq_attr attr = {
		.srqn = RIG_SRQN(s),
		.pd = s % PDS ? OTHER_PD : RIG_PD,
		.db_page = RIG_DB_PAGE,
		.log_entries = plan->log_srq,
		.log_stride = 6,
		.kind = s % 3 ? URDMA_EH_RING_PAGED : URDMA_EH_RING_CONTIG,
		.xrc = true,
		.xrcd = xrcd,
		.cq = recv_cq(n, cq_of(s)),
	};

	rig_check(&rig, urdma_eh_create_srq(rig.side[n].eh, &attr, &shared[n][s].srq),
		  "create XRC SRQ");
}

static void make_side(unsigned int n)
{
	struct rig_side *side = &rig.side[n];

	rig_check(&rig, urdma_eh_alloc_pd(side->eh, OTHER_PD), "allocate PD");
	rig_check(&rig,
		  urdma_eh_create_mr(
			  side->eh, 2, 0x33, OTHER_PD,
			  URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ |
				  URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_FLUSH_GLOBAL,
			  side->buffer, rig.config.buffer, (uintptr_t)side->buffer, &other_mr[n]),
		  "create MR");
	rig_check(&rig,
		  urdma_eh_create_cq(side->eh, OTHER_CQ, rig.config.log_cqe, 1, RIG_DB_PAGE,
				     rig.config.kind, &other_cq[n]),
		  "create CQ");
	for (unsigned int s = 0; s < plan->srqs; s++) {
		shared[n][s].owned = calloc(1u << plan->log_srq, sizeof(bool));
		rig_check(&rig, shared[n][s].owned ? 0 : -1, "memory");
		make_srq(n, s, RIG_XRCD);
	}
}

static void begin(const struct plan *p, uint64_t seed)
{
	struct rig_config config;

	if (running) { /* a test has failed */
		drop_judge();
		rig_abandon(&rig);
		forget();
	}
	plan = p;
	slot = (p->max_len + GUARD + 63) & ~63u;
	recv_slot = slot;
	random_state = test_seed(seed);
	rig_defaults(&config);
	config.qps = p->qps;
	config.xrc = true;
	config.xrc_back = p->qps > 1;
	config.mtu = p->mtu;
	config.ipv6 = p->ipv6;
	config.log_sq = 4;
	config.log_stride = 7;
	config.log_cqe = 16;
	config.priv = true;
	config.buffer = p->qps * WINDOW * slot + ((size_t)p->srqs << p->log_srq) * recv_slot;
	config.buffer = (config.buffer + 65535) & ~(size_t)65535;
	config.memory.memory = 2 * config.buffer + (64u << 20);
	config.faults = true;
	config.fault_seed = random_state;
	config.conn.timeout = 7;
	rig_start(&rig, &config);
	running = true;
	for (unsigned int n = 0; n < 2; n++)
		make_side(n);
	judged = !p->ends;
	if (judged)
		judge_start(&judge, &rig, false);
	for (unsigned int i = 0; i < COUNT(p->faults) && p->faults[i]; i++)
		rig_fault(&rig, "%s", p->faults[i]);
}

static void run_for(uint64_t cycles)
{
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + cycles),
		  plan->name);
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

/* The NIC holds exactly the WQEs that have not completed. */
static void check_indices(void)
{
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int s = 0; s < plan->srqs; s++) {
			struct shared *h = &shared[n][s];
			struct urdma_eh_srq_info info;
			unsigned int owned = 0;

			for (unsigned int k = 0; k < 1u << plan->log_srq; k++)
				owned += h->owned[k];
			assert_int_equal(urdma_eh_query_srq(&h->srq, &info), 0);
			assert_int_equal(info.pi, (uint16_t)h->srq.pi);
			assert_int_equal(info.ci, (uint16_t)h->taken);
			assert_int_equal((uint16_t)(info.pi - info.ci), (uint16_t)owned);
			assert_int_equal(h->srq.n_free + owned, 1u << plan->log_srq);
		}
	}
}

static void no_events(void)
{
	struct urdma_eh_event ev;

	for (unsigned int n = 0; n < 2; n++)
		if (urdma_eh_eq_poll(rig.side[n].eh, 0, &ev, 1, true))
			fail_msg("%s: event %u of object 0x%x", plan->name, ev.type, ev.obj);
}

static void end(void)
{
	settle();
	check_indices();
	no_events();
	assert_int_equal(urdma_embedded_stats(rig.host)->faults, 0);
	if (judged)
		judge_end(&judge, plan->name);
	judged = false;
	for (unsigned int n = 0; n < 2; n++) {
		/* SRQs can be destroyed while target QPs of their domain exist */
		for (unsigned int s = 0; s < plan->srqs; s++)
			assert_int_equal(urdma_eh_destroy_srq(&shared[n][s].srq), 0);
		assert_int_equal(urdma_eh_destroy_cq(&other_cq[n]), 0);
		assert_int_equal(urdma_eh_destroy_mr(&other_mr[n]), 0);
		assert_int_equal(urdma_eh_dealloc_pd(rig.side[n].eh, OTHER_PD), 0);
	}
	rig_stop(&rig);
	forget();
}

/* ---- receives ------------------------------------------------------------------------------- */

/* One WQE of one or two pieces; lkey 0: that of the SRQ's PD. */
static bool put_recv(unsigned int n, unsigned int s, unsigned int pieces, uint32_t lkey)
{
	struct shared *h = &shared[n][s];
	struct urdma_eh_sge sge[2];
	unsigned int place;
	uint8_t *p;

	if (!h->srq.n_free)
		return false;
	place = h->srq.free[h->srq.n_free - 1];
	p = place_buffer(n, s, place);
	if (!lkey)
		lkey = mr_of(n, s)->key;
	if (pieces > 1) {
		sge[0] = (struct urdma_eh_sge){ (uintptr_t)p, 24, lkey };
		sge[1] = (struct urdma_eh_sge){ (uintptr_t)p + 24, (uint32_t)recv_slot - 24, lkey };
	} else {
		sge[0] = (struct urdma_eh_sge){ (uintptr_t)p, (uint32_t)recv_slot, lkey };
	}
	memset(p, PATTERN, recv_slot);
	assert_int_equal(urdma_eh_put_srq_recv(&h->srq, sge, pieces), place);
	assert_false(h->owned[place]);
	h->owned[place] = true;
	return true;
}

static void post_recvs(unsigned int n, unsigned int s, unsigned int count)
{
	while (count--)
		assert_true(put_recv(n, s, 1 + count % 2, 0));
	urdma_eh_ring_srq(&shared[n][s].srq);
}

/* Posts as many WQEs as there is room for; with `starve` seldom, and a few. */
static void refill(unsigned int n, unsigned int s)
{
	unsigned int k, most = 1u << plan->log_srq;

	if (plan->starve)
		most = rig_draw(&random_state, 8) ? 0 : 1 + rig_draw(&random_state, 3);
	for (k = 0; k < most; k++)
		if (!put_recv(n, s, 1 + rig_draw(&random_state, 2), 0))
			break;
	if (k)
		urdma_eh_ring_srq(&shared[n][s].srq);
}

/* The place of a CQE belongs to the caller again. */
static void take_back(unsigned int n, unsigned int s, unsigned int place)
{
	struct shared *h = &shared[n][s];

	assert_true(place < 1u << plan->log_srq);
	assert_true(h->owned[place]);
	h->owned[place] = false;
	h->taken++;
	urdma_eh_srq_give_back(&h->srq, place);
}

static void check_recv(unsigned int n, unsigned int q, unsigned int i,
		       const struct urdma_eh_cqe *cqe)
{
	unsigned int s = srq_of(q, i), opcode = opcode_of(q, i);
	const uint8_t *buffer = place_buffer(n, s, cqe->wqe);
	uint32_t len = len_of(q, i);

	assert_int_equal(cqe->status, URDMA_WC_SUCCESS);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->srqn, RIG_SRQN(s));
	assert_int_equal(cqe->length, len);
	assert_int_equal(cqe->has_imm, has_imm(opcode));
	assert_false(cqe->has_inv);
	assert_int_equal(cqe->solicited, i % 5 == 0);
	if (cqe->has_imm)
		assert_int_equal(cqe->imm, i);
	if (opcode == URDMA_WR_WRITE_IMM) {
		check_target(q, i);
		len = 0;
	} else {
		assert_int_equal(rig_verify(buffer, len, content(q, i)), len);
	}
	check_pattern(buffer, len, recv_slot);
}

/* The next message of a QP that completes in a CQ. */
static unsigned int next_recv(unsigned int q, unsigned int k)
{
	struct flow *f = &flows[q];

	while (f->got[k] < f->posted &&
	       (!takes_recv(opcode_of(q, f->got[k])) || cq_of(srq_of(q, f->got[k])) != k))
		f->got[k]++;
	return f->got[k];
}

static void look_recv(unsigned int n)
{
	struct urdma_eh_cqe cqe;

	for (unsigned int k = 0; k < CQS; k++) {
		while (urdma_eh_poll_cq(recv_cq(n, k), &cqe, 1)) {
			unsigned int q = cqe.qpn - RIG_QPN(0), s = cqe.srqn - RIG_SRQN(0), i;

			assert_true(cqe.recv && cqe.xrc && s < plan->srqs && cq_of(s) == k);
			assert_true(q < plan->qps && sender(q) != n);
			if (cqe.status == URDMA_WC_FLUSH_ERR) {
				/* of the message in progress */
				assert_true(plan->ends && !flows[q].flushed++);
			} else {
				i = next_recv(q, k);
				if (i == flows[q].posted)
					fail_msg("%s: QP %u, CQ %u: a CQE too many", plan->name, q,
						 k);
				check_recv(n, q, i, &cqe);
				flows[q].got[k]++;
				flows[q].received++;
			}
			take_back(n, s, cqe.wqe);
		}
	}
	for (unsigned int s = 0; s < plan->srqs; s++)
		refill(n, s);
}

/* ---- sends ---------------------------------------------------------------------------------- */

/* Messages that both ends have completed, up to the first that one end has not. */
static unsigned int done(unsigned int q)
{
	struct flow *f = &flows[q];
	unsigned int n = f->sent;

	for (unsigned int k = 0; k < CQS; k++)
		if (next_recv(q, k) < n)
			n = f->got[k];
	return n;
}

static void put_send(unsigned int q)
{
	unsigned int i = flows[q].posted, n = sender(q), s = srq_of(q, i), opcode = opcode_of(q, i);
	uint32_t len = len_of(q, i);
	uint8_t data[96];
	struct urdma_eh_sge sge[2] = { { (uintptr_t)source(q, i), len, rig.side[n].mr.key } };
	struct urdma_eh_send wr = {
		.opcode = opcode,
		.signaled = true,
		.solicited = i % 5 == 0,
		.fence = i % 7 == 0,
		.srqn = RIG_SRQN(s),
		.raddr = (uintptr_t)target(q, i),
		.rkey = mr_of(!n, s)->key,
		.imm = i,
		.sge = sge,
		.n_sge = 1,
	};

	if (i >= WINDOW) {
		/* the WRITEs among them have no completion at the target */
		check_target(q, i - WINDOW);
		check_source(q, i - WINDOW);
	}
	memset(source(q, i), PATTERN, slot);
	memset(target(q, i), PATTERN, slot);
	if (is_atomic(opcode)) {
		uint64_t v = word(q, i, 0);

		memcpy(target(q, i), &v, 8);
		wr.swap_add = word(q, i, 1);
		wr.compare = i & 1 ? v : word(q, i, 2);
	} else if (opcode == URDMA_WR_READ) {
		rig_fill(target(q, i), len, content(q, i));
	} else {
		rig_fill(source(q, i), len, content(q, i));
		if (len && len <= sizeof(data) && i % 3 == 0) {
			memcpy(data, source(q, i), len);
			wr.inline_data = data;
			wr.inline_len = len;
		} else if (len > 1) {
			sge[0].length = len / 2;
			sge[1] = (struct urdma_eh_sge){ sge[0].addr + len / 2, len - len / 2,
							sge[0].lkey };
			wr.n_sge = 2;
		} else if (!len) {
			wr.n_sge = i % 2;
		}
	}
	assert_int_equal(urdma_eh_put_send(&rig.side[n].qp[q], &wr), 0);
	flows[q].posted++;
}

/* The memory of a message is reused when both ends have completed it. */
static void fill_window(unsigned int q)
{
	unsigned int n = 0, from = done(q);

	while (flows[q].posted < plan->messages && flows[q].posted - from < WINDOW) {
		put_send(q);
		n++;
	}
	if (n)
		urdma_eh_ring_sq(&rig.side[sender(q)].qp[q]);
}

static void look_send(unsigned int n)
{
	struct urdma_eh_cqe cqe;

	while (urdma_eh_poll_cq(&rig.side[n].send_cq, &cqe, 1)) {
		unsigned int q = cqe.qpn - RIG_QPN(0);

		if (cqe.status == URDMA_WC_FLUSH_ERR && plan->ends)
			continue;
		assert_true(q < plan->qps && sender(q) == n && !cqe.recv && !cqe.xrc);
		assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
		assert_int_equal(cqe.opcode, opcode_of(q, flows[q].sent));
		if (cqe.opcode == URDMA_WR_READ || is_atomic(cqe.opcode))
			check_source(q, flows[q].sent);
		flows[q].sent++;
	}
}

static void look(bool more)
{
	for (unsigned int n = 0; n < 2; n++) {
		look_recv(n);
		look_send(n);
	}
	for (unsigned int q = 0; more && q < plan->qps; q++)
		fill_window(q);
}

static uint64_t progress(void)
{
	uint64_t sum = 0;

	for (unsigned int q = 0; q < plan->qps; q++)
		sum += flows[q].sent + flows[q].received;
	return sum;
}

static bool all_done(void)
{
	for (unsigned int q = 0; q < plan->qps; q++)
		if (done(q) < plan->messages)
			return false;
	return true;
}

/* Both ends of a QP go to ERR while all others go on; then they are made again. */
static void end_pair(unsigned int q)
{
	unsigned int n = sender(q), life = flows[q].life + 1;

	/* either end goes first */
	assert_int_equal(urdma_eh_to_err(&rig.side[life & 1 ? n : !n].qp[q]), 0);
	run_for(rig_draw(&random_state, 3000));
	assert_int_equal(urdma_eh_to_err(&rig.side[life & 1 ? !n : n].qp[q]), 0);
	run_for(5000);
	look(false);
	for (unsigned int k = 0; k < 2; k++)
		rig_renew_qp(&rig, k, q);
	/* no CQE of the old life comes any more */
	look(false);
	flows[q] = (struct flow){ .life = life };
	rig_check(&rig,
		  urdma_eh_connect_as(&rig.side[0].qp[q], &rig.side[1].qp[q], &rig.config.conn,
				      rig.config.ipv6),
		  "connect");
	fill_window(q);
}

static void traffic(void)
{
	uint64_t start = urdma_cosim_now(rig.cosim), seen = start, last, now;
	unsigned int ends = plan->ends;

	look(true);
	last = progress();
	while (!all_done()) {
		run_for(TURN);
		if (ends && !rig_draw(&random_state, 20)) {
			end_pair(rig_draw(&random_state, plan->qps));
			ends--;
		}
		look(true);
		now = progress();
		if (now != last)
			seen = urdma_cosim_now(rig.cosim);
		last = now;
		if (urdma_cosim_now(rig.cosim) > seen + LIMIT) {
			rig_print_counters(&rig);
			for (unsigned int q = 0; q < plan->qps; q++)
				if (done(q) < plan->messages)
					fail_msg("%s: QP %u: posted %u, sent %u, done %u",
						 plan->name, q, flows[q].posted, flows[q].sent,
						 done(q));
		}
	}
	settle();
	for (unsigned int q = 0; q < plan->qps; q++)
		for (unsigned int i = plan->messages - WINDOW; i < plan->messages; i++) {
			check_target(q, i);
			check_source(q, i);
		}
	print_message("  %u messages, %lu cycles\n", plan->qps * plan->messages,
		      (unsigned long)(urdma_cosim_now(rig.cosim) - start));
}

static void test_traffic(void **state)
{
	begin(*state, 1);
	traffic();
	end();
}

static const struct plan plans[] = {
	PLAN("sizes, MTU 256", 2, 2, 6, 1, 104, 1400, .sizes = true),
	PLAN("sizes, MTU 512, IPv6", 2, 4, 6, 2, 104, 2600, .sizes = true, .ipv6 = true),
	PLAN("sizes, MTU 1024", 2, 4, 6, 3, 104, 5200, .sizes = true),
	PLAN("sizes, MTU 2048, IPv6", 2, 4, 6, 4, 104, 10300, .sizes = true, .ipv6 = true),
	PLAN("sizes, MTU 4096", 2, 4, 6, 5, 104, 20500, .sizes = true),
	PLAN("4 QPs, one SRQ", 4, 1, 6, 3, 120, 5000),
	PLAN("one QP each way, 8 SRQs", 2, 8, 5, 3, 300, 5000),
	PLAN("32 QPs, 8 SRQs", 32, 8, 6, 3, 60, 3000),
	PLAN("64 QPs, 4 SRQs, small messages", 64, 4, 6, 3, 60, 64),
	PLAN("rings of one WQE", 4, 2, 0, 3, 40, 3000),
	PLAN("rings of 8 WQEs, which come late", 16, 4, 3, 3, 40, 3000, .starve = true),
	PLAN("1 % of everything", 16, 4, 7, 3, 60, 5000,
	     .faults = { "drop,p=1", "dup,p=1", "reorder,p=1", "corrupt,p=1",
			 "delay,ns=5000,p=1" }),
	PLAN("1 % of everything, IPv6, MTU 256", 8, 4, 6, 1, 60, 3000, .ipv6 = true,
	     .faults = { "drop,p=1", "dup,p=1", "reorder,p=1", "corrupt,p=1",
			 "delay,ns=5000,p=1" }),
	PLAN("WQEs come late, and 3 % of packets are lost", 16, 4, 4, 3, 30, 5000,
	     .faults = { "drop,p=3" }, .starve = true),
	PLAN("QPs end in the traffic", 16, 4, 6, 3, 200, 9000, .ends = 40),
	PLAN("QPs end, WQEs come late, and 2 % of packets are lost", 16, 4, 4, 3, 60, 9000,
	     .faults = { "drop,p=2" }, .starve = true, .ends = 20),
};

/* ---- one thing at a time -------------------------------------------------------------------- */

/* QPs 0 and 1 send from side 0 to side 1, QPs 2 and 3 back. */
static const struct plan few = PLAN("few QPs", 4, 4, 4, 3, 4000, 4096);

static struct urdma_eh_cqe next_send(unsigned int n)
{
	struct urdma_eh_cqe cqe;

	rig_check(&rig, urdma_eh_next_cqe(&rig.side[n].send_cq, &cqe, LIMIT), "send CQE");
	return cqe;
}

/* Sends one message of a kind to an SRQ; slot 0 at `target` is read or written. */
static void post(unsigned int q, unsigned int opcode, uint32_t srqn, uint32_t rkey, uint32_t len)
{
	unsigned int n = sender(q);
	struct urdma_eh_sge sge = { (uintptr_t)source(q, 0), len, rig.side[n].mr.key };
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = true,
				    .srqn = srqn,
				    .raddr = (uintptr_t)target(q, 0),
				    .rkey = rkey,
				    .key = rkey,
				    .imm = 0x1234,
				    .swap_add = 1,
				    .flush_type = URDMA_FLUSH_GLOBAL,
				    .flush_length = len,
				    .sge = &sge,
				    .n_sge = !is_mpe(opcode) };

	assert_int_equal(urdma_eh_post_send(&rig.side[n].qp[q], &wr), 0);
}

/* Traffic of a QP that must not be disturbed: a message of each kind, one after the other. */
static void messages(unsigned int q, unsigned int count)
{
	uint64_t limit = urdma_cosim_now(rig.cosim) + LIMIT;
	unsigned int want = flows[q].posted + count;
	bool recvs;

	while (flows[q].posted < want) {
		unsigned int i = flows[q].posted, s = srq_of(q, i), n = !sender(q);

		recvs = takes_recv(opcode_of(q, i));
		if (recvs && shared[n][s].srq.n_free == 1u << plan->log_srq)
			post_recvs(n, s, 1);
		put_send(q);
		urdma_eh_ring_sq(&rig.side[sender(q)].qp[q]);
		while (done(q) < flows[q].posted) {
			struct urdma_eh_cqe cqe;

			if (urdma_cosim_now(rig.cosim) > limit)
				fail_msg("message %u of QP %u does not complete", i, q);
			run_for(TURN);
			while (urdma_eh_poll_cq(recv_cq(n, cq_of(s)), &cqe, 1)) {
				assert_true(recvs);
				assert_int_equal(cqe.qpn, RIG_QPN(q));
				check_recv(n, q, i, &cqe);
				take_back(n, s, cqe.wqe);
				flows[q].got[cq_of(s)]++;
			}
			look_send(sender(q));
		}
	}
}

static void wait_state(struct urdma_eh_qp *qp, unsigned int want)
{
	uint64_t limit = urdma_cosim_now(rig.cosim) + LIMIT;

	while (rig_qp_state(qp) != want) {
		if (urdma_cosim_now(rig.cosim) > limit)
			fail_msg("QP 0x%x does not come to state %u", qp->qpn, want);
		run_for(1000);
	}
}

static void no_recv_cqe(unsigned int n)
{
	for (unsigned int k = 0; k < CQS; k++)
		assert_false(urdma_eh_cq_ready(recv_cq(n, k)));
}

static unsigned int events(unsigned int n, unsigned int type, uint32_t obj)
{
	struct urdma_eh_event ev;
	unsigned int count = 0;

	run_for(5000);
	while (urdma_eh_eq_poll(rig.side[n].eh, 0, &ev, 1, true)) {
		if (ev.type != type || ev.obj != obj)
			fail_msg("event %u of object 0x%x", ev.type, ev.obj);
		count++;
	}
	return count;
}

/* The pair is in ERR: it is made again. */
static void revive(unsigned int q)
{
	unsigned int n = sender(q);
	struct urdma_eh_cqe cqe;

	wait_state(&rig.side[n].qp[q], URDMA_QPS_ERR);
	for (unsigned int k = 0; k < 2; k++)
		rig_renew_qp(&rig, k, q);
	while (urdma_eh_poll_cq(&rig.side[n].send_cq, &cqe, 1))
		assert_int_equal(cqe.status, URDMA_WC_FLUSH_ERR);
	flows[q] = (struct flow){ .life = flows[q].life + 1 };
	if (judged) {
		uint32_t psn = 0x300000 * (flows[q].life % 5);

		judge_connect(&judge, q, psn, psn + 7);
		rig.config.conn.sq_psn = psn;
		rig.config.conn.rq_psn = psn + 7;
	}
	rig_check(&rig,
		  urdma_eh_connect_as(&rig.side[0].qp[q], &rig.side[1].qp[q], &rig.config.conn,
				      rig.config.ipv6),
		  "connect");
}

/* No WQE of a side's SRQs was used, and nothing was written to its memory. */
static void nothing_touched(unsigned int n, unsigned int q)
{
	no_recv_cqe(n);
	check_pattern(target(q, 0), 0, slot);
	check_indices();
}

/* A request whose SRQ does not exist: NAK 0x61, event, ERR; other QPs are not disturbed. */
static void refused(unsigned int q, uint32_t srqn, const char *what)
{
	static const uint8_t ops[] = {
		URDMA_WR_SEND,	    URDMA_WR_SEND_IMM,	URDMA_WR_SEND_INV,
		URDMA_WR_WRITE,	    URDMA_WR_WRITE_IMM, URDMA_WR_READ,
		URDMA_WR_ATOMIC_FA, URDMA_WR_FLUSH,	URDMA_WR_ATOMIC_WRITE
	};
	unsigned int from = sender(q), to = !from;

	print_message("  %s\n", what);
	for (unsigned int i = 0; i < COUNT(ops); i++) {
		uint64_t naks = urdma_eh_counter(rig.side[to].eh, URDMA_CNT_TX_NAK_OTHER);
		uint32_t len = is_atomic(ops[i]) ? 8 : i == 1 ? 0 : i == 3 ? 3000 : 100;
		struct urdma_eh_cqe cqe;

		memset(target(q, 0), PATTERN, slot);
		post(q, ops[i], srqn, rig.side[to].mr.key, len);
		/* the messages after it: flushed */
		post(q, URDMA_WR_WRITE, RIG_SRQN(0), rig.side[to].mr.key, 100);
		cqe = next_send(from);
		if (cqe.status != URDMA_WC_REM_INV_REQ_ERR)
			fail_msg("%s, opcode %u: status %u", what, ops[i], cqe.status);
		assert_int_equal(cqe.opcode, ops[i]);
		assert_int_equal(next_send(from).status, URDMA_WC_FLUSH_ERR);
		wait_state(&rig.side[to].qp[q], URDMA_QPS_ERR);
		assert_int_equal(events(to, URDMA_EV_QP_REQ_ERR, RIG_QPN(q)), 1);
		assert_int_equal(urdma_eh_counter(rig.side[to].eh, URDMA_CNT_TX_NAK_OTHER),
				 naks + 1);
		nothing_touched(to, q);
		messages(q ^ 1, 3);
		revive(q);
	}
	messages(q, 16);
}

static void test_refused(void **state)
{
	struct urdma_eh_srq_attr attr = { .srqn = 0x30,
					  .pd = RIG_PD,
					  .db_page = RIG_DB_PAGE,
					  .log_entries = 4,
					  .log_stride = 6 };
	struct urdma_eh_srq plain, foreign;
	struct urdma_eh *eh;

	(void)state;
	begin(&few, 2);
	eh = rig.side[1].eh;
	for (unsigned int s = 0; s < plan->srqs; s++)
		post_recvs(1, s, 3);
	refused(0, 0x31, "an SRQ that does not exist");
	refused(1, 0x800000 | RIG_SRQN(0), "a number beyond those there are");
	refused(1, 0xffffff, "the last number");
	assert_int_equal(urdma_eh_create_srq(eh, &attr, &plain), 0);
	refused(0, 0x30, "an SRQ that is not XRC");
	assert_int_equal(urdma_eh_destroy_srq(&plain), 0);
	assert_int_equal(urdma_eh_alloc_pd(eh, 0x44), 0);
	attr.xrc = true;
	attr.xrcd = 0x44;
	attr.cq = &rig.side[1].recv_cq;
	attr.srqn = 0x32;
	assert_int_equal(urdma_eh_create_srq(eh, &attr, &foreign), 0);
	refused(0, 0x32, "an SRQ of another domain");
	assert_int_equal(urdma_eh_dealloc_pd(eh, 0x44), URDMA_CS_BUSY);
	assert_int_equal(urdma_eh_destroy_srq(&foreign), 0);
	assert_int_equal(urdma_eh_dealloc_pd(eh, 0x44), 0);
	refused(1, 0x32, "an SRQ that was destroyed");
	end();
}

/* The keys of each kind of request belong to the SRQ's PD, whatever the domain is. */
static void test_pd(void **state)
{
	static const uint8_t ops[] = {
		URDMA_WR_WRITE,	    URDMA_WR_WRITE_IMM, URDMA_WR_READ,
		URDMA_WR_ATOMIC_FA, URDMA_WR_FLUSH,	URDMA_WR_ATOMIC_WRITE
	};
	unsigned int q = 0;
	struct urdma_eh_cqe cqe;

	(void)state;
	begin(&few, 3);
	for (unsigned int s = 0; s < 2; s++) {
		for (unsigned int i = 0; i < COUNT(ops); i++) {
			uint32_t len = is_atomic(ops[i]) ? 8 : 300;
			bool recv = takes_recv(ops[i]);

			for (unsigned int bad = 0; bad < 2; bad++) {
				memset(target(q, 0), PATTERN, slot);
				if (recv)
					post_recvs(1, s, 1);
				post(q, ops[i], RIG_SRQN(s), mr_of(1, s ^ bad)->key, len);
				cqe = next_send(0);
				if (cqe.status != (bad ? URDMA_WC_REM_ACCESS_ERR : 0))
					fail_msg("SRQ %u, opcode %u, %s PD: status %u", s, ops[i],
						 bad ? "another" : "its own", cqe.status);
				if (bad) {
					wait_state(&rig.side[1].qp[q], URDMA_QPS_ERR);
					/* a receive CQE reports it, if there is one */
					assert_int_equal(
						events(1, URDMA_EV_QP_ACCESS_ERR, RIG_QPN(q)),
						!recv);
					check_pattern(target(q, 0), 0, slot);
				}
				run_for(5000);
				if (recv) {
					rig_check(&rig,
						  urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT),
						  "receive CQE");
					assert_int_equal(cqe.status,
							 bad ? URDMA_WC_LOC_ACCESS_ERR : 0);
					assert_true(cqe.xrc);
					assert_int_equal(cqe.srqn, RIG_SRQN(s));
					take_back(1, s, cqe.wqe);
				}
				no_recv_cqe(1);
				if (bad)
					revive(q);
			}
		}
		/* the key of a receive WQE */
		assert_true(put_recv(1, s, 1, mr_of(1, s ^ 1)->key));
		urdma_eh_ring_srq(&shared[1][s].srq);
		post(q, URDMA_WR_SEND, RIG_SRQN(s), 0, 100);
		assert_int_equal(next_send(0).status, URDMA_WC_REM_OP_ERR);
		rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT), "receive CQE");
		assert_int_equal(cqe.status, URDMA_WC_LOC_PROT_ERR);
		assert_true(cqe.xrc);
		assert_int_equal(cqe.srqn, RIG_SRQN(s));
		assert_int_equal(cqe.qpn, RIG_QPN(q));
		take_back(1, s, cqe.wqe);
		wait_state(&rig.side[1].qp[q], URDMA_QPS_ERR);
		run_for(5000);
		no_events();
		revive(q);
		messages(q, 8);
	}
	end();
}

/* Fewer WQEs than the limit: one event, by messages of several QPs (volume 1, 10.2.9.3). */
static void test_limit(void **state)
{
	struct urdma_eh_cqe cqe;

	(void)state;
	begin(&few, 4);
	post_recvs(1, 2, 10);
	post_recvs(1, 3, 4);
	assert_int_equal(urdma_eh_modify_srq(&shared[1][2].srq, 4), 0);
	assert_int_equal(urdma_eh_modify_srq(&shared[1][3].srq, 4), 0);
	for (unsigned int left = 9; left >= 2; left--) {
		struct urdma_eh_srq_info info;

		post(left % 2, URDMA_WR_SEND, RIG_SRQN(2), 0, 64);
		assert_int_equal(next_send(0).status, 0);
		rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 1), &cqe, LIMIT), "receive CQE");
		take_back(1, 2, cqe.wqe);
		assert_int_equal(events(1, URDMA_EV_SRQ_LIMIT, RIG_SRQN(2)), left == 3);
		assert_int_equal(urdma_eh_query_srq(&shared[1][2].srq, &info), 0);
		assert_int_equal(info.limit, left > 3 ? 4 : 0);
	}
	/* a WRITE takes none */
	for (unsigned int i = 0; i < 3; i++) {
		post(0, URDMA_WR_WRITE, RIG_SRQN(3), mr_of(1, 3)->key, 64);
		assert_int_equal(next_send(0).status, 0);
	}
	assert_int_equal(events(1, URDMA_EV_SRQ_LIMIT, RIG_SRQN(3)), 0);
	end();
}

/* An empty SRQ: RNR NAK, and other SRQs go on; the message comes when there is a WQE. */
static void test_rnr(void **state)
{
	struct urdma_eh_cqe cqe;

	(void)state;
	begin(&few, 5);
	for (unsigned int op = 0; op < 2; op++) {
		post(0, op ? URDMA_WR_WRITE_IMM : URDMA_WR_SEND, RIG_SRQN(0), mr_of(1, 0)->key,
		     3000);
		run_for(20000);
		no_recv_cqe(1);
		assert_false(urdma_eh_cq_ready(&rig.side[0].send_cq));
		assert_true(urdma_eh_counter(rig.side[1].eh, URDMA_CNT_TX_NAK_RNR) > 0);
		/* a WQE of another SRQ does not help; a request of another QP that needs no WQE
		 * goes on */
		post_recvs(1, 1, 1);
		run_for(20000);
		assert_false(urdma_eh_cq_ready(&rig.side[0].send_cq));
		post(1, URDMA_WR_SEND, RIG_SRQN(1), 0, 100);
		assert_int_equal(next_send(0).status, 0);
		rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT), "receive CQE");
		assert_int_equal(cqe.srqn, RIG_SRQN(1));
		take_back(1, 1, cqe.wqe);
		post(1, URDMA_WR_WRITE, RIG_SRQN(0), mr_of(1, 0)->key, 100);
		assert_int_equal(next_send(0).status, 0);
		post_recvs(1, 0, 1);
		assert_int_equal(next_send(0).status, 0);
		rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT), "receive CQE");
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.srqn, RIG_SRQN(0));
		assert_int_equal(cqe.length, 3000);
		take_back(1, 0, cqe.wqe);
	}
	end();
}

/* SEND with invalidate: a key that a QP of the other direction has registered. */
static void test_invalidate(void **state)
{
	struct urdma_eh_mr mr;
	struct urdma_eh_cqe cqe;
	struct rig_side *b;

	(void)state;
	begin(&few, 6);
	b = &rig.side[1];
	rig_check(&rig, urdma_eh_create_mr_kind(b->eh, 5, 1, RIG_PD, URDMA_MRK_FAST, &mr), "MR");
	for (unsigned int round = 0; round < 3; round++) {
		assert_int_equal(urdma_eh_put_reg_mr(&b->qp[2], &mr, (uint8_t)(2 + round),
						     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE,
						     target(0, 0), slot, (uintptr_t)target(0, 0),
						     -1, 12, true),
				 0);
		urdma_eh_ring_sq(&b->qp[2]);
		assert_int_equal(next_send(1).status, 0);
		post(0, URDMA_WR_WRITE, RIG_SRQN(0), mr.key, 100);
		assert_int_equal(next_send(0).status, 0);
		post_recvs(1, 0, 1);
		post(0, URDMA_WR_SEND_INV, RIG_SRQN(0), mr.key, 2000);
		assert_int_equal(next_send(0).status, 0);
		rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT), "receive CQE");
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.opcode, URDMA_WR_SEND_INV);
		assert_true(cqe.has_inv && cqe.xrc);
		assert_int_equal(cqe.imm, mr.key);
		take_back(1, 0, cqe.wqe);
		post(0, URDMA_WR_WRITE, RIG_SRQN(0), mr.key, 100);
		assert_int_equal(next_send(0).status, URDMA_WC_REM_ACCESS_ERR);
		wait_state(&b->qp[0], URDMA_QPS_ERR);
		assert_int_equal(events(1, URDMA_EV_QP_ACCESS_ERR, RIG_QPN(0)), 1);
		revive(0);
	}
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	end();
}

/* A message of 1 MB, of which a part has arrived. */
static const struct plan big = PLAN("a long message", 2, 2, 3, 3, 4000, 1u << 20);

static void half_a_message(void)
{
	uint64_t limit = urdma_cosim_now(rig.cosim) + LIMIT;
	const uint8_t *middle;

	post_recvs(1, 0, 1);
	post_recvs(1, 1, 2);
	/* the oldest place */
	middle = place_buffer(1, 0, 0) + (1u << 19);
	for (unsigned int place = 0; place < 8; place++)
		if (shared[1][0].owned[place])
			middle = place_buffer(1, 0, place) + (1u << 19);
	memset(source(0, 0), 0x11, slot);
	post(0, URDMA_WR_SEND, RIG_SRQN(0), 0, 1u << 20);
	while (*middle == PATTERN) {
		assert_true(urdma_cosim_now(rig.cosim) < limit);
		run_for(500);
	}
}

/* The SRQ is destroyed in the middle of a message, and may be made again: the QP goes to ERR, and
 * no CQE comes. */
static void destroyed(bool again)
{
	struct urdma_eh_cqe cqe;

	begin(&big, 7);
	half_a_message();
	assert_int_equal(urdma_eh_destroy_srq(&shared[1][0].srq), 0);
	memset(shared[1][0].owned, 0, (1u << plan->log_srq) * sizeof(bool));
	shared[1][0].taken = 0;
	if (again) {
		make_srq(1, 0, RIG_XRCD);
		post_recvs(1, 0, 1);
	}
	cqe = next_send(0);
	assert_int_equal(cqe.status, URDMA_WC_REM_INV_REQ_ERR);
	wait_state(&rig.side[1].qp[0], URDMA_QPS_ERR);
	assert_int_equal(events(1, URDMA_EV_QP_REQ_ERR, RIG_QPN(0)), 1);
	no_recv_cqe(1);
	if (!again)
		make_srq(1, 0, RIG_XRCD);
	check_indices();
	revive(0);
	messages(0, 8);
	end();
}

static void test_destroyed(void **state)
{
	(void)state;
	destroyed(false);
}

static void test_destroyed_again(void **state)
{
	(void)state;
	destroyed(true);
}

/* A target in ERR flushes the WQE of its message in progress, and raises no event. */
static void test_flush(void **state)
{
	struct urdma_eh_cqe cqe;

	(void)state;
	begin(&big, 8);
	drop_judge();
	for (unsigned int round = 0; round < 3; round++) {
		half_a_message();
		/* round 1: the SRQ is destroyed first; round 2: and made again */
		if (round) {
			assert_int_equal(urdma_eh_to_err(&rig.side[0].qp[0]), 0);
			run_for(20000);
			assert_int_equal(urdma_eh_destroy_srq(&shared[1][0].srq), 0);
			memset(shared[1][0].owned, 0, (1u << plan->log_srq) * sizeof(bool));
			shared[1][0].taken = 0;
		}
		if (round == 2)
			make_srq(1, 0, RIG_XRCD);
		assert_int_equal(urdma_eh_to_err(&rig.side[1].qp[0]), 0);
		run_for(20000);
		if (!round) {
			rig_check(&rig, urdma_eh_next_cqe(recv_cq(1, 0), &cqe, LIMIT),
				  "receive CQE");
			assert_int_equal(cqe.status, URDMA_WC_FLUSH_ERR);
			assert_true(cqe.xrc && cqe.recv);
			assert_int_equal(cqe.srqn, RIG_SRQN(0));
			assert_int_equal(cqe.qpn, RIG_QPN(0));
			take_back(1, 0, cqe.wqe);
		}
		no_recv_cqe(1);
		no_events();
		if (!round)
			assert_int_equal(urdma_eh_to_err(&rig.side[0].qp[0]), 0);
		if (round == 1)
			make_srq(1, 0, RIG_XRCD);
		check_indices();
		revive(0);
		messages(0, 8);
	}
	end();
}

/* An initiator in ERR flushes in order; what is posted then is flushed, too. */
static void test_initiator_err(void **state)
{
	(void)state;
	begin(&few, 9);
	drop_judge();
	post(0, URDMA_WR_SEND, RIG_SRQN(0), 0, 100); /* waits: RNR */
	for (unsigned int i = 0; i < 5; i++)
		post(0, URDMA_WR_WRITE, RIG_SRQN(i % 4), mr_of(1, i)->key, 1000);
	run_for(5000);
	assert_int_equal(urdma_eh_to_err(&rig.side[0].qp[0]), 0);
	for (unsigned int i = 0; i < 3; i++)
		post(0, URDMA_WR_READ, RIG_SRQN(i % 4), mr_of(1, i)->key, 1000);
	for (unsigned int i = 0; i < 9; i++) {
		struct urdma_eh_cqe cqe = next_send(0);

		assert_int_equal(cqe.status, URDMA_WC_FLUSH_ERR);
		assert_int_equal(cqe.wqe, i);
	}
	no_recv_cqe(1);
	revive(0);
	messages(0, 16);
	end();
}

/* Doorbells of queues that an XRC QP does not have are handled like those of a foreign object. */
static void test_doorbells(void **state)
{
	(void)state;
	begin(&few, 10);
	for (unsigned int q = 0; q < plan->qps; q++) {
		for (unsigned int n = 0; n < 2; n++) {
			struct urdma_eh_qp *qp = &rig.side[n].qp[q];
			uint64_t dropped = urdma_eh_counter(qp->eh, URDMA_CNT_DB_OWNER);
			bool ini = rig_sends(&rig, n, q);
			uint64_t w =
				URDMA_SET(URDMA_DBW_OBJ, qp->qpn) | URDMA_SET(URDMA_DBW_INDEX, 1);

			urdma_eh_doorbell(qp->eh, RIG_DB_PAGE, URDMA_DB_RQ, w);
			if (!ini)
				urdma_eh_doorbell(qp->eh, RIG_DB_PAGE, URDMA_DB_SQ, w);
			run_for(2000);
			assert_int_equal(urdma_eh_counter(qp->eh, URDMA_CNT_DB_OWNER),
					 dropped + (ini ? 1 : 2));
			assert_int_equal(rig_qp_state(qp), URDMA_QPS_RTS);
		}
		messages(q, 8);
	}
	end();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest others[] = {
		{ "refused", test_refused, NULL, NULL, NULL },
		{ "protection domains", test_pd, NULL, NULL, NULL },
		{ "limit", test_limit, NULL, NULL, NULL },
		{ "RNR", test_rnr, NULL, NULL, NULL },
		{ "invalidate", test_invalidate, NULL, NULL, NULL },
		{ "an SRQ is destroyed in a message", test_destroyed, NULL, NULL, NULL },
		{ "an SRQ is made anew in a message", test_destroyed_again, NULL, NULL, NULL },
		{ "flush", test_flush, NULL, NULL, NULL },
		{ "an initiator in ERR", test_initiator_err, NULL, NULL, NULL },
		{ "doorbells", test_doorbells, NULL, NULL, NULL },
	};
	struct CMUnitTest test[COUNT(plans) + COUNT(others)];
	size_t n = 0;
	int ret;

	for (size_t i = 0; i < COUNT(plans); i++)
		if (rig_wanted(plans[i].name, argc - 1, argv + 1))
			test[n++] = (struct CMUnitTest){
				.name = plans[i].name,
				.test_func = test_traffic,
				.initial_state = (void *)(uintptr_t)&plans[i],
			};
	for (size_t i = 0; i < COUNT(others); i++)
		if (rig_wanted(others[i].name, argc - 1, argv + 1))
			test[n++] = others[i];
	ret = _cmocka_run_group_tests("engine/xrc", test, n, NULL, NULL);
	if (running) {
		drop_judge();
		rig_abandon(&rig);
		forget();
	}
	return ret;
}
