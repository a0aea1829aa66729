// SPDX-License-Identifier: Apache-2.0
/*
 * The benchmark: two NICs on a wire under the embedded host, default PCIe and wire. Prints a table
 * and writes rows of name, value, unit and limit as JSON. Every figure but the simulator's own
 * speed is a function of the RTL and the settings, exact to the cycle, so a committed table can be
 * compared. Ends with 1 when a limit is missed or a figure differs from the table, 2 when it could
 * not run.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "net.h"
#include "rig.h"

#define CYCLE_NS   URDMA_SIM_CYCLE_NS
#define LIMIT	   4000000u
#define LONG_LIMIT 200000000u /* with ACK timers */

struct row {
	const char *name, *unit;
	double value, limit; /* limit NAN: none */
	bool at_most;	     /* the limit is a ceiling, else a floor */
	bool exact;	     /* the same on every machine */
};

static struct row rows[64];
static unsigned int n_rows;

static struct {
	const char *output, *expected, *update, *only;
	bool verbose;
} args;

static bool wanted(const char *name)
{
	return !args.only || strstr(name, args.only);
}

static void add(const char *name, double value, const char *unit, double limit, bool at_most,
		bool exact)
{
	rows[n_rows++] =
		(struct row){ name, unit, round(value * 1000) / 1000, limit, at_most, exact };
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "urdma-bench: %s\n", what);
	exit(2);
}

/* ---- taps on the ports of the model
 * ----------------------------------------------------------------- */

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

/* Cycle of the first of a kind. */
#define AT(nic, tap) ((double)taps.at[nic][tap][0])

static const struct urdma_model_ops probe_ops = { probe_create, probe_destroy, probe_cycle };

/* ---- cost of simulating
 * ------------------------------------------------------------------------------ */

static struct {
	uint64_t cycles; /* clock cycles evaluated, of all NICs */
	double seconds;
	int perf; /* file of the instruction counter, or -1 */
} cost = { .perf = -1 };

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void cost_start(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	cost.perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	cost.seconds = seconds();
}

static void cost_report(void)
{
	uint64_t instructions = 0;

	cost.seconds = seconds() - cost.seconds;
	add("simulator speed", (double)cost.cycles / cost.seconds / 1000, "NIC kcycles/s", NAN,
	    false, false);
	if (cost.perf >= 0 && read(cost.perf, &instructions, sizeof(instructions)) == 8 &&
	    instructions)
		add("instructions per NIC cycle", (double)instructions / (double)cost.cycles,
		    "instructions", NAN, false, false);
}

static void stop(struct rig *rig)
{
	cost.cycles += 2 * urdma_cosim_stats(rig->cosim)->evaluated;
	rig_stop(rig);
}

static void settle(struct rig *rig)
{
	rig_check(rig, urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + LIMIT),
		  "settle");
}

/* ---- throughput
 * --------------------------------------------------------------------------------------- */

#define BATCH 16u /* WQEs a doorbell, the last one signaled */

static unsigned int post_batch(struct rig *rig, unsigned int q, uint32_t len)
{
	struct urdma_eh_sge src = { (uintptr_t)rig->side[0].buffer + q * 65536, len,
				    rig->side[0].mr.key };

	for (unsigned int i = 0; i < BATCH; i++) {
		struct urdma_eh_send wr = {
			.opcode = URDMA_WR_SEND, .signaled = i == BATCH - 1, .sge = &src, .n_sge = 1
		};

		must(!urdma_eh_put_send(&rig->side[0].qp[q], &wr), "put send");
	}
	urdma_eh_ring_sq(&rig->side[0].qp[q]);
	return BATCH;
}

