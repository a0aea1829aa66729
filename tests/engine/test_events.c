// SPDX-License-Identifier: Apache-2.0
/*
 * Events at the boundary of whole NICs, compared with other records of the same runs: captures,
 * the counters of PCIe and of the ports, and registers. Runs without faults, and with frames that
 * are lost, changed, doubled and late. A failure means that events.urdma does not say what
 * happened.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agree.h"
#include "events/trigger.h"
#include "trace/recorder.h"
#include "work.h"

#define LIMIT 4000000u
#define QPS   2u
#define TAGS  256u
#define CQES  16u

/* Cycles from the time stamp of a CQE to its event: the latency of urdma_cq without other work. */
#define STAMP_TO_CQE 13u

static struct rig rig;
static char dir[] = "/tmp/urdma-events-XXXXXX";
static char events_path[64];

static void start(bool faults, unsigned int stall_percent)
{
	struct rig_config config;

	rig_defaults(&config);
	config.qps = QPS;
	config.log_stride = 9;
	config.buffer = 8u << 20;
	config.memory.memory = 96u << 20;
	config.faults = faults;
	config.capture = dir;
	config.events = events_path;
	config.cosim.pcie.stall_percent = stall_percent;
	rig_start(&rig, &config);
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

/* Messages of every opcode, both ways, all at once. */
static void traffic(void)
{
	static const uint32_t len[] = { 0, 8, 60, 700, 4096, 9000, 70000 };
	const unsigned int n = 2 * QPS * 7;
	struct work *w = test_calloc(n, sizeof(*w));
	size_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		static const unsigned int op[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
						   URDMA_WR_SEND_IMM, URDMA_WR_ATOMIC_FA };

		w[i] = (struct work){ .opcode = op[i % 5],
				      .from = i % 2,
				      .pair = i / 2 % QPS,
				      .at = at,
				      .len = work_is_atomic(op[i % 5]) ? 8 : len[i % 7],
				      .seed = i,
				      .pieces = 1 + i % 3,
				      .odd = i % 61 };
		at += work_slot(w[i].len);
	}
	/* The first CQE of each side raises an interrupt. */
	for (unsigned int i = 0; i < 2; i++) {
		struct urdma_eh_event ev[8];

		urdma_eh_eq_poll(rig.side[i].eh, 1, ev, 8, true);
		urdma_eh_arm_cq(&rig.side[i].send_cq, false);
	}
	work_run(&rig, w, n, 4 * LIMIT, "traffic");
	test_free(w);
}

/* ---- what the events of a NIC say ------------------------------------------------------------ */

struct seen {
	struct agree agree; /* with the capture */
	uint64_t kinds[URDMA_TRACE_KINDS];
	uint64_t stalled[URDMA_TRACE_STREAMS];
	uint64_t read_bytes, write_bytes, resets;
	uint64_t tlp_bytes[2];	  /* of PCIe, to the host and from it */
	uint64_t begun[2];	  /* cycle + 1 of the frame that has not ended */
	bool rd[TAGS], reg[TAGS]; /* outstanding */
	struct urdma_trace_event reset, reg_read, reg_done; /* the last ones */
	uint64_t cqe[CQES];				    /* cycles of the first ones */
	uint64_t errors[2];				    /* of software, by CQE and by EQE */
};

/* Compares the end of a frame with the next one of the capture. */
static void compare(struct seen *s, unsigned int nic, const struct urdma_trace_event *e)
{
	bool out = e->kind == URDMA_TRACE_TX_END;
	uint64_t len = out ? e->tx_end.len : e->rx_end.len;

	if (!agree_frame(&s->agree, e))
		fail_msg("side %u: %s", nic, s->agree.wrong);
	/* It began this many beats before. */
	assert_true(s->begun[out]);
	assert_true(e->cycle - (s->begun[out] - 1) >= (len - 1) / 64 || len == 60);
	s->begun[out] = 0;
}

