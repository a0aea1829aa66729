// SPDX-License-Identifier: Apache-2.0
/* Rows of the net device, alone and beside RDMA. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "meter.h"
#include "net.h"

#define TURN	 400u /* cycles between two checks of the host */
#define FRAME	 1514u
#define SMALLEST 60u

/*
 * Frames from side 0 to side 1. A ring of them is always posted, and there are always buffers. With
 * rdma, 64 KB WRITEs of one QP go the same way; both have work under way all the time.
 */
struct eth_load {
	unsigned int queues;
	uint32_t len;		  /* of a frame, without FCS */
	unsigned int warm, count; /* frames before the measurement, and in it */
	bool rdma;
};

static const struct {
	uint32_t len;
	unsigned int window;
} writes = { 65536, 32 };

/*
 * Frames are counted twice: by the meter as they arrive at the port, and by their completions as
 * the host gets them. Small frames can arrive faster than PCIe takes them, and the net device has
 * no flow control: then the figure is what the host gets.
 */
struct eth_run {
	const struct eth_load *load;
	struct rig rig;
	struct net net;
	struct meter meter;
	unsigned int posted, done; /* WRITEs */
	uint64_t sent, got;	   /* frames */
	uint64_t first_cycle, last_cycle;
	struct losses losses;
};

static uint8_t received[NET_MAX_FRAME + 64];

static void put_frames(struct eth_run *r, uint64_t bus)
{
	for (unsigned int q = 0; q < r->load->queues; q++) {
		struct urdma_eh_ethq *tx = &r->net.side[0].q[q];

		for (; tx->tx_pi - tx->tx_ci < 255; r->sent++)
			urdma_eh_eth_put_tx(tx, bus, r->load->len, true, NULL);
		urdma_eh_eth_ring_tx(tx);
	}
}

static void put_writes(struct eth_run *r)
{
	struct rig_side *from = &r->rig.side[0], *to = &r->rig.side[1];
	struct urdma_eh_sge sge = { (uintptr_t)from->buffer, writes.len, from->mr.key };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
				    .signaled = true,
				    .raddr = (uintptr_t)to->buffer,
				    .rkey = to->mr.key,
				    .sge = &sge,
				    .n_sge = 1 };

	for (; r->posted < r->done + writes.window; r->posted++)
		bench_must(!urdma_eh_post_send(&from->qp[0], &wr), "post a WRITE");
}

/* Lets some cycles pass, then polls completions of both directions. */
static void turn(struct eth_run *r)
{
	const struct eth_load *l = r->load;
	struct urdma_eh_eth_cqe cqe;
	struct urdma_eh_cqe wc;

	rig_check(&r->rig,
		  urdma_cosim_run_until(r->rig.cosim, urdma_cosim_now(r->rig.cosim) + TURN), "run");
	while (urdma_eh_poll_cq(&r->rig.side[0].send_cq, &wc, 1)) {
		bench_must(!wc.status, "a WRITE beside Ethernet has failed");
		r->done++;
	}
	for (unsigned int q = 0; q < l->queues; q++) {
		while (urdma_eh_eth_poll(&r->net.side[0].q[q], &cqe))
			bench_must(!cqe.err, "a frame was not sent");
		while (net_recv(&r->net, 1, q, received, &cqe, 0)) {
			bench_must(cqe.len == l->len, "a frame has another length");
			if (r->got == l->warm)
				r->first_cycle = cqe.cycles;
			if (r->got == l->warm + l->count)
				r->last_cycle = cqe.cycles;
			r->got++;
		}
	}
}

static void count_losses(struct eth_run *r)
{
	struct losses *losses = &r->losses;

	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eh *eh = r->net.side[n].eh;

		losses->drops += urdma_eh_counter(eh, URDMA_CNT_RX_DROP_FULL);
		losses->timeouts += urdma_eh_counter(eh, URDMA_CNT_TX_TIMEOUT);
		losses->retrans += urdma_eh_counter(eh, URDMA_CNT_TX_RETRANS);
	}
	if (r->load->len > SMALLEST)
		losses->drops += r->sent - r->got;
}