/* Cycles between the first and the last of n receive CQEs, as the NIC stamped them. */
static uint64_t stream(unsigned int qps, unsigned int mtu, uint32_t len, unsigned int messages)
{
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	struct rig rig;
	uint64_t first = 0, last = 0;
	unsigned int posted[RIG_MAX_QPS] = { 0 }, received[RIG_MAX_QPS] = { 0 };
	/* what is under way fits into the receiver: 122-byte frames come at 2.9 cycles each */
	unsigned int window = len > 4096 ? messages : 384 / qps;

	rig_defaults(&config);
	config.qps = qps;
	config.mtu = mtu;
	config.log_cqe = 12;
	rig_start(&rig, &config);
	must(messages <= 256 && messages % BATCH == 0, "number of messages");
	for (unsigned int q = 0; q < qps; q++) {
		struct urdma_eh_sge dst = { (uintptr_t)rig.side[1].buffer + q * 65536, len,
					    rig.side[1].mr.key };

		for (unsigned int i = 0; i < messages; i++)
			must(!urdma_eh_put_recv(&rig.side[1].qp[q], &dst, 1), "put receive");
		urdma_eh_ring_rq(&rig.side[1].qp[q]);
	}
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + LIMIT),
		  "settle");
	for (unsigned int i = 0; i < messages * qps; i++) {
		for (unsigned int q = 0; q < qps; q++)
			while (posted[q] < messages && posted[q] + BATCH <= received[q] + window)
				posted[q] += post_batch(&rig, q, len);
		int ret = urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, LIMIT);

		if (ret || cqe.status || cqe.length != len) {
			fprintf(stderr,
				"urdma-bench: %u QPs, MTU %u, %u bytes: message %u has failed; "
				"frames lost in "
				"the receiver: %lu\n",
				qps, 128u << mtu, len, i,
				(unsigned long)urdma_eh_counter(rig.side[1].eh,
								URDMA_CNT_RX_DROP_FULL));
			rig_check(&rig, ret, "receive");
			exit(2);
		}
		received[cqe.qpn - RIG_QPN(0)]++;
		if (!i)
			first = cqe.cycles;
		last = cqe.cycles;
	}
	for (unsigned int i = 0; i < messages * qps / BATCH; i++) {
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, LIMIT), "send");
		must(!cqe.status, "a message has failed");
	}
	stop(&rig);
	return last - first;
}

static double goodput(unsigned int mtu, uint32_t len, unsigned int messages)
{
	uint64_t cycles = stream(1, mtu, len, messages);

	return (double)(messages - 1) * len * 8 / (double)(cycles * CYCLE_NS);
}

static double rate(unsigned int qps, unsigned int messages)
{
	uint64_t cycles = stream(qps, 5, 64, messages);

	return (double)(messages * qps - 1) * 1000 / (double)(cycles * CYCLE_NS);
}

/*
 * What the requester of an opcode without receive WQEs gets done. Each QP has `window` WQEs under
 * way from before the first cycle that counts to behind the last one, so neither the start nor the
 * end, nor the host, is in the figure.
 */
struct load {
	unsigned int opcode, qps, mtu;
	uint32_t len;
	unsigned int batch;	  /* WQEs a doorbell, the last one signaled */
	unsigned int window;	  /* WQEs of a QP under way */
	unsigned int warm, count; /* signaled completions before the figure, and in it */
	const char *fault;	  /* of the wire, both directions; NULL: none */
	unsigned int timeout;	  /* with faults: as of the QP's attribute */
};

static size_t load_at(unsigned int q)
{
	return (size_t)q * 65536;
}

static unsigned int load_post(struct rig *rig, const struct load *l, unsigned int q)
{
	struct urdma_eh_sge sge = { (uintptr_t)rig->side[0].buffer + load_at(q), l->len,
				    rig->side[0].mr.key };

	for (unsigned int i = 0; i < l->batch; i++) {
		struct urdma_eh_send wr = { .opcode = l->opcode,
					    .signaled = i == l->batch - 1,
					    .raddr = (uintptr_t)rig->side[1].buffer + load_at(q),
					    .rkey = rig->side[1].mr.key,
					    .swap_add = 1,
					    .sge = &sge,
					    .n_sge = 1 };

		must(!urdma_eh_put_send(&rig->side[0].qp[q], &wr), "put send");
	}
	urdma_eh_ring_sq(&rig->side[0].qp[q]);
	return l->batch;
}