static void note(struct seen *s, unsigned int nic, const struct urdma_trace_event *e)
{
	static const struct urdma_trigger error = { .what = URDMA_TRIGGER_ERROR, .nic = -1 };
	const struct urdma_trace_desc *desc = &urdma_trace_desc[e->kind];
	uint32_t tlp_bytes;
	bool to_host;

	/* A trigger refuses values beyond these. */
	for (unsigned int i = 0; i < desc->n_fields; i++)
		assert_true(e->field[i] <= urdma_trace_max(&desc->field[i]));
	if (urdma_trigger_matches(&error, e))
		s->errors[e->kind == URDMA_TRACE_EQE]++;
	s->kinds[e->kind]++;
	tlp_bytes = urdma_trace_tlp_bytes(e, &to_host);
	s->tlp_bytes[!to_host] += tlp_bytes;
	switch (e->kind) {
	case URDMA_TRACE_TX:
	case URDMA_TRACE_RX:
		assert_false(s->begun[e->kind == URDMA_TRACE_TX]);
		s->begun[e->kind == URDMA_TRACE_TX] = e->cycle + 1;
		break;
	case URDMA_TRACE_TX_END:
	case URDMA_TRACE_RX_END:
		compare(s, nic, e);
		break;
	case URDMA_TRACE_RD:
		assert_true(e->rd.tag < TAGS && !s->rd[e->rd.tag]);
		s->rd[e->rd.tag] = true;
		s->read_bytes += e->rd.len;
		break;
	case URDMA_TRACE_RD_DONE:
		assert_true(e->rd_done.tag < TAGS && s->rd[e->rd_done.tag]);
		assert_int_equal(e->rd_done.error, 0);
		s->rd[e->rd_done.tag] = false;
		break;
	case URDMA_TRACE_WR:
		s->write_bytes += e->wr.len;
		break;
	case URDMA_TRACE_REG_READ:
		assert_true(e->reg_read.tag < TAGS && !s->reg[e->reg_read.tag]);
		s->reg[e->reg_read.tag] = true;
		s->reg_read = *e;
		break;
	case URDMA_TRACE_REG_DONE:
		assert_true(e->reg_done.tag < TAGS && s->reg[e->reg_done.tag]);
		s->reg[e->reg_done.tag] = false;
		s->reg_done = *e;
		break;
	case URDMA_TRACE_STALL:
		assert_true(e->stall.stream < URDMA_TRACE_STREAMS && e->stall.cycles);
		s->stalled[e->stall.stream] += e->stall.cycles;
		break;
	case URDMA_TRACE_CQE:
		if (s->kinds[URDMA_TRACE_CQE] <= CQES)
			s->cqe[s->kinds[URDMA_TRACE_CQE] - 1] = e->cycle;
		break;
	case URDMA_TRACE_RESET:
		memset(s->rd, 0, sizeof(s->rd));
		memset(s->reg, 0, sizeof(s->reg));
		s->reset = *e;
		break;
	default:
		break;
	}
}

/* Reads the whole file, as written so far. */
static void read_events(struct seen seen[2])
{
	struct urdma_events *events;
	struct urdma_trace_event e;
	char *error;
	int ret;

	memset(seen, 0, 2 * sizeof(*seen));
	settle();
	urdma_cosim_flush_captures(rig.cosim);
	assert_int_equal(urdma_recorder_flush(rig.recorder), 0);
	for (unsigned int n = 0; n < 2; n++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/urdma%u.pcapng", dir, n);
		if (!agree_open(&seen[n].agree, path))
			fail_msg("side %u: %s", n, seen[n].agree.wrong);
	}
	if (urdma_events_open(events_path, &events, &error))
		fail_msg("%s", error);
	assert_int_equal(urdma_events_nics(events), 2);
	while ((ret = urdma_events_next(events, &e)) == 1)
		note(&seen[e.nic], e.nic, &e);
	assert_int_equal(ret, 0);
	urdma_events_close(events);
	for (unsigned int n = 0; n < 2; n++)
		if (!agree_close(&seen[n].agree))
			fail_msg("side %u: %s", n, seen[n].agree.wrong);
}

