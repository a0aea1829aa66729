// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of one message through idle NICs: the cycles of each part of its way, and round trips. The
 * limit of a part is the least that any NIC needs: a register, the beats of the frame that it has
 * to check first, the host's answer to a DMA read. The design's budget is what a row is judged by.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

#define BYTES	   64u	/* of a message */
#define WQE	   64u	/* bytes of a WQE */
#define WQE_INLINE 128u /* of one with the message in it */
#define BUDGET	   75.0 /* cycles, of design.md */

/* ---- taps on the ports of the model -------------------------------------------------------- */

enum tap {
	TAP_DOORBELL, /* CQ: the doorbell's TLP */
	TAP_READ,     /* RQ: a read request */
	TAP_ANSWER,   /* RC: last beat of a completion */
	TAP_WRITE,    /* RQ: first beat of a write */
	TAP_TX,	      /* first beat of a frame to the MAC */
	TAP_RX,	      /* first beat of a frame from the MAC */
	TAPS,
};

#define TAP_N 16u

struct probe {
	void *model;
	bool rq_open, tx_open, rx_open;
};

static struct {
	bool on;
	struct urdma_cosim *cosim;
	uint64_t at[2][TAPS][TAP_N];
	unsigned int n[2][TAPS];
	struct probe probe[2];
} taps;

static void *probe_create(const char *name, unsigned int index)
{
	taps.probe[index] = (struct probe){ .model = urdma_model_verilated.create(name, index) };
	return taps.probe[index].model ? &taps.probe[index] : NULL;
}

static void probe_destroy(void *model)
{
	struct probe *p = model;

	urdma_model_verilated.destroy(p->model);
}

static void tap(struct probe *p, enum tap what)
{
	unsigned int nic = (unsigned int)(p - taps.probe), *n = &taps.n[nic][what];

	if (taps.on && *n < TAP_N)
		taps.at[nic][what][(*n)++] = urdma_cosim_now(taps.cosim);
}

static void probe_cycle(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out)
{
	struct probe *p = model;

	urdma_model_verilated.cycle(p->model, in, out);
	if (in->cq.valid && out->cq_ready)
		tap(p, TAP_DOORBELL);
	if (out->rq.valid && in->rq_ready) {
		/* request type in bits 78:75 of the descriptor: 0 read, 1 write */
		if (!p->rq_open)
			tap(p, (out->rq.data[2] >> 11 & 0xf) ? TAP_WRITE : TAP_READ);
		p->rq_open = !out->rq.last;
	}
	if (in->rc.valid && out->rc_ready && in->rc.last)
		tap(p, TAP_ANSWER);
	if (out->tx.valid && in->tx_ready) {
		if (!p->tx_open)
			tap(p, TAP_TX);
		p->tx_open = !out->tx.last;
	}
	if (in->rx.valid) {
		if (!p->rx_open)
			tap(p, TAP_RX);
		p->rx_open = !in->rx.last;
	}
}

static void taps_clear(void)
{
	memset(taps.at, 0, sizeof(taps.at));
	memset(taps.n, 0, sizeof(taps.n));
}

/* Cycles from one event to another, each the i-th of its kind at a NIC. */
#define SPAN(nic, from, i, to, k) ((double)(taps.at[nic][to][k] - taps.at[nic][from][i]))
#define FIRST(nic, from, to)	  SPAN(nic, from, 0, to, 0)

static const struct urdma_model_ops probe_ops = { probe_create, probe_destroy, probe_cycle };

/* ---- limits -------------------------------------------------------------------------------- */

/* From one port of the NIC to another: every output comes out of a register. */
#define THROUGH 1.0

/* Received frames are checked to their last beat before anything else. */
static double checked(uint32_t ext, uint32_t payload)
{
	return limits_beats(limits_roce(ext, payload)) - 1 + THROUGH;
}

static double cycles(double ns)
{
	return ns / CYCLE_NS;
}

static struct row *part(const char *name, double value, double limit, const char *by)
{
	struct row *row =
		table_add(&bench_table, name, value, "cycles", (struct limit){ limit, by });

	row->less = true;
	return row;
}

/* A part of the NIC, with its budget. */
static void budgeted(const char *name, double value, double limit, const char *by)
{
	part(name, value, limit, by)->budget = BUDGET;
}

static void whole(const char *name, double value, double limit)
{
	table_add(&bench_table, name, value, "ns", (struct limit){ limit, "wire and PCIe" })->less =
		true;
}

/* ---- messages ------------------------------------------------------------------------------ */

static uint8_t payload[BYTES];

/* 64 bytes, or 8 of an ATOMIC. */
struct message {
	unsigned int opcode;
	bool inlined;			 /* SEND, WRITE: the data are in the WQE */
	bool requester_dm, responder_dm; /* that side's data are in device memory */
};

