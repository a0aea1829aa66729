// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "meter.h"

#define POLL	  64u
#define QKEY	  0x1234567u
#define MOST_SGES 16u

/* One end of all connections: its QPs are numbered from that of qp[0] on. */
struct end {
	struct rig_side *side;
	struct urdma_eh_qp *qp;
	const struct urdma_eh_mr *dm; /* the region of its memory, if that is device memory */
};

/* Messages in one direction. */
struct flow {
	struct end from, to;
	size_t at;	      /* offset of its part, in the memory of both ends */
	unsigned int *posted; /* of each QP */
	unsigned int *done;
	unsigned int *taken; /* receive WQEs that are done and not yet posted again */
	unsigned int under_way;
	struct urdma_eh_ah ah; /* UD: the way to the other end */
};

struct run {
	const char *name;
	const struct load *load;
	struct rig rig;
	struct urdma_eh_mr dm[2]; /* all device memory of each side, with addresses from 0 */
	struct flow flow[2];
	unsigned int flows;
	struct meter meter[2];
	/* Loopback passes no port. Its points are CQEs of the receiver. */
	uint64_t received, first_cycle, last_cycle;
};

/* Bytes in front of received data. */
static uint32_t in_front(const struct load *l)
{
	return l->type == URDMA_QPT_UD ? LIMITS_GRH : 0;
}

static size_t slot(const struct load *l)
{
	size_t bytes = in_front(l) + l->len;

	return bytes > URDMA_EMBEDDED_PAGE ? bytes : URDMA_EMBEDDED_PAGE;
}

static unsigned int sges(const struct load *l)
{
	return l->sges ? l->sges : 1;
}

static unsigned int places(const struct load *l)
{
	return l->places ? l->places : 1;
}

/* Bytes that one end of a flow uses. */
static size_t extent(const struct load *l)
{
	return slot(l) * l->qps * places(l);
}

/* Where message m of a QP is, in the buffer or the device memory of an end. */
static size_t offset(const struct run *r, const struct flow *f, const struct end *e, unsigned int q,
		     unsigned int m)
{
	const struct load *l = r->load;
	/* Behind one port both ends have the same memory. */
	size_t half = l->loopback && e == &f->to ? extent(l) : 0;

	return f->at + half + (q * places(l) + m % places(l)) * slot(l);
}

/* The address that WQEs use for it. */
static uint64_t address(const struct run *r, const struct flow *f, const struct end *e,
			unsigned int q, unsigned int m)
{
	return (e->dm ? 0 : (uintptr_t)e->side->buffer) + offset(r, f, e, q, m);
}

static uint32_t key(const struct end *e)
{
	return e->dm ? e->dm->key : e->side->mr.key;
}

/* A message may take any WQE of a shared receive queue, so all messages have the same bytes. */
static uint32_t content(const struct load *l, unsigned int n, unsigned int q)
{
	return 2 * (l->srq ? 0 : q) + n + 1;
}

static unsigned int number_of(const struct end *e, uint32_t qpn)
{
	return qpn - e->qp->qpn;
}

/* ---- posting ------------------------------------------------------------------------------- */

/* The message's memory in equal pieces. */
static void put_sges(const struct load *l, struct urdma_eh_sge *sge, uint64_t at, uint32_t lkey)
{
	for (unsigned int i = 0; i < sges(l); i++)
		sge[i] = (struct urdma_eh_sge){ at + (uint64_t)i * (l->len / sges(l)),
						l->len / sges(l), lkey };
}

static void post_sends(const struct run *r, struct flow *f, unsigned int q)
{
	const struct load *l = r->load;
	struct urdma_eh_qp *qp = &f->from.qp[q];

	for (unsigned int i = 0; i < l->doorbell; i++) {
		unsigned int m = f->posted[q] + i;
		struct urdma_eh_sge sge[MOST_SGES];
		struct urdma_eh_send wr = { .opcode = l->opcode,
					    .signaled = (i + 1) % l->signaled == 0,
					    .raddr = address(r, f, &f->to, q, m),
					    .rkey = key(&f->to),
					    .swap_add = 1,
					    .ah = l->type == URDMA_QPT_UD ? &f->ah : NULL,
					    .dest_qpn = f->to.qp[q].qpn,
					    .srqn = RIG_SRQN(0),
					    .qkey = QKEY,
					    .sge = sge,
					    .n_sge = sges(l) };

		put_sges(l, sge, address(r, f, &f->from, q, m), key(&f->from));
		if (l->inlined) {
			wr.inline_data = f->from.side->buffer + offset(r, f, &f->from, q, m);
			wr.inline_len = l->len;
		}
		bench_must(!urdma_eh_put_send(qp, &wr), "put send");
	}
	urdma_eh_ring_sq(qp);
	f->posted[q] += l->doorbell;
	f->under_way += l->doorbell;
}