/* Memory says that every message arrived, and an ATOMIC no more than once. */
static void load_check(const struct rig *rig, const struct load *l, const unsigned int *posted)
{
	unsigned int to = l->opcode == URDMA_WR_READ ? 0 : 1;

	for (unsigned int q = 0; q < l->qps; q++) {
		const uint8_t *p = rig->side[to].buffer + load_at(q);
		uint64_t v;

		memcpy(&v, p, 8);
		must(l->opcode == URDMA_WR_ATOMIC_FA ? v == posted[q]
						     : rig_verify(p, l->len, q + 1) == l->len,
		     "memory is not as it should be");
	}
}

/* Cycles that count * batch messages took. */
static uint64_t load_run(const char *name, const struct load *l)
{
	unsigned int posted[RIG_MAX_QPS] = { 0 }, done[RIG_MAX_QPS] = { 0 }, under_way = 0;
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	struct rig rig;
	uint64_t start = 0, end = 0;

	rig_defaults(&config);
	config.qps = l->qps;
	config.mtu = l->mtu;
	config.log_sq = 10;
	config.log_cqe = 12;
	if (l->fault) {
		config.faults = true;
		config.conn.timeout = l->timeout;
	}
	rig_start(&rig, &config);
	for (unsigned int q = 0; q < l->qps && l->opcode != URDMA_WR_ATOMIC_FA; q++)
		rig_fill(rig.side[l->opcode == URDMA_WR_READ].buffer + load_at(q), l->len, q + 1);
	settle(&rig);
	if (l->fault)
		rig_fault(&rig, "%s", l->fault);
	for (unsigned int n = 0; !n || under_way; n++) {
		for (unsigned int q = 0; q < l->qps; q++)
			while (!end && posted[q] + l->batch <= done[q] + l->window) {
				posted[q] += load_post(&rig, l, q);
				under_way += l->batch;
			}
		rig_check(&rig,
			  urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe,
					    l->fault ? LONG_LIMIT : LIMIT),
			  name);
		if (cqe.status) {
			fprintf(stderr, "urdma-bench: %s: status %u\n", name, cqe.status);
			exit(2);
		}
		done[cqe.qpn - RIG_QPN(0)] += l->batch;
		under_way -= l->batch;
		if (n + 1 == l->warm)
			start = cqe.cycles;
		if (n + 1 == l->warm + l->count) {
			end = cqe.cycles;
			if (rig.faults)
				urdma_faults_clear(rig.faults);
		}
	}
	load_check(&rig, l, posted);
	if (args.verbose)
		rig_print_counters(&rig);
	stop(&rig);
	return end - start;
}

static void load_goodput(const char *name, struct load l, double limit)
{
	if (!wanted(name))
		return;
	add(name, (double)l.count * l.batch * l.len * 8 / (double)(load_run(name, &l) * CYCLE_NS),
	    "Gb/s", limit, false, true);
}

static void load_rate(const char *name, struct load l, double limit)
{
	if (!wanted(name))
		return;
	add(name, (double)l.count * l.batch * 1000 / (double)(load_run(name, &l) * CYCLE_NS),
	    "million/s", limit, false, true);
}