/* Two NICs, and a region of the device memory of each. */
struct pair {
	struct rig rig;
	struct urdma_eh_mr dm[2];
};

static struct urdma_eh_sge memory(const struct pair *pair, unsigned int side, bool dm, uint32_t len)
{
	const struct rig_side *s = &pair->rig.side[side];

	if (dm)
		return (struct urdma_eh_sge){ 0, len, pair->dm[side].key };
	return (struct urdma_eh_sge){ (uintptr_t)s->buffer, len, s->mr.key };
}

static void post_one(struct pair *pair, unsigned int from, const struct message *m)
{
	uint32_t len = m->opcode == URDMA_WR_ATOMIC_FA ? 8 : BYTES;
	struct urdma_eh_sge sge = memory(pair, from, m->requester_dm, len);
	struct urdma_eh_sge remote = memory(pair, !from, m->responder_dm, len);
	struct urdma_eh_send wr = { .opcode = m->opcode,
				    .signaled = m->opcode != URDMA_WR_SEND,
				    .raddr = remote.addr,
				    .rkey = remote.lkey,
				    .swap_add = 1 };

	if (m->inlined) {
		wr.inline_data = payload;
		wr.inline_len = sizeof(payload);
	} else {
		wr.sge = &sge;
		wr.n_sge = 1;
	}
	bench_must(!urdma_eh_post_send(&pair->rig.side[from].qp[0], &wr), "post send");
}

static void post_recv(struct pair *pair, unsigned int at, const struct message *m)
{
	struct urdma_eh_sge sge = memory(pair, at, m->responder_dm, BYTES);

	bench_must(!urdma_eh_post_recv(&pair->rig.side[at].qp[0], &sge, 1), "post receive");
}

static void begin(struct pair *pair, const struct message *m, const struct urdma_model_ops *model)
{
	struct rig_config config;

	rig_defaults(&config);
	config.log_stride = 7;
	config.model = model;
	rig_start(&pair->rig, &config);
	for (unsigned int n = 0; n < 2 && (m->requester_dm || m->responder_dm); n++)
		bench_dm(&pair->rig, n, &pair->dm[n]);
}

static void end(struct pair *pair, const struct message *m)
{
	bench_account(&pair->rig);
	for (unsigned int n = 0; n < 2 && (m->requester_dm || m->responder_dm); n++)
		bench_must(!urdma_eh_destroy_mr(&pair->dm[n]), "region of device memory");
	rig_stop(&pair->rig);
}

/*
 * Sends one message through two idle NICs whose page tables are on chip: the fourth of its kind.
 * The taps hold its events, first to last, until taps_clear().
 */
static void one_message(const struct message *m)
{
	bool send = m->opcode == URDMA_WR_SEND;
	struct urdma_eh_cqe cqe;
	struct pair pair;
	struct rig *rig = &pair.rig;

	begin(&pair, m, &probe_ops);
	taps.cosim = rig->cosim;
	for (unsigned int i = 0; i < 4; i++) {
		if (send)
			post_recv(&pair, 1, m);
		bench_settle(rig);
		taps.on = i == 3;
		post_one(&pair, 0, m);
		bench_settle(rig);
		bench_must(urdma_eh_poll_cq(send ? &rig->side[1].recv_cq : &rig->side[0].send_cq,
					    &cqe, 1) == 1 &&
				   !cqe.status,
			   "latency");
		bench_settle(rig);
	}
	taps.on = false;
	end(&pair, m);
}

/* Doorbell to first beat, without the host's part. */
static double transmit(void)
{
	return FIRST(0, TAP_DOORBELL, TAP_TX) - FIRST(0, TAP_READ, TAP_ANSWER);
}