static void post_window(const struct run *r, struct flow *f, unsigned int q)
{
	while (f->posted[q] + r->load->doorbell <= f->done[q] + r->load->window)
		post_sends(r, f, q);
}

static void post_srq_recvs(const struct run *r, struct flow *f, unsigned int n)
{
	struct urdma_eh_srq *srq = f->to.side->srq;
	struct urdma_eh_sge sge = { 0, in_front(r->load) + r->load->len, key(&f->to) };

	while (n--) {
		sge.addr = address(r, f, &f->to, srq->free[srq->n_free - 1] % r->load->qps, 0);
		bench_must(urdma_eh_put_srq_recv(srq, &sge, 1) >= 0, "put receive");
	}
	urdma_eh_ring_srq(srq);
}

/* The receiver rings as often as the sender does. */
static void post_recvs(const struct run *r, struct flow *f, unsigned int q, unsigned int n)
{
	struct urdma_eh_qp *qp = &f->to.qp[q];
	struct urdma_eh_sge sge = { address(r, f, &f->to, q, 0), in_front(r->load) + r->load->len,
				    key(&f->to) };

	if (r->load->srq) {
		post_srq_recvs(r, f, n);
		return;
	}
	while (n--)
		bench_must(!urdma_eh_put_recv(qp, &sge, 1), "put receive");
	urdma_eh_ring_rq(qp);
}

/* ---- the run ------------------------------------------------------------------------------- */

static void good(const struct run *r, const struct urdma_eh_cqe *cqe)
{
	if (!cqe->status)
		return;
	fprintf(stderr, "urdma-bench: %s: status %u\n", r->name, cqe->status);
	rig_print_counters(&r->rig);
	exit(2);
}

/* Points of a loopback. */
static void loopback_point(struct run *r, const struct urdma_eh_cqe *cqe)
{
	if (r->received == r->load->warm)
		r->first_cycle = cqe->cycles;
	if (r->received == r->load->warm + r->load->count)
		r->last_cycle = cqe->cycles;
	r->received++;
}

/* Whether all counted points have passed. */
static bool measured(const struct run *r)
{
	if (r->load->loopback)
		return r->last_cycle;
	for (unsigned int n = 0; n < r->flows; n++)
		if (!r->meter[n].closed)
			return false;
	return true;
}

/* Polls the CQEs of a flow and posts again. */
static void turn(struct run *r, struct flow *f, bool more)
{
	struct urdma_eh_cqe cqe[POLL];
	unsigned int n;

	while ((n = urdma_eh_poll_cq(&f->to.side->recv_cq, cqe, POLL)))
		for (unsigned int i = 0; i < n; i++) {
			unsigned int q = number_of(&f->to, cqe[i].qpn);

			good(r, &cqe[i]);
			if (r->load->loopback)
				loopback_point(r, &cqe[i]);
			if (r->load->srq)
				urdma_eh_srq_give_back(f->to.side->srq, cqe[i].wqe);
			if (++f->taken[q] < r->load->doorbell)
				continue;
			post_recvs(r, f, q, f->taken[q]);
			f->taken[q] = 0;
		}
	while ((n = urdma_eh_poll_cq(&f->from.side->send_cq, cqe, POLL)))
		for (unsigned int i = 0; i < n; i++) {
			unsigned int q = number_of(&f->from, cqe[i].qpn);

			good(r, &cqe[i]);
			f->done[q] += r->load->signaled;
			f->under_way -= r->load->signaled;
			if (more)
				post_window(r, f, q);
		}
}

static bool something(void *arg)
{
	struct run *r = arg;

	for (unsigned int n = 0; n < r->flows; n++)
		if (urdma_eh_cq_ready(&r->flow[n].from.side->send_cq) ||
		    urdma_eh_cq_ready(&r->flow[n].to.side->recv_cq))
			return true;
	return false;
}

static void drive(struct run *r)
{
	bool more = true;

	for (unsigned int n = 0; n < r->flows; n++)
		for (unsigned int q = 0; q < r->load->qps; q++)
			post_window(r, &r->flow[n], q);
	while (more || r->flow[0].under_way || r->flow[1].under_way) {
		rig_check(&r->rig,
			  urdma_cosim_run_cond(r->rig.cosim, something, r,
					       urdma_cosim_now(r->rig.cosim) + BENCH_LIMIT),
			  r->name);
		if (more && measured(r)) {
			more = false;
			if (r->rig.faults)
				urdma_faults_clear(r->rig.faults);
		}
		for (unsigned int n = 0; n < r->flows; n++)
			turn(r, &r->flow[n], more && !r->load->once);
	}
	bench_settle(&r->rig);
}

/* ---- before and after ---------------------------------------------------------------------- */