#define BULK(op, mtu, count) \
	((struct load){ URDMA_WR_##op, 1, mtu, 65536, 1, 32, 16, count, NULL, 0 })
#define SMALL(op, qps, len, window, rounds)                                                   \
	((struct load){ URDMA_WR_##op, qps, 5, len, BATCH, window, 4 * (qps), rounds * (qps), \
			NULL, 0 })
#define LOSSY(op, percent, timeout) \
	((struct load){ URDMA_WR_##op, 16, 5, 65536, 1, 16, 64, 384, "drop,p=" percent, timeout })

static void loads(void)
{
	load_goodput("WRITE 64 KB, MTU 4096, 1 QP", BULK(WRITE, 5, 64), 90);
	load_goodput("WRITE 64 KB, MTU 1024, 1 QP", BULK(WRITE, 3, 48), 85);
	load_goodput("WRITE 64 KB, MTU 256, 1 QP", BULK(WRITE, 1, 32), NAN);
	load_goodput("READ 64 KB, MTU 4096, 1 QP", BULK(READ, 5, 64), 90);
	load_goodput("READ 64 KB, MTU 1024, 1 QP", BULK(READ, 3, 48), 85);
	load_goodput("READ 64 KB, MTU 256, 1 QP", BULK(READ, 1, 32), NAN);
	load_rate("WRITE 64 bytes, 16 QPs", SMALL(WRITE, 16, 64, 64, 12), 25);
	load_rate("WRITE 64 bytes, 1 QP", SMALL(WRITE, 1, 64, 512, 64), NAN);
	load_rate("READ 64 bytes, 16 QPs", SMALL(READ, 16, 64, 64, 12), NAN);
	load_rate("READ 64 bytes, 1 QP", SMALL(READ, 1, 64, 64, 16), NAN);
	load_rate("FETCH_ADD, 16 QPs", SMALL(ATOMIC_FA, 16, 8, 64, 8), NAN);
	load_rate("FETCH_ADD, 1 QP", SMALL(ATOMIC_FA, 1, 8, 64, 16), NAN);
	load_goodput("WRITE 64 KB, 16 QPs, loss 0.1 %", LOSSY(WRITE, "0.1", 12), 50);
	load_goodput("WRITE 64 KB, 16 QPs, loss 1 %", LOSSY(WRITE, "1", 12), NAN);
	load_goodput("READ 64 KB, 16 QPs, loss 0.1 %", LOSSY(READ, "0.1", 12), NAN);
}

/* ---- Ethernet
 * ------------------------------------------------------------------------------------------- */

/*
 * Frames from side 0 to side 1, a ring of them always posted, and buffers always there. With rdma,
 * 64 KB WRITEs of one QP go the same way at the same time; each has work under way all the time.
 */
struct eth_load {
	unsigned int queues;
	uint32_t len;		  /* of a frame, without FCS */
	unsigned int warm, count; /* frames before the figure, and in it */
	bool rdma;
};

static uint8_t eth_frame[NET_MAX_FRAME + 64];

#define ETH_TURN 400u /* cycles between two looks of the host */

static void eth_turn(struct net *net, const struct eth_load *l, uint64_t bus)
{
	for (unsigned int q = 0; q < l->queues; q++) {
		struct urdma_eh_ethq *tx = &net->side[0].q[q];

		while (tx->tx_pi - tx->tx_ci < 255)
			urdma_eh_eth_put_tx(tx, bus, l->len, true, NULL);
		urdma_eh_eth_ring_tx(tx);
	}
	rig_check(
		net->rig,
		urdma_cosim_run_until(net->rig->cosim, urdma_cosim_now(net->rig->cosim) + ETH_TURN),
		"run");
}

/* Gb/s of frames (without FCS) and of WRITEs; frames: million frames a second. */
static void eth_run(const struct eth_load *l, double *eth, double *rdma, double *frames)
{
	const struct load writes = BULK(WRITE, 5, 0);
	unsigned int posted = 0, done = 0, done_at_start = 0, n = 0;
	uint64_t start = 0, end = 0, bus;
	struct urdma_eh_eth_cqe cqe;
	struct urdma_eh_cqe wc;
	struct rig_config config;
	struct net_config nc;
	struct rig rig;
	struct net net;

	rig_defaults(&config);
	config.log_cqe = 12;
	config.memory.memory = 128u << 20;
	rig_start(&rig, &config);
	net_defaults(&nc);
	nc.queues = l->queues;
	nc.q.log_rx = 10;
	nc.q.log_cq = 11;
	nc.posted = 1023;
	net_start(&net, &rig, &nc);
	rig_fill(net.side[0].tx, l->len, 1);
	memcpy(net.side[0].tx, net.side[1].mac, 6);
	bus = urdma_embedded_bus(rig.host, net.side[0].tx);
	settle(&rig);
	while (n < l->warm + l->count) {
		while (l->rdma && posted < done + writes.window)
			posted += load_post(&rig, &writes, 0);
		eth_turn(&net, l, bus);
		while (urdma_eh_poll_cq(&rig.side[0].send_cq, &wc, 1)) {
			must(!wc.status, "a WRITE beside Ethernet has failed");
			done++;
		}
		for (unsigned int q = 0; q < l->queues; q++) {
			while (urdma_eh_eth_poll(&net.side[0].q[q], &cqe))
				must(!cqe.err, "a frame was not sent");
			while (net_recv(&net, 1, q, eth_frame, &cqe, 0)) {
				must(cqe.len == l->len, "a frame has another length");
				if (++n == l->warm) {
					start = cqe.cycles;
					done_at_start = done;
				}
				if (n == l->warm + l->count)
					end = cqe.cycles;
			}
		}
	}
	/* small ones may come faster than PCIe takes them; what counts is what arrives */
	must(l->len < 100 || (!urdma_eh_counter(net.side[1].eh, URDMA_CNT_ETH_RX_NO_BUF) &&
			      !urdma_eh_counter(net.side[1].eh, URDMA_CNT_ETH_RX_DROP_FULL)),
	     "frames were lost");
	if (args.verbose)
		rig_print_counters(&rig);
	*frames = (double)l->count * 1000 / (double)((end - start) * CYCLE_NS);
	*eth = *frames * l->len * 8 / 1000;
	*rdma = (double)(done - done_at_start) * writes.len * 8 /
		(double)((end - start) * CYCLE_NS);
	cost.cycles += 2 * urdma_cosim_stats(rig.cosim)->evaluated;
	net_stop(&net);
	rig_stop(&rig);
}

static void ethernet(void)
{
	double eth, rdma, frames;

	if (!wanted("Ethernet"))
		return;
	eth_run(&(struct eth_load){ 1, 1514, 200, 1000, false }, &eth, &rdma, &frames);
	add("Ethernet 1500 bytes, 1 queue", eth, "Gb/s", 90, false, true);
	eth_run(&(struct eth_load){ 1, 60, 400, 3000, false }, &eth, &rdma, &frames);
	add("Ethernet 64 bytes, 1 queue", frames, "million/s", 20, false, true);
	eth_run(&(struct eth_load){ 8, 60, 400, 3000, false }, &eth, &rdma, &frames);
	add("Ethernet 64 bytes, 8 queues", frames, "million/s", 20, false, true);
	eth_run(&(struct eth_load){ 1, 1514, 200, 1500, true }, &eth, &rdma, &frames);
	add("Ethernet 1500 bytes beside WRITEs", eth, "Gb/s", 30, false, true);
	add("WRITEs beside Ethernet 1500 bytes", rdma, "Gb/s", 30, false, true);
	eth_run(&(struct eth_load){ 8, 60, 400, 3000, true }, &eth, &rdma, &frames);
	add("Ethernet 64 bytes beside WRITEs", frames, "million/s", 5, false, true);
	add("WRITEs beside Ethernet 64 bytes", rdma, "Gb/s", 30, false, true);
}

/* ---- latency
 * ------------------------------------------------------------------------------------------- */

static uint8_t payload[64];

/* A WRITE or SEND has its 64 bytes inline; a READ and an ATOMIC have an SGE. */
static void post_one(struct rig *rig, unsigned int from, unsigned int opcode)
{
	bool inlined = opcode == URDMA_WR_SEND || opcode == URDMA_WR_WRITE;
	struct urdma_eh_sge sge = { (uintptr_t)rig->side[from].buffer,
				    opcode == URDMA_WR_ATOMIC_FA ? 8 : sizeof(payload),
				    rig->side[from].mr.key };
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = opcode != URDMA_WR_SEND,
				    .raddr = (uintptr_t)rig->side[!from].buffer,
				    .rkey = rig->side[!from].mr.key,
				    .swap_add = 1 };

	if (inlined) {
		wr.inline_data = payload;
		wr.inline_len = sizeof(payload);
	} else {
		wr.sge = &sge;
		wr.n_sge = 1;
	}
	must(!urdma_eh_post_send(&rig->side[from].qp[0], &wr), "post send");
}

static void post_recv(struct rig *rig, unsigned int at)
{
	struct urdma_eh_sge sge = { (uintptr_t)rig->side[at].buffer, sizeof(payload),
				    rig->side[at].mr.key };

	must(!urdma_eh_post_recv(&rig->side[at].qp[0], &sge, 1), "post receive");
}

/*
 * One message through two quiet NICs whose page tables are on chip: the fourth of its kind. The
 * taps have what it did, first to last, until taps_clear().
 */
static void one_message(unsigned int opcode)
{
	bool send = opcode == URDMA_WR_SEND;
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	struct rig rig;

	rig_defaults(&config);
	config.log_stride = 7;
	config.model = &probe_ops;
	rig_start(&rig, &config);
	taps.cosim = rig.cosim;
	for (unsigned int i = 0; i < 4; i++) {
		if (send)
			post_recv(&rig, 1);
		settle(&rig);
		taps.on = i == 3;
		post_one(&rig, 0, opcode);
		settle(&rig);
		must(urdma_eh_poll_cq(send ? &rig.side[1].recv_cq : &rig.side[0].send_cq, &cqe,
				      1) == 1 &&
			     !cqe.status,
		     "latency");
		settle(&rig);
	}
	taps.on = false;
	stop(&rig);
}

static void latency_send(void)
{
	uint64_t(*at)[TAPS][TAP_N] = taps.at;

	one_message(URDMA_WR_SEND);
	must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] && taps.n[0][TAP_ANSWER] &&
		     taps.n[0][TAP_TX],
	     "the sender's taps");
	must(taps.n[1][TAP_RX] && taps.n[1][TAP_READ] && taps.n[1][TAP_ANSWER] &&
		     taps.n[1][TAP_WRITE] >= 2,
	     "the receiver's taps");

	add("transmit: doorbell to WQE read", AT(0, TAP_READ) - AT(0, TAP_DOORBELL), "cycles", NAN,
	    true, true);
	add("transmit: WQE read, PCIe", AT(0, TAP_ANSWER) - AT(0, TAP_READ), "cycles", NAN, true,
	    true);
	add("transmit: WQE to first beat at the MAC", AT(0, TAP_TX) - AT(0, TAP_ANSWER), "cycles",
	    NAN, true, true);
	/* The budget is that of design.md, with what the NIC itself takes. */
	add("transmit: NIC without PCIe",
	    AT(0, TAP_TX) - AT(0, TAP_DOORBELL) - (AT(0, TAP_ANSWER) - AT(0, TAP_READ)), "cycles",
	    75, true, true);
	add("receive: first beat to WQE read", AT(1, TAP_READ) - AT(1, TAP_RX), "cycles", NAN, true,
	    true);
	add("receive: WQE read, PCIe", AT(1, TAP_ANSWER) - AT(1, TAP_READ), "cycles", NAN, true,
	    true);
	add("receive: WQE to DMA write", AT(1, TAP_WRITE) - AT(1, TAP_ANSWER), "cycles", NAN, true,
	    true);
	add("receive: NIC without PCIe",
	    AT(1, TAP_WRITE) - AT(1, TAP_RX) - (AT(1, TAP_ANSWER) - AT(1, TAP_READ)), "cycles", 75,
	    true, true);
	add("receive: DMA write to CQE", (double)(at[1][TAP_WRITE][1] - at[1][TAP_WRITE][0]),
	    "cycles", NAN, true, true);
	taps_clear();
}

static void latency_write(void)
{
	one_message(URDMA_WR_WRITE);
	must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] && taps.n[0][TAP_ANSWER] &&
		     taps.n[0][TAP_TX] && taps.n[1][TAP_RX] && taps.n[1][TAP_WRITE] == 1,
	     "taps of a WRITE");
	add("WRITE, transmit: NIC without PCIe",
	    AT(0, TAP_TX) - AT(0, TAP_DOORBELL) - (AT(0, TAP_ANSWER) - AT(0, TAP_READ)), "cycles",
	    75, true, true);
	add("WRITE, receive: first beat to DMA write", AT(1, TAP_WRITE) - AT(1, TAP_RX), "cycles",
	    75, true, true);
	add("WRITE, receive: first beat to ACK", AT(1, TAP_TX) - AT(1, TAP_RX), "cycles", NAN, true,
	    true);
	taps_clear();
}

