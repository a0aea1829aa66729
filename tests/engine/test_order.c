// SPDX-License-Identifier: Apache-2.0
/*
 * A program may poll the last byte of a message instead of its CQE: the NIC writes the bytes of a
 * message in order, as ibv_query_qp_data_in_order() promises. The host looks at its memory every
 * few cycles, and must never see a byte before all bytes in front of it. WRITEs, SENDs into lists,
 * and READs of RC and UC, of one QP and of several at a time, with slow PCIe, and on a wire that
 * loses, doubles, delays and reorders frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "work.h"

#define LIMIT	 4000000u /* cycles */
#define STEP	 24u	  /* cycles between two checks */
#define MESSAGES 12u
#define QPS	 3u

/* The bytes of a message where they arrive, and how many have been seen. */
struct target {
	const struct work *w;
	unsigned int side;
	size_t seen;
};

/* Byte n of a message, in its target's memory; image: in the expected final contents. */
static const uint8_t *byte_at(struct rig *rig, const struct target *t, size_t n, bool image)
{
	unsigned int which = t->side != t->w->from;
	const uint8_t *slot = rig->side[t->side].buffer + t->w->at;

	for (unsigned int i = 0; i < t->w->n_sge[which]; i++) {
		const struct urdma_eh_sge *sge = &t->w->sge[which][i];

		if (n < sge->length) {
			size_t at = sge->addr - (uintptr_t)slot + n;

			return image ? &t->w->image[which][at] : slot + at;
		}
		n -= sge->length;
	}
	return NULL;
}

static bool is_there(struct rig *rig, const struct target *t, size_t n)
{
	return *byte_at(rig, t, n, false) == *byte_at(rig, t, n, true);
}

/* Checks that every byte before the last changed one is there. */
static void look(struct rig *rig, struct target *t)
{
	const uint8_t guard = *(rig->side[t->side].buffer + t->w->at);

	while (t->seen < t->w->len && is_there(rig, t, t->seen))
		t->seen++;
	for (size_t n = t->seen; n < t->w->len; n++)
		if (*byte_at(rig, t, n, false) != guard)
			fail_msg("%s of %u bytes, pair %u from side %u: byte %zu is written before "
				 "byte %zu",
				 work_name(t->w->opcode), t->w->len, t->w->pair, t->w->from, n,
				 t->seen);
}

static bool all_there(struct target *t)
{
	for (unsigned int i = 0; i < MESSAGES; i++)
		if (t[i].seen < t[i].w->len)
			return false;
	return true;
}

static void run(unsigned int mtu, bool uc, unsigned int qps, const char *faults)
{
	static const unsigned int rc_ops[] = { URDMA_WR_WRITE, URDMA_WR_READ, URDMA_WR_SEND };
	static const unsigned int uc_ops[] = { URDMA_WR_WRITE, URDMA_WR_SEND };
	struct work w[MESSAGES] = { 0 };
	struct target t[MESSAGES];
	struct rig_config config;
	struct rig rig;
	uint64_t end;
	size_t at = 0;

	rig_defaults(&config);
	config.qps = qps;
	config.mtu = mtu;
	config.log_stride = 8;
	config.type = uc ? URDMA_QPT_UC : URDMA_QPT_RC;
	config.conn.timeout = 5;
	config.faults = faults;
	config.cosim.pcie.stall_percent = 20;
	config.cosim.pcie.reorder = true;
	rig_start(&rig, &config);
	if (faults)
		rig_fault(&rig, "%s", faults);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		w[i] = (struct work){
			.opcode = uc ? uc_ops[i % 2] : rc_ops[i % 3],
			.from = i / 2 % 2,
			.pair = i % qps,
			.at = at,
			.len = 1 + i * 4001,
			.seed = 100 * mtu + i,
			.pieces = 1 + i % 5,
			.odd = 13 * i,
		};
		work_put(&rig, &w[i]);
		at += w[i].slot;
		t[i] = (struct target){
			.w = &w[i],
			.side = w[i].from ^ (w[i].opcode != URDMA_WR_READ),
		};
	}
	work_ring(&rig, w, MESSAGES);
	end = urdma_cosim_now(rig.cosim) + LIMIT;
	while (!all_there(t) && urdma_cosim_now(rig.cosim) < end) {
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + STEP),
			  "run");
		for (unsigned int i = 0; i < MESSAGES; i++)
			look(&rig, &t[i]);
	}
	assert_true(all_there(t));
	work_finish(&rig, w, MESSAGES, LIMIT, "in order");
	rig_stop(&rig);
}

static void test_rc(void **state)
{
	(void)state;
	for (unsigned int mtu = 1; mtu <= 5; mtu += 2) {
		run(mtu, false, 1, NULL);
		run(mtu, false, QPS, NULL);
	}
}

static void test_rc_loss(void **state)
{
	static const char *const faults[] = { "drop,p=5", "dup,p=10", "reorder,p=10",
					      "delay,ns=3000,p=10" };

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		run(1 + i % 3 * 2, false, QPS, faults[i]);
}

static void test_uc(void **state)
{
	(void)state;
	run(3, true, QPS, NULL);
	run(5, true, 1, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rc),
		cmocka_unit_test(test_rc_loss),
		cmocka_unit_test(test_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