static void eth_run(struct eth_run *r, const struct eth_load *l)
{
	struct rig_config config;
	struct net_config nc;
	uint64_t bus, last;

	memset(r, 0, sizeof(*r));
	r->load = l;
	rig_defaults(&config);
	config.cosim.threads = bench_threads();
	config.log_cqe = 12;
	config.conn.timeout = 14;
	config.memory.memory = 128u << 20;
	rig_start(&r->rig, &config);
	net_defaults(&nc);
	nc.queues = l->queues;
	nc.q.log_rx = 10;
	nc.q.log_cq = 11;
	nc.posted = 1023;
	net_start(&r->net, &r->rig, &nc);
	rig_fill(r->net.side[0].tx, l->len, 1);
	memcpy(r->net.side[0].tx, r->net.side[1].mac, 6);
	bus = urdma_embedded_bus(r->rig.host, r->net.side[0].tx);
	bench_settle(&r->rig);
	meter_start(&r->meter, urdma_cosim_port(r->rig.cosim, 1), METER_ETH, l->warm, l->count);
	while (!r->meter.closed || !r->last_cycle) {
		if (l->rdma)
			put_writes(r);
		put_frames(r, bus);
		turn(r);
	}
	/* Runs until nothing is under way; the host goes on polling. */
	do {
		last = r->got + r->done;
		for (unsigned int i = 0; i < 16; i++)
			turn(r);
	} while (r->got + r->done != last);
	count_losses(r);
	bench_account(&r->rig);
	net_stop(&r->net);
	rig_stop(&r->rig);
}

/* Gb/s as they arrived at the port, or million frames per second as the host got them. */
static double frames_figure(const struct eth_run *r, bool bytes)
{
	if (bytes)
		return meter_goodput(&r->meter, METER_ETH);
	return (double)r->load->count * 1000 /
	       (double)((r->last_cycle - r->first_cycle) * CYCLE_NS);
}

static struct limit frames_limit(uint32_t len, bool bytes)
{
	struct limit limit = limits_frames(bench_model, len);

	if (bytes)
		limit.value *= len * 8.0 / 1000;
	return limit;
}

static struct limit writes_limit(void)
{
	const struct limits_load l = { .opcode = URDMA_WR_WRITE,
				       .len = writes.len,
				       .mtu = 4096,
				       .stride = 64,
				       .qps = 1,
				       .window = writes.window,
				       .signaled = 1,
				       .doorbell = 1 };
	struct limit limit = limits_messages(bench_model, &l);

	limit.value *= writes.len * 8.0 / 1000;
	return limit;
}

/* One flow alone. */
static void alone(const char *name, const struct eth_load *l, bool bytes)
{
	struct eth_run r;
	struct row *row;

	if (!bench_wanted(name))
		return;
	eth_run(&r, l);
	row = table_add(&bench_table, name, frames_figure(&r, bytes), bytes ? "Gb/s" : "million/s",
			frames_limit(l->len, bytes));
	if (bytes)
		row->budget = row->limit.value * 0.95;
	row->losses = r.losses;
}

/* Frames and WRITEs, and the share of the wire that both have together. */
static void beside(const char *const name[3], const struct eth_load *l, bool bytes)
{
	const struct limit all = { 100, "wire" };
	struct eth_run r;
	double share;

	if (!bench_wanted(name[0]) && !bench_wanted(name[1]) && !bench_wanted(name[2]))
		return;
	eth_run(&r, l);
	share = (double)(r.meter.of[METER_ETH].line + r.meter.of[METER_RDMA].line) * 8 /
		(meter_ns(&r.meter) * bench_model->line) * 100;
	table_add(&bench_table, name[0], frames_figure(&r, bytes), bytes ? "Gb/s" : "million/s",
		  frames_limit(l->len, bytes))
		->losses = r.losses;
	table_add(&bench_table, name[1], meter_goodput(&r.meter, METER_RDMA), "Gb/s",
		  writes_limit())
		->losses = r.losses;
	table_add(&bench_table, name[2], share, "% of wire", all)->losses = r.losses;
}

void bench_ethernet(void)
{
	static const char *const large[] = { "Ethernet 1500 bytes beside WRITEs",
					     "WRITEs beside Ethernet 1500 bytes",
					     "Ethernet 1500 bytes and WRITEs, both" };
	static const char *const small[] = { "Ethernet 64 bytes beside WRITEs",
					     "WRITEs beside Ethernet 64 bytes",
					     "Ethernet 64 bytes and WRITEs, both" };

	alone("Ethernet 1500 bytes, 1 queue", &(struct eth_load){ 1, FRAME, 200, 1000, false },
	      true);
	alone("Ethernet 64 bytes, 1 queue", &(struct eth_load){ 1, SMALLEST, 400, 3000, false },
	      false);
	alone("Ethernet 64 bytes, 8 queues", &(struct eth_load){ 8, SMALLEST, 400, 3000, false },
	      false);
	beside(large, &(struct eth_load){ 1, FRAME, 200, 1500, true }, true);
	beside(small, &(struct eth_load){ 8, SMALLEST, 400, 3000, true }, false);
}