/* The responder's part and the requester's, of a READ of 64 bytes and of an ATOMIC. */
static void latency_read(unsigned int opcode, const char *const name[4])
{
	one_message(opcode);
	/* the requester reads the WQE twice: to ask, and for where the data goes */
	must(taps.n[0][TAP_DOORBELL] && taps.n[0][TAP_READ] == 2 && taps.n[0][TAP_ANSWER] == 2 &&
		     taps.n[0][TAP_TX] && taps.n[0][TAP_RX] && taps.n[0][TAP_WRITE] == 2 &&
		     taps.n[1][TAP_RX] && taps.n[1][TAP_READ] == 1 && taps.n[1][TAP_ANSWER] == 1 &&
		     taps.n[1][TAP_TX],
	     "taps of a READ");
	add(name[0], AT(0, TAP_TX) - AT(0, TAP_DOORBELL) - (AT(0, TAP_ANSWER) - AT(0, TAP_READ)),
	    "cycles", NAN, true, true);
	add(name[1], AT(1, TAP_TX) - AT(1, TAP_RX) - (AT(1, TAP_ANSWER) - AT(1, TAP_READ)),
	    "cycles", NAN, true, true);
	add(name[2],
	    AT(0, TAP_WRITE) - AT(0, TAP_RX) -
		    (double)(taps.at[0][TAP_ANSWER][1] - taps.at[0][TAP_READ][1]),
	    "cycles", NAN, true, true);
	add(name[3], ((double)taps.at[0][TAP_WRITE][1] - AT(0, TAP_DOORBELL)) * CYCLE_NS, "ns", NAN,
	    true, true);
	taps_clear();
}

