// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of completion events: how long a CQE waits for its event, and how many messages share one.
 * Both times are those that the NIC wrote into CQE and EQE.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

#define PERIOD	      10u /* microseconds */
#define CYCLES_PER_US (1000.0 / CYCLE_NS)
#define COUNT	      16u
#define MESSAGES      512u

/* Sends n messages of one QP; their receive CQEs stay in the CQ of side 1. */
static void send_some(struct rig *rig, unsigned int n)
{
	struct rig_side *rx = &rig->side[1];
	struct urdma_eh_sge sge = { (uintptr_t)rx->buffer, 64, rx->mr.key };
	uint8_t data[16] = { 0 };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
				    .inline_data = data,
				    .inline_len = sizeof(data) };

	for (unsigned int i = 0; i < n; i++) {
		bench_must(!urdma_eh_put_recv(&rx->qp[0], &sge, 1), "post receive");
		bench_must(!urdma_eh_put_send(&rig->side[0].qp[0], &wr), "post send");
	}
	urdma_eh_ring_rq(&rx->qp[0]);
	urdma_eh_ring_sq(&rig->side[0].qp[0]);
}

static void start(struct rig *rig, unsigned int count, unsigned int period)
{
	struct rig_config config;

	rig_defaults(&config);
	rig_start(rig, &config);
	bench_must(!urdma_eh_modify_cq(&rig->side[1].recv_cq, count, period), "MODIFY_CQ");
}

static void stop(struct rig *rig)
{
	bench_settle(rig);
	bench_account(rig);
	rig_stop(rig);
}

/* The fourth of single messages, when page tables are on chip. */
static double wait_of_one(unsigned int count, unsigned int period)
{
	struct urdma_eh_event ev[4];
	struct urdma_eh_cqe cqe;
	struct rig rig;
	double wait = NAN;

	start(&rig, count, period);
	for (unsigned int i = 0; i < 4; i++) {
		urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
		bench_settle(&rig);
		send_some(&rig, 1);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) +
								   2 * period * 250 + 2000),
			  "event");
		bench_must(urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1) == 1 && !cqe.status,
			   "message");
		bench_must(urdma_eh_eq_poll(rig.side[1].eh, 1, ev, 4, false) == 1, "event");
		wait = (double)(ev[0].cycles - cqe.cycles);
	}
	stop(&rig);
	return wait;
}

/* Bursts of as many messages as one event waits for. An event that comes early means that another
 * one is needed. */
static double messages_of_one(void)
{
	unsigned int taken = 0, events = 0;
	struct urdma_eh_event ev[8];
	struct urdma_eh_cqe cqe[COUNT];
	struct rig rig;

	start(&rig, COUNT, PERIOD);
	for (unsigned int sent = COUNT; sent <= MESSAGES; sent += COUNT) {
		urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
		bench_settle(&rig);
		send_some(&rig, COUNT);
		for (unsigned int waits = 0; taken < sent; waits++) {
			bench_must(waits < 1000, "event");
			rig_check(
				&rig,
				urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 100),
				"burst");
			if (!urdma_eh_eq_poll(rig.side[1].eh, 1, ev, 8, false))
				continue;
			events++;
			taken += urdma_eh_poll_cq(&rig.side[1].recv_cq, cqe, COUNT);
			urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
		}
	}
	stop(&rig);
	return (double)MESSAGES / events;
}

void bench_events(void)
{
	struct row *row;

	if (bench_wanted("event")) {
		row = table_add(&bench_table, "event: CQE to EQE", wait_of_one(0, 0), "cycles",
				(struct limit){ 1, "register" });
		row->less = true;
	}
	if (bench_wanted("event, moderated")) {
		row = table_add(&bench_table, "event: CQE to EQE, a period of 10 us",
				wait_of_one(COUNT, PERIOD), "cycles",
				(struct limit){ PERIOD * CYCLES_PER_US, "period" });
		row->less = true;
		table_add(&bench_table, "event: messages of one, a count of 16", messages_of_one(),
			  "messages", (struct limit){ COUNT, "count" });
	}
}