static void latency_send(void)
{
	const struct message inlined = { .opcode = URDMA_WR_SEND, .inlined = true };
	double wqe = cycles(limits_dma_read(bench_model, WQE));

	one_message(&inlined);
	bench_must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] && taps.n[0][TAP_ANSWER] &&
			   taps.n[0][TAP_TX],
		   "the sender's taps");
	bench_must(taps.n[1][TAP_RX] && taps.n[1][TAP_READ] && taps.n[1][TAP_ANSWER] &&
			   taps.n[1][TAP_WRITE] >= 2,
		   "the receiver's taps");

	part("transmit: doorbell to WQE read", FIRST(0, TAP_DOORBELL, TAP_READ), THROUGH,
	     "register");
	part("transmit: WQE read, PCIe", FIRST(0, TAP_READ, TAP_ANSWER), wqe, "PCIe");
	part("transmit: WQE to first beat at the MAC", FIRST(0, TAP_ANSWER, TAP_TX), THROUGH,
	     "register");
	budgeted("transmit: NIC without PCIe", transmit(), 2 * THROUGH, "registers");
	part("receive: first beat to WQE read", FIRST(1, TAP_RX, TAP_READ), checked(0, BYTES),
	     "frame");
	part("receive: WQE read, PCIe", FIRST(1, TAP_READ, TAP_ANSWER), wqe, "PCIe");
	part("receive: WQE to DMA write", FIRST(1, TAP_ANSWER, TAP_WRITE), THROUGH, "register");
	budgeted("receive: NIC without PCIe",
		 FIRST(1, TAP_RX, TAP_WRITE) - FIRST(1, TAP_READ, TAP_ANSWER),
		 checked(0, BYTES) + THROUGH, "frame");
	/* the data's TLP takes two beats of RQ in front of the CQE's */
	part("receive: DMA write to CQE", SPAN(1, TAP_WRITE, 0, TAP_WRITE, 1), 2, "PCIe, RQ beats");
	taps_clear();
}

/* A WRITE into the responder's buffer. Its ACK need not wait for the DMA writes. */
static void whole_write(const char *name, const struct message *m)
{
	unsigned int reads = m->inlined || m->requester_dm ? 1 : 2;

	one_message(m);
	bench_must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] == reads &&
			   taps.n[0][TAP_ANSWER] == reads && taps.n[0][TAP_TX] &&
			   taps.n[0][TAP_WRITE] == 1 && taps.n[1][TAP_RX] && taps.n[1][TAP_TX] &&
			   taps.n[1][TAP_WRITE] == 1,
		   "taps of a WRITE");
	whole(name, FIRST(0, TAP_DOORBELL, TAP_WRITE) * CYCLE_NS,
	      limits_dma_read(bench_model, m->inlined ? WQE_INLINE : WQE) +
		      (reads == 2 ? limits_dma_read(bench_model, BYTES) : 0) +
		      limits_flight(bench_model, limits_roce(LIMITS_RETH, BYTES)) +
		      limits_flight(bench_model, limits_roce(LIMITS_AETH, 0)));
}

static void latency_write(void)
{
	const struct message write = { .opcode = URDMA_WR_WRITE };
	struct message inlined = write, dm = write;

	inlined.inlined = dm.requester_dm = true;
	whole_write("WRITE 64 bytes, doorbell to CQE", &write);
	taps_clear();
	whole_write("WRITE 64 bytes out of device memory", &dm);
	taps_clear();
	whole_write("WRITE 64 bytes inline, doorbell to CQE", &inlined);
	budgeted("WRITE, transmit: NIC without PCIe", transmit(), 2 * THROUGH, "registers");
	budgeted("WRITE, receive: first beat to DMA write", FIRST(1, TAP_RX, TAP_WRITE),
		 checked(LIMITS_RETH, BYTES), "frame");
	part("WRITE, receive: first beat to ACK", FIRST(1, TAP_RX, TAP_TX),
	     checked(LIMITS_RETH, BYTES), "frame");
	taps_clear();
}

/*
 * A request that is answered with data, and the least time of each part. A message from device
 * memory takes the same time at the requester as any other: request and response are NULL.
 */
struct answered {
	unsigned int opcode;
	bool dm;
	const char *request, *responder, *response, *whole;
	uint32_t len;
	uint32_t request_ext, response_ext; /* headers after the BTH */
};

static void latency_answered(const struct answered *a)
{
	uint32_t request = limits_roce(a->request_ext, 0);
	uint32_t response = limits_roce(a->response_ext, a->len);

	one_message(&(struct message){ .opcode = a->opcode, .responder_dm = a->dm });
	/* the requester reads the WQE twice: for the request, and for the target of the data */
	bench_must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] == 2 &&
			   taps.n[0][TAP_ANSWER] == 2 && taps.n[0][TAP_TX] && taps.n[0][TAP_RX] &&
			   taps.n[0][TAP_WRITE] == 2 && taps.n[1][TAP_RX] &&
			   taps.n[1][TAP_READ] == !a->dm && taps.n[1][TAP_ANSWER] == !a->dm &&
			   taps.n[1][TAP_TX],
		   "taps of a READ");
	if (a->request)
		part(a->request, transmit(), 2 * THROUGH, "registers");
	part(a->responder, FIRST(1, TAP_RX, TAP_TX) - (a->dm ? 0 : FIRST(1, TAP_READ, TAP_ANSWER)),
	     checked(a->request_ext, 0) + (a->dm ? 0 : THROUGH), "frame");
	if (a->response)
		part(a->response, FIRST(0, TAP_RX, TAP_WRITE) - SPAN(0, TAP_READ, 1, TAP_ANSWER, 1),
		     checked(a->response_ext, a->len), "frame");
	whole(a->whole, SPAN(0, TAP_DOORBELL, 0, TAP_WRITE, 1) * CYCLE_NS,
	      limits_dma_read(bench_model, WQE) + limits_flight(bench_model, request) +
		      (a->dm ? 0 : limits_dma_read(bench_model, a->len)) +
		      limits_flight(bench_model, response));
	taps_clear();
}