static void latency(void)
{
	static const char *const read[] = {
		"READ, request: NIC without PCIe",
		"READ, responder: NIC without PCIe",
		"READ, response: NIC without PCIe",
		"READ 64 bytes, doorbell to CQE",
	};
	static const char *const atomic[] = {
		"FETCH_ADD, request: NIC without PCIe",
		"FETCH_ADD, responder: NIC without PCIe",
		"FETCH_ADD, response: NIC without PCIe",
		"FETCH_ADD, doorbell to CQE",
	};

	latency_send();
	latency_write();
	latency_read(URDMA_WR_READ, read);
	latency_read(URDMA_WR_ATOMIC_FA, atomic);
}

static double ping_pong(void)
{
	const unsigned int rounds = 24, warm = 4;
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	struct rig rig;
	uint64_t start = 0, end;

	rig_defaults(&config);
	config.log_stride = 7;
	rig_start(&rig, &config);
	for (unsigned int i = 0; i < rounds; i++)
		for (unsigned int n = 0; n < 2; n++)
			post_recv(&rig, n);
	settle(&rig);
	for (unsigned int i = 0; i < rounds; i++) {
		if (i == warm)
			start = urdma_cosim_now(rig.cosim);
		for (unsigned int n = 0; n < 2; n++) {
			post_one(&rig, n, URDMA_WR_SEND);
			rig_check(&rig, urdma_eh_next_cqe(&rig.side[!n].recv_cq, &cqe, LIMIT),
				  "ping-pong");
			must(!cqe.status, "ping-pong");
		}
	}
	end = urdma_cosim_now(rig.cosim);
	settle(&rig);
	stop(&rig);
	return (double)(end - start) * CYCLE_NS / (2.0 * (rounds - warm));
}

