// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of what a storage target does to its host. For each request the host registers a region
 * (REG_MR), the target WRITEs the data into it, and a SEND with invalidate answers and makes the
 * key invalid. Each side posts the next step when it sees the CQE of the step before. The host's
 * request, which would be a SEND, is passed on without one.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "meter.h"

#define POLL	 64u
#define REGIONS	 1000u /* index of the first one */
#define RESPONSE 16u   /* bytes of an answer */

struct storage_load {
	const char *name;
	unsigned int qps, depth; /* requests of a QP under way */
	unsigned int mtu;
	uint32_t len;		  /* of the WRITE; 0: there is none */
	uint32_t answer;	  /* of the SEND with invalidate */
	unsigned int warm, count; /* answers before the measurement, and in it */
};

/* A request of a QP: its region, and the place of its data on both sides. */
struct request {
	struct urdma_eh_mr mr;
	unsigned int round;
};

struct storage {
	const struct storage_load *load;
	struct rig rig;
	struct request *request; /* depth of each QP */
	unsigned int *order;	 /* of each QP: its requests as they were registered, a ring */
	unsigned int *registered, *answered;
	bool more;
	unsigned int under_way;
	struct meter meter; /* of what arrives at the host; points are answers */
};

/* Answers lie after the data of all requests. */
static size_t at(const struct storage *s, unsigned int n)
{
	const struct storage_load *l = s->load;
	size_t len = l->len ? l->len : URDMA_EMBEDDED_PAGE;

	return len * n;
}

static size_t answers(const struct storage *s)
{
	return at(s, s->load->qps * s->load->depth);
}

static void post_recv(struct storage *s, unsigned int q)
{
	struct rig_side *host = &s->rig.side[1];
	struct urdma_eh_sge sge = { (uintptr_t)host->buffer + answers(s), s->load->answer,
				    host->mr.key };

	bench_must(!urdma_eh_post_recv(&host->qp[q], &sge, 1), "post receive");
}

/* The host begins request n. The region's addresses begin at 0. */
static void post_reg(struct storage *s, unsigned int n)
{
	const struct storage_load *l = s->load;
	struct rig_side *host = &s->rig.side[1];
	struct request *r = &s->request[n];
	unsigned int q = n / l->depth;
	size_t len = l->len ? l->len : URDMA_EMBEDDED_PAGE;

	bench_must(!urdma_eh_put_reg_mr(&host->qp[q], &r->mr, (uint8_t)++r->round,
					URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE,
					host->buffer + at(s, n), len, 0, 1, 12, true),
		   "post REG_MR");
	urdma_eh_ring_sq(&host->qp[q]);
	s->order[q * l->depth + s->registered[q]++ % l->depth] = n;
	s->under_way++;
}

/* The target answers request n. */
static void post_answer(struct storage *s, unsigned int n)
{
	const struct storage_load *l = s->load;
	struct rig_side *target = &s->rig.side[0];
	struct urdma_eh_qp *qp = &target->qp[n / l->depth];
	struct urdma_eh_sge sge = { (uintptr_t)target->buffer + at(s, n), l->len, target->mr.key };
	struct urdma_eh_sge last = { (uintptr_t)target->buffer + answers(s), l->answer,
				     target->mr.key };
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_WRITE, .rkey = s->request[n].mr.key, .sge = &sge, .n_sge = 1
	};
	struct urdma_eh_send inv = { .opcode = URDMA_WR_SEND_INV,
				     .signaled = true,
				     .key = s->request[n].mr.key,
				     .sge = &last,
				     .n_sge = 1 };

	if (l->len)
		bench_must(!urdma_eh_put_send(qp, &wr), "put a WRITE");
	bench_must(!urdma_eh_put_send(qp, &inv), "put a SEND with invalidate");
	urdma_eh_ring_sq(qp);
}

static bool something(void *arg)
{
	struct storage *s = arg;

	return urdma_eh_cq_ready(&s->rig.side[0].send_cq) ||
	       urdma_eh_cq_ready(&s->rig.side[1].send_cq) ||
	       urdma_eh_cq_ready(&s->rig.side[1].recv_cq);
}

/* A region is registered: CQEs of a QP come in the order of its WQEs. */
static void on_registered(struct storage *s, const struct urdma_eh_cqe *cqe)
{
	const struct storage_load *l = s->load;
	unsigned int q = cqe->qpn - s->rig.side[1].qp->qpn;

	post_answer(s, s->order[q * l->depth + s->answered[q]++ % l->depth]);
}

/* An answer has arrived: it names the key, so the region can be registered again. */
static void on_answer(struct storage *s, const struct urdma_eh_cqe *cqe)
{
	const struct storage_load *l = s->load;
	unsigned int q = cqe->qpn - s->rig.side[1].qp->qpn;
	unsigned int n = (cqe->imm >> 8) - REGIONS;

	bench_must(cqe->has_inv && n / l->depth == q && cqe->imm == s->request[n].mr.key,
		   "an answer names another key");
	if (l->len)
		bench_must(rig_verify(s->rig.side[1].buffer + at(s, n), l->len, n) == l->len,
			   "memory is not as it should be");
	s->under_way--;
	s->more = s->more && !s->meter.closed;
	post_recv(s, q);
	if (s->more)
		post_reg(s, n);
}