/* ---- round trips --------------------------------------------------------------------------- */

/* SENDs; the time ends when the receiver's CQE is in memory. */
static void ping_pong(const char *name, const struct message *m)
{
	const unsigned int rounds = 24, warm = 4;
	bool read = !m->inlined && !m->requester_dm;
	struct urdma_eh_cqe cqe;
	struct pair pair;
	struct rig *rig = &pair.rig;
	uint64_t from = 0, to;

	begin(&pair, m, NULL);
	for (unsigned int i = 0; i < rounds; i++)
		for (unsigned int n = 0; n < 2; n++)
			post_recv(&pair, n, m);
	bench_settle(rig);
	for (unsigned int i = 0; i < rounds; i++) {
		if (i == warm)
			from = urdma_cosim_now(rig->cosim);
		for (unsigned int n = 0; n < 2; n++) {
			post_one(&pair, n, m);
			rig_check(rig, urdma_eh_next_cqe(&rig->side[!n].recv_cq, &cqe, BENCH_LIMIT),
				  "ping-pong");
			bench_must(!cqe.status, "ping-pong");
		}
	}
	to = urdma_cosim_now(rig->cosim);
	bench_settle(rig);
	end(&pair, m);
	/*
	 * The receive WQE may have been read before. Payload and CQE are written one after the
	 * other. Of the send WQE, the part that all WQEs have counts.
	 */
	whole(name, (double)(to - from) * CYCLE_NS / (2.0 * (rounds - warm)),
	      limits_doorbell(bench_model) + limits_dma_read(bench_model, WQE) +
		      (read ? limits_dma_read(bench_model, BYTES) : 0) +
		      limits_flight(bench_model, limits_roce(0, BYTES)) +
		      limits_dma_write(bench_model,
				       (m->responder_dm ? 0 : BYTES) + URDMA_CQE_SIZE));
}

static void round_trips(void)
{
	const struct message send = { .opcode = URDMA_WR_SEND };
	struct message inlined = send, dm = send;

	inlined.inlined = dm.requester_dm = dm.responder_dm = true;
	ping_pong("half round trip, 64 bytes inline", &inlined);
	ping_pong("half round trip, 64 bytes", &send);
	ping_pong("half round trip, 64 bytes in device memory", &dm);
}

void bench_latency(void)
{
	const struct answered read = {
		.opcode = URDMA_WR_READ,
		.request = "READ, request: NIC without PCIe",
		.responder = "READ, responder: NIC without PCIe",
		.response = "READ, response: NIC without PCIe",
		.whole = "READ 64 bytes, doorbell to CQE",
		.len = BYTES,
		.request_ext = LIMITS_RETH,
		.response_ext = LIMITS_AETH,
	};
	const struct answered atomic = {
		.opcode = URDMA_WR_ATOMIC_FA,
		.request = "FETCH_ADD, request: NIC without PCIe",
		.responder = "FETCH_ADD, responder: NIC without PCIe",
		.response = "FETCH_ADD, response: NIC without PCIe",
		.whole = "FETCH_ADD, doorbell to CQE",
		.len = 8,
		.request_ext = LIMITS_ATOMIC_ETH,
		.response_ext = LIMITS_AETH,
	};

	struct answered read_dm = read, atomic_dm = atomic;

	read_dm.dm = atomic_dm.dm = true;
	read_dm.request = read_dm.response = atomic_dm.request = atomic_dm.response = NULL;
	read_dm.responder = "READ of device memory, responder";
	read_dm.whole = "READ 64 bytes of device memory";
	atomic_dm.responder = "FETCH_ADD in device memory, responder";
	atomic_dm.whole = "FETCH_ADD in device memory";
	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	if (bench_wanted("latency of SEND"))
		latency_send();
	if (bench_wanted("latency of WRITE"))
		latency_write();
	if (bench_wanted("latency of READ")) {
		latency_answered(&read);
		latency_answered(&read_dm);
	}
	if (bench_wanted("latency of FETCH_ADD")) {
		latency_answered(&atomic);
		latency_answered(&atomic_dm);
	}
	if (bench_wanted("latency of a round trip"))
		round_trips();
}