static unsigned int log2_up(unsigned int n)
{
	unsigned int log = 0;

	while (1u << log < n)
		log++;
	return log;
}

static bool answered(const struct load *l)
{
	return l->opcode == URDMA_WR_READ || l->opcode == URDMA_WR_ATOMIC_FA;
}

/* A WQE holds its data, or SGEs. */
static unsigned int log_stride(const struct load *l)
{
	unsigned int at =
		l->type == URDMA_QPT_UD ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET;

	return log2_up(at + (l->inlined ? l->len : sges(l) * URDMA_SGE_SIZE));
}

static void configure(const struct load *l, struct rig_config *config)
{
	rig_defaults(config);
	config->cosim.threads = bench_threads();
	if (l->read_latency)
		config->cosim.pcie.latency_ns = l->read_latency;
	config->qps = l->loopback ? 2 * l->qps : l->qps;
	config->loopback = l->loopback;
	config->batch = true;
	config->mtu = l->mtu;
	config->type = l->type;
	config->xrc = l->type == URDMA_QPT_XRC_INI;
	config->conn.qkey = QKEY;
	config->log_stride = log_stride(l);
	config->log_rq_stride = 6;
	config->buffer = 2 * extent(l);
	/*
	 * Twice the window: a receive WQE is posted again a little later than its SEND completes.
	 */
	config->log_sq = log2_up(2 * l->window);
	config->log_rq = l->opcode == URDMA_WR_SEND ? config->log_sq : 6;
	config->srqs = l->srq;
	config->log_srq = log2_up(2 * l->window * l->qps);
	config->log_cqe = log2_up(2 * l->window * l->qps);
	if (config->log_cqe < 10)
		config->log_cqe = 10;
	config->memory.memory = (64u << 20) + 2 * config->buffer + ((size_t)config->qps << 16);
	config->faults = l->loss > 0;
	/* 17 ms: quick recovery from losses; 67 ms is the value of perftest */
	config->conn.timeout = config->faults ? 12 : 14;
}

static void put(const struct end *e, size_t at, const uint8_t *p, size_t len)
{
	if (e->dm)
		urdma_eh_dm_write(e->side->eh, at, p, len);
	else
		memcpy(e->side->buffer + at, p, len);
}

/* Sources hold the messages' content, targets zeros; ATOMICs add to 0. */
static void fill(const struct run *r, const struct flow *f, unsigned int n)
{
	const struct load *l = r->load;
	const struct end *data = answered(l) ? &f->to : &f->from;
	const struct end *target = answered(l) ? &f->from : &f->to;
	uint8_t *zeros = calloc(1, l->len), *p = calloc(1, l->len);

	bench_must(zeros && p, "no memory");
	for (unsigned int i = 0; i < l->qps * places(l); i++) {
		unsigned int q = i / places(l), m = i % places(l);

		if (l->opcode != URDMA_WR_ATOMIC_FA)
			rig_fill(p, l->len, content(l, n, q));
		put(data, offset(r, f, data, q, m), p, l->len);
		put(target, offset(r, f, target, q, m), zeros, l->len);
	}
	free(zeros);
	free(p);
}

static void begin_flow(struct run *r, unsigned int n)
{
	const struct load *l = r->load;
	struct rig_side *from = &r->rig.side[n], *to = &r->rig.side[l->loopback ? n : !n];
	struct flow *f = &r->flow[n];

	f->from = (struct end){ from, from->qp, l->requester_dm ? &r->dm[n] : NULL };
	f->to = (struct end){ to, to->qp + (l->loopback ? l->qps : 0),
			      l->responder_dm ? &r->dm[to - r->rig.side] : NULL };
	f->at = n * extent(l);
	bench_must(!urdma_eh_ah_to(to->eh, false, &f->ah), "no way to the other end");
	f->posted = calloc(l->qps, sizeof(*f->posted));
	f->done = calloc(l->qps, sizeof(*f->done));
	f->taken = calloc(l->qps, sizeof(*f->taken));
	bench_must(f->posted && f->done && f->taken, "no memory");
	fill(r, f, n);
	for (unsigned int q = 0; q < l->qps && l->opcode == URDMA_WR_SEND; q++)
		post_recvs(r, f, q, 2 * l->window - 1);
	meter_start(&r->meter[n], urdma_cosim_port(r->rig.cosim, answered(l) ? n : !n), METER_RDMA,
		    l->warm, l->count);
}