/* To be called at rest: compares with what PCIe and the ports have counted since the beginning. */
static void against_counts(const struct seen *s, unsigned int n)
{
	const struct urdma_pcie_stats *ps = urdma_pcie_stats(urdma_cosim_pcie(rig.cosim, n));
	const struct urdma_eth_stats *es = &urdma_cosim_port(rig.cosim, n)->stats;

	assert_int_equal(s->kinds[URDMA_TRACE_RD], ps->rq_reads);
	assert_int_equal(s->read_bytes, ps->rq_read_bytes);
	assert_int_equal(s->kinds[URDMA_TRACE_RD_DONE], ps->rq_reads);
	assert_int_equal(s->kinds[URDMA_TRACE_WR], ps->rq_writes);
	assert_int_equal(s->write_bytes, ps->rq_write_bytes);
	assert_int_equal(s->kinds[URDMA_TRACE_IRQ], ps->irqs);
	assert_int_equal(s->tlp_bytes[0], ps->to_host_bytes);
	assert_int_equal(s->tlp_bytes[1], ps->from_host_bytes);
	assert_int_equal(s->kinds[URDMA_TRACE_REG_READ], s->kinds[URDMA_TRACE_REG_DONE]);
	assert_int_equal(s->agree.received, es->rx_frames);
	assert_int_equal(s->agree.sent, es->tx_frames);
	assert_int_equal(s->kinds[URDMA_TRACE_RX], es->rx_frames);
	assert_int_equal(s->kinds[URDMA_TRACE_TX], es->tx_frames);
	assert_int_equal(s->stalled[URDMA_TRACE_STREAM_RQ], ps->rq_stalled);
	assert_int_equal(s->stalled[URDMA_TRACE_STREAM_RC], ps->rc_stalled);
	assert_int_equal(s->stalled[URDMA_TRACE_STREAM_TX], es->tx_stalled);
	assert_false(s->errors[0] || s->errors[1]);
	/* Each of them has happened. */
	assert_true(ps->rq_reads && ps->rq_writes && ps->irqs && es->rx_frames && es->tx_frames &&
		    ps->rq_stalled && s->kinds[URDMA_TRACE_REG_READ] &&
		    s->kinds[URDMA_TRACE_REG_WRITE] && s->kinds[URDMA_TRACE_DB_WRITE]);
}

static void no_faults(void **state)
{
	struct seen seen[2];

	(void)state;
	start(false, 20);
	traffic();
	read_events(seen);
	for (unsigned int n = 0; n < 2; n++) {
		against_counts(&seen[n], n);
		assert_int_equal(seen[n].agree.received, seen[!n].agree.sent);
		/* The events of the simulation's beginning. */
		assert_int_equal(seen[n].kinds[URDMA_TRACE_RESET], 1);
	}
	rig_stop(&rig);
}

static void faults(void **state)
{
	static const char *const rule[] = { "drop,p=3", "fcs,p=2", "corrupt,p=2", "dup,p=2",
					    "reorder,p=2" };
	struct seen seen[2];

	(void)state;
	start(true, 20);
	for (unsigned int i = 0; i < sizeof(rule) / sizeof(rule[0]); i++)
		rig_fault(&rig, "%s", rule[i]);
	for (unsigned int i = 0; i < 3; i++)
		traffic();
	read_events(seen);
	for (unsigned int n = 0; n < 2; n++) {
		against_counts(&seen[n], n);
		assert_true(rig_fault_count(&rig, n, URDMA_FAULT_DROP) > 0);
		assert_true(rig_fault_count(&rig, n, URDMA_FAULT_FCS) > 0);
	}
	rig_stop(&rig);
}

/* The NIC's cycle counter is 0 in the cycle after the reset, also after one in mid-run. */
static void origin(void **state)
{
	struct seen seen[2];

	(void)state;
	start(false, 20);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t cycles = urdma_eh_reg(rig.side[1].eh, URDMA_REG_CYCLES);
		uint64_t at;

		/* It is the last register that was read. */
		read_events(seen);
		assert_int_equal(seen[1].kinds[URDMA_TRACE_RESET], 1 + i);
		at = seen[1].reset.cycle + 1 + cycles;
		assert_int_equal(seen[1].reg_read.reg_read.offset, URDMA_REG_CYCLES);
		assert_in_range(at, seen[1].reg_read.cycle, seen[1].reg_done.cycle - 1);
		assert_true(seen[1].reg_done.cycle - seen[1].reg_read.cycle < 40);
		if (!i)
			rig_restart_side(&rig, 1);
	}
	rig_abandon(&rig);
}