/* ---- the table
 * ------------------------------------------------------------------------------------------- */

static bool missed(const struct row *r)
{
	if (isnan(r->limit))
		return false;
	return r->at_most ? r->value > r->limit : r->value < r->limit;
}

static json_t *to_json(bool exact_only)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];

		if (exact_only && !r->exact)
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:f, s:s, s:o}", "name", r->name, "value", r->value,
					"unit", r->unit, "limit",
					isnan(r->limit) ? json_null() : json_real(r->limit)));
	}
	return list;
}

static int save(const char *path, bool exact_only)
{
	json_t *list = to_json(exact_only);
	int ret = json_dump_file(list, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	if (ret)
		fprintf(stderr, "urdma-bench: %s cannot be written\n", path);
	json_decref(list);
	return ret;
}

static unsigned int compare(const char *path)
{
	json_error_t error;
	json_t *list = json_load_file(path, 0, &error), *item;
	unsigned int bad = 0;
	size_t i;

	if (!json_is_array(list)) {
		fprintf(stderr, "urdma-bench: %s: %s\n", path, list ? "not a list" : error.text);
		json_decref(list);
		return 1;
	}
	for (unsigned int k = 0; k < n_rows; k++) {
		bool found = false;

		if (!rows[k].exact)
			continue;
		json_array_foreach(list, i, item)
		{
			const char *name = json_string_value(json_object_get(item, "name"));
			double value = json_number_value(json_object_get(item, "value"));

			if (!name || strcmp(name, rows[k].name))
				continue;
			found = true;
			if (fabs(value - rows[k].value) > 0.0005) {
				fprintf(stderr, "urdma-bench: %s: %.3f, the table has %.3f\n", name,
					rows[k].value, value);
				bad++;
			}
		}
		if (!found) {
			fprintf(stderr, "urdma-bench: %s is not in the table\n", rows[k].name);
			bad++;
		}
	}
	json_decref(list);
	if (bad)
		fprintf(stderr,
			"urdma-bench: %u figures differ from %s. If that is meant, write the table "
			"anew "
			"with --update and commit it with the change.\n",
			bad, path);
	return bad;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o':
		args.output = arg;
		return 0;
	case 'c':
		args.expected = arg;
		return 0;
	case 'u':
		args.update = arg;
		return 0;
	case 'n':
		args.only = arg;
		return 0;
	case 'v':
		args.verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "output", 'o', "FILE", 0, "write the rows as JSON", 0 },
		{ "compare", 'c', "FILE", 0, "compare the cycle-exact rows with a table", 0 },
		{ "update", 'u', "FILE", 0, "write the cycle-exact rows as a table", 0 },
		{ "only", 'n', "TEXT", 0, "only throughput rows whose name has TEXT", 0 },
		{ "verbose", 'v', NULL, 0, "counters of the new rows, on stderr", 0 },
		{ 0 },
	};
	static const struct argp argp = { options, parse, NULL, "Cycle-exact benchmark of the NIC.",
					  NULL,	   NULL,  NULL };
	unsigned int bad = 0;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	cost_start();
	if (args.only)
		goto loads;
	add("SEND 64 KB, MTU 4096, 1 QP", goodput(5, 65536, 64), "Gb/s", 85, false, true);
	add("SEND 64 KB, MTU 1024, 1 QP", goodput(3, 65536, 48), "Gb/s", NAN, false, true);
	add("SEND 64 KB, MTU 256, 1 QP", goodput(1, 65536, 32), "Gb/s", NAN, false, true);
	add("SEND 64 bytes, 8 QPs", rate(8, 192), "million/s", 10, false, true);
	add("SEND 64 bytes, 1 QP", rate(1, 256), "million/s", NAN, false, true);
loads:
	loads();
	ethernet();
	if (args.only)
		goto report;
	latency();
	add("half round trip, 64 bytes inline", ping_pong(), "ns", NAN, true, true);
report:
	cost_report();

	printf("%-42s %12s  %-14s %10s\n", "", "value", "unit", "limit");
	for (unsigned int i = 0; i < n_rows; i++) {
		char limit[32] = "";

		if (!isnan(rows[i].limit))
			snprintf(limit, sizeof(limit), "%s %g",
				 rows[i].at_most ? "<=" : ">=", rows[i].limit);
		printf("%-42s %12.3f  %-14s %10s%s\n", rows[i].name, rows[i].value, rows[i].unit,
		       limit, missed(&rows[i]) ? "  MISSED" : "");
		bad += missed(&rows[i]);
	}
	if (args.output && save(args.output, false))
		return 2;
	if (args.update && save(args.update, true))
		return 2;
	if (args.expected)
		bad += compare(args.expected);
	return bad ? 1 : 0;
}