static void begin(struct run *r)
{
	struct rig_config config;

	configure(r->load, &config);
	rig_start(&r->rig, &config);
	for (unsigned int n = 0; n < 2 && (r->load->requester_dm || r->load->responder_dm); n++) {
		bench_dm(&r->rig, n, &r->dm[n]);
		bench_must(config.buffer <= r->dm[n].length, "device memory is too small");
	}
	r->flows = r->load->both_ways ? 2 : 1;
	for (unsigned int n = 0; n < r->flows; n++)
		begin_flow(r, n);
	bench_settle(&r->rig);
	if (r->load->loss > 0)
		rig_fault(&r->rig, "drop,p=%g", r->load->loss);
}

/* Contents of the target of message m of a QP. `copy` is for device memory. */
static const uint8_t *brought(const struct run *r, const struct flow *f, const struct end *e,
			      unsigned int q, unsigned int m, uint8_t *copy)
{
	size_t at = offset(r, f, e, q, m);

	if (!e->dm)
		return e->side->buffer + at;
	bench_must(!urdma_eh_dm_read(e->side->eh, at, copy, in_front(r->load) + r->load->len),
		   "device memory cannot be read");
	return copy;
}

/* Checks in memory that every message arrived, and an ATOMIC not more than once. */
static void check_memory(const struct run *r, const struct flow *f, unsigned int n)
{
	const struct load *l = r->load;
	const struct end *e = l->opcode == URDMA_WR_READ ? &f->from : &f->to;
	uint8_t *copy = malloc(slot(l));

	bench_must(copy, "no memory");
	for (unsigned int i = 0; i < l->qps * places(l); i++) {
		unsigned int q = i / places(l), m = i % places(l);
		const uint8_t *p;
		uint64_t v;

		if (m >= f->posted[q])
			continue;

		p = brought(r, f, e, q, m, copy);
		memcpy(&v, p, 8);
		bench_must(l->opcode == URDMA_WR_ATOMIC_FA ? v == f->posted[q]
							   : rig_verify(p + in_front(l), l->len,
									content(l, n, q)) == l->len,
			   "memory is not as it should be");
	}
	free(copy);
}

static void count_losses(const struct run *r, struct losses *losses)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eh *eh = r->rig.side[n].eh;

		losses->drops += urdma_eh_counter(eh, URDMA_CNT_RX_DROP_FULL) +
				 urdma_eh_counter(eh, URDMA_CNT_RX_DROP_NO_WQE) +
				 urdma_eh_counter(eh, URDMA_CNT_RX_DROP_UNREL);
		losses->timeouts += urdma_eh_counter(eh, URDMA_CNT_TX_TIMEOUT);
		losses->retrans += urdma_eh_counter(eh, URDMA_CNT_TX_RETRANS);
	}
}

static void figures(const struct run *r, struct load_result *result)
{
	const struct load *l = r->load;

	if (l->loopback) {
		double ns = (double)(r->last_cycle - r->first_cycle) * CYCLE_NS;

		result->messages = (double)l->count * 1000 / ns;
		result->goodput = (double)l->count * l->len * 8 / ns;
		return;
	}
	for (unsigned int n = 0; n < r->flows; n++) {
		double frames = meter_frames(&r->meter[n], METER_RDMA);

		if (n && frames >= result->messages)
			continue;
		result->messages = frames;
		result->goodput = meter_goodput(&r->meter[n], METER_RDMA);
	}
}

void load_run(const char *name, const struct load *l, struct load_result *result)
{
	struct run *r = calloc(1, sizeof(*r));
	struct limits_load limits = { .type = l->type,
				      .opcode = l->opcode,
				      .len = l->len,
				      .sges = l->sges,
				      .mtu = 128u << l->mtu,
				      .stride = 1u << log_stride(l),
				      .ahead = (double)l->ahead * l->qps / (double)l->count,
				      .recv_stride = 64,
				      .qps = l->qps,
				      .window = l->window,
				      .signaled = l->signaled,
				      .doorbell = l->doorbell,
				      .both_ways = l->both_ways,
				      .loopback = l->loopback,
				      .srq = l->srq,
				      .inlined = l->inlined,
				      .requester_dm = l->requester_dm,
				      .responder_dm = l->responder_dm,
				      .loss = l->loss / 100 };

	struct limits_model model;

	bench_must(r && sges(l) <= MOST_SGES, "no memory, or too many SGEs");
	r->name = name;
	r->load = l;
	memset(result, 0, sizeof(*result));
	begin(r);
	drive(r);
	for (unsigned int n = 0; n < r->flows; n++)
		check_memory(r, &r->flow[n], n);
	figures(r, result);
	limits_model_of(&r->rig.config.cosim, &model);
	result->limit = limits_messages(&model, &limits);
	if (!r->rig.faults)
		count_losses(r, &result->losses);
	bench_account(&r->rig);
	rig_abandon(&r->rig);
	for (unsigned int n = 0; n < r->flows; n++) {
		free(r->flow[n].posted);
		free(r->flow[n].done);
		free(r->flow[n].taken);
	}
	free(r);
}