/* The time stamp of a CQE, which software reads, uses the same clock as its event. */
static void stamps(void **state)
{
	uint64_t stamp[2][CQES];
	struct seen seen[2];

	(void)state;
	start(false, 0);
	for (unsigned int i = 0; i < CQES; i++) {
		struct rig_side *tx = &rig.side[0], *rx = &rig.side[1];
		struct urdma_eh_sge src = { (uintptr_t)tx->buffer, 64, tx->mr.key };
		struct urdma_eh_sge dst = { (uintptr_t)rx->buffer, 64, rx->mr.key };
		struct urdma_eh_send wr = {
			.opcode = URDMA_WR_SEND, .signaled = true, .sge = &src, .n_sge = 1
		};
		struct urdma_eh_cqe cqe;

		assert_int_equal(urdma_eh_post_recv(&rx->qp[0], &dst, 1), 0);
		assert_int_equal(urdma_eh_post_send(&tx->qp[0], &wr), 0);
		rig_check(&rig, urdma_eh_next_cqe(&rx->recv_cq, &cqe, LIMIT), "receive CQE");
		stamp[1][i] = cqe.cycles;
		rig_check(&rig, urdma_eh_next_cqe(&tx->send_cq, &cqe, LIMIT), "send CQE");
		stamp[0][i] = cqe.cycles;
	}
	read_events(seen);
	for (unsigned int n = 0; n < 2; n++) {
		assert_int_equal(seen[n].kinds[URDMA_TRACE_CQE], CQES);
		/* For the first one, the NIC reads the address of the ring. */
		for (unsigned int i = 0; i < CQES; i++) {
			uint64_t at = seen[n].reset.cycle + 1 + stamp[n][i];

			assert_true(seen[n].cqe[i] >= at + STAMP_TO_CQE);
			if (i)
				assert_int_equal(seen[n].cqe[i] - at, STAMP_TO_CQE);
		}
	}
	rig_stop(&rig);
}

/* What a trigger takes for an error: errors that are reported to software, except the WQEs that are
 * flushed then. */
static void errors(void **state)
{
	struct rig_side *tx = &rig.side[0], *rx = &rig.side[1];
	struct urdma_eh_sge src;
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_WRITE, .signaled = true, .sge = &src, .n_sge = 1
	};
	struct seen seen[2];

	(void)state;
	start(false, 0);
	src = (struct urdma_eh_sge){ (uintptr_t)tx->buffer, 64, tx->mr.key };
	wr.raddr = (uintptr_t)rx->buffer;
	for (unsigned int i = 0; i < 4; i++) {
		/* The first one is good, the second is refused by the peer. */
		wr.rkey = i == 1 ? rx->mr.key + 1 : rx->mr.key;
		assert_int_equal(urdma_eh_post_send(&tx->qp[0], &wr), 0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		static const unsigned int status[] = { URDMA_WC_SUCCESS, URDMA_WC_REM_ACCESS_ERR,
						       URDMA_WC_FLUSH_ERR, URDMA_WC_FLUSH_ERR };
		struct urdma_eh_cqe cqe;

		rig_check(&rig, urdma_eh_next_cqe(&tx->send_cq, &cqe, LIMIT), "CQE");
		assert_int_equal(cqe.status, status[i]);
	}
	read_events(seen);
	assert_int_equal(seen[0].kinds[URDMA_TRACE_CQE], 4);
	assert_int_equal(seen[0].errors[0], 1);
	assert_int_equal(seen[0].errors[1], 0);
	assert_int_equal(seen[1].errors[0], 0);
	/* URDMA_EV_QP_ACCESS_ERR */
	assert_int_equal(seen[1].errors[1], 1);
	rig_abandon(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_faults), cmocka_unit_test(faults), cmocka_unit_test(origin),
		cmocka_unit_test(stamps),    cmocka_unit_test(errors),
	};
	char path[128];
	int ret;

	if (!mkdtemp(dir))
		return 1;
	snprintf(events_path, sizeof(events_path), "%s/events.urdma", dir);
	ret = cmocka_run_group_tests_name("engine/events", tests, NULL, NULL);
	for (unsigned int n = 0; n < 2; n++) {
		snprintf(path, sizeof(path), "%s/urdma%u.pcapng", dir, n);
		unlink(path);
	}
	unlink(events_path);
	rmdir(dir);
	return ret;
}