static void poll(struct storage *s, struct urdma_eh_cq *cq,
		 void (*on)(struct storage *s, const struct urdma_eh_cqe *cqe))
{
	struct urdma_eh_cqe cqe[POLL];
	unsigned int n;

	while ((n = urdma_eh_poll_cq(cq, cqe, POLL)))
		for (unsigned int i = 0; i < n; i++) {
			if (cqe[i].status) {
				fprintf(stderr, "urdma-bench: %s: status %u\n", s->load->name,
					cqe[i].status);
				rig_print_counters(&s->rig);
				exit(2);
			}
			if (on)
				on(s, &cqe[i]);
		}
}

static void begin(struct storage *s)
{
	const struct storage_load *l = s->load;
	unsigned int requests = l->qps * l->depth;
	struct rig_config config;

	rig_defaults(&config);
	config.cosim.threads = bench_threads();
	config.qps = l->qps;
	config.batch = true;
	config.mtu = l->mtu;
	config.priv = true;
	config.buffer = answers(s) + URDMA_EMBEDDED_PAGE;
	config.log_cqe = 12;
	config.conn.timeout = 14;
	config.memory.memory = (64u << 20) + 2 * config.buffer + ((size_t)config.qps << 16);
	rig_start(&s->rig, &config);
	s->request = calloc(requests, sizeof(*s->request));
	s->order = calloc(requests, sizeof(*s->order));
	s->registered = calloc(l->qps, sizeof(*s->registered));
	s->answered = calloc(l->qps, sizeof(*s->answered));
	bench_must(s->request && s->order && s->registered && s->answered, "no memory");
	for (unsigned int n = 0; n < requests; n++) {
		bench_must(!urdma_eh_create_mr_kind(s->rig.side[1].eh, REGIONS + n, 0, RIG_PD,
						    URDMA_MRK_FAST, &s->request[n].mr),
			   "a region");
		rig_fill(s->rig.side[0].buffer + at(s, n), l->len, n);
		post_recv(s, n / l->depth);
	}
	bench_settle(&s->rig);
	meter_start(&s->meter, urdma_cosim_port(s->rig.cosim, 1), METER_INV, l->warm, l->count);
	s->more = true;
	for (unsigned int i = 0; i < requests; i++)
		post_reg(s, i % l->qps * l->depth + i / l->qps);
}

static void count_losses(struct storage *s, struct losses *losses)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eh *eh = s->rig.side[n].eh;

		losses->drops += urdma_eh_counter(eh, URDMA_CNT_RX_DROP_FULL);
		losses->timeouts += urdma_eh_counter(eh, URDMA_CNT_TX_TIMEOUT);
		losses->retrans += urdma_eh_counter(eh, URDMA_CNT_TX_RETRANS);
	}
}

static void storage_run(const struct storage_load *l)
{
	struct limits_load limits = { .opcode = l->len ? URDMA_WR_WRITE : URDMA_WR_SEND_INV,
				      .len = l->len ? l->len : l->answer,
				      .answer = l->len ? l->answer : 0,
				      .registered = true,
				      .mtu = 128u << l->mtu,
				      .stride = 64,
				      .recv_stride = 64,
				      .qps = l->qps,
				      .window = l->depth,
				      .signaled = 1,
				      .doorbell = 1 };
	struct storage *s = calloc(1, sizeof(*s));
	struct limit limit;
	struct row *row;

	bench_must(s, "no memory");
	s->load = l;
	begin(s);
	while (s->under_way) {
		rig_check(&s->rig,
			  urdma_cosim_run_cond(s->rig.cosim, something, s,
					       urdma_cosim_now(s->rig.cosim) + BENCH_LIMIT),
			  l->name);
		poll(s, &s->rig.side[1].send_cq, on_registered);
		poll(s, &s->rig.side[1].recv_cq, on_answer);
		poll(s, &s->rig.side[0].send_cq, NULL);
	}
	bench_settle(&s->rig);
	limit = limits_messages(bench_model, &limits);
	if (l->len) {
		/* Between two answers there may be the data of a few requests more, or fewer. */
		uint64_t data = s->meter.of[METER_RDMA].payload,
			 whole = l->count * (uint64_t)l->len;

		limit.value *= l->len * 8.0 / 1000;
		row = table_add(&bench_table, l->name,
				(double)(data < whole ? data : whole) * 8 / meter_ns(&s->meter),
				"Gb/s", limit);
	} else {
		row = table_add(&bench_table, l->name, meter_frames(&s->meter, METER_INV),
				"million/s", limit);
	}
	count_losses(s, &row->losses);
	bench_account(&s->rig);
	rig_abandon(&s->rig);
	free(s->request);
	free(s->order);
	free(s->registered);
	free(s->answered);
	free(s);
}

void bench_storage(void)
{
	static const struct storage_load loads[] = {
		/*
		 * PCIe takes longer than the wire: no more under way than its TLPs have room for.
		 */
		{ "WRITE 4 KB, SEND_INV, MTU 4096, 8 QPs", 8, 3, 5, 4096, RESPONSE, 512, 2048 },
		{ "WRITE 4 KB, SEND_INV, MTU 1024, 8 QPs", 8, 16, 3, 4096, RESPONSE, 512, 2048 },
		{ "WRITE 64 KB, SEND_INV, MTU 4096, 4 QPs", 4, 8, 5, 65536, RESPONSE, 64, 256 },
		{ "WRITE 64 KB, SEND_INV, MTU 1024, 4 QPs", 4, 8, 3, 65536, RESPONSE, 64, 256 },
		{ "SEND_INV 64 bytes, 8 QPs", 8, 32, 5, 0, 64, 1024, 4096 },
	};

	for (unsigned int i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		if (bench_wanted(loads[i].name))
			storage_run(&loads[i]);
}
