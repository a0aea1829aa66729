// SPDX-License-Identifier: Apache-2.0
/*
 * A send queue that is always full. The host looks at the CQ every few cycles. For each CQE it
 * posts another WQE in the slot, writes new data over the old message's data, and rings at once.
 * According to the contract (section 9) slot and data are free then. A READ in front makes many
 * WQEs complete together, and slow PCIe makes their CQEs come one by one. The NIC must not reject
 * the doorbell as out of range, and must not resend from the slot, which has another message now.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

#define STEP	 4u	  /* cycles between two checks */
#define LIMIT	 4000000u /* cycles without a CQE */
#define MESSAGES 1500u
#define SLOT	 8192u	   /* of a WRITE, on each side */
#define READ_AT	 0x200000u /* READs use the rest of the buffers */
#define READ_LEN 16384u

static struct rig rig;
static unsigned int entries;

static bool is_read(unsigned int i)
{
	return i % 61 == 0;
}

static uint32_t length(unsigned int i)
{
	static const uint32_t lengths[] = { 8, 64, 2000, 4096, 8192, 8, 8 };

	return is_read(i) ? READ_LEN : lengths[i % 7];
}

/* The source of a WRITE, or the target of a READ. */
static size_t here(unsigned int i)
{
	return is_read(i) ? READ_AT + i % entries * READ_LEN : i % entries * SLOT;
}

/* A WRITE may reach memory some time after its CQE, so its place is reused later. */
static size_t there(unsigned int i)
{
	return is_read(i) ? READ_AT + i % entries * READ_LEN : i % (2 * entries) * SLOT;
}

static uint64_t number(unsigned int i, unsigned int k)
{
	return (uint64_t)(i + 1) << 32 | k;
}

static void put(unsigned int i)
{
	uint64_t *data = (uint64_t *)(is_read(i) ? rig.side[1].buffer + there(i)
						 : rig.side[0].buffer + here(i));
	struct urdma_eh_sge sge = { (uintptr_t)rig.side[0].buffer + here(i), length(i),
				    rig.side[0].mr.key };
	struct urdma_eh_send wr = {
		.opcode = is_read(i) ? URDMA_WR_READ : URDMA_WR_WRITE,
		.signaled = true,
		.raddr = (uintptr_t)rig.side[1].buffer + there(i),
		.rkey = rig.side[1].mr.key,
		.sge = &sge,
		.n_sge = 1,
	};

	for (unsigned int k = 0; k < length(i) / 8; k++)
		data[k] = number(i, k);
	assert_int_equal(urdma_eh_put_send(&rig.side[0].qp[0], &wr), 0);
}

static void check_data(unsigned int i)
{
	const uint64_t *data = (const uint64_t *)(is_read(i) ? rig.side[0].buffer + here(i)
							     : rig.side[1].buffer + there(i));

	for (unsigned int k = 0; k < length(i) / 8; k++)
		if (data[k] != number(i, k))
			fail_msg("message %u: number %u is 0x%" PRIx64, i, k, data[k]);
}

static void check(unsigned int i, const struct urdma_eh_cqe *cqe)
{
	if (cqe->status || cqe->wqe != (i & 0xffff))
		fail_msg("message %u: the CQE is of WQE %u, with status %u", i, cqe->wqe,
			 cqe->status);
	if (is_read(i))
		check_data(i);
	if (i >= entries && !is_read(i - entries))
		check_data(i - entries);
}

static void run(unsigned int log_sq, unsigned int stall, const char *faults)
{
	unsigned int posted = 0, done = 0;
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	uint64_t seen;

	entries = 1u << log_sq;
	rig_defaults(&config);
	config.log_sq = log_sq;
	config.conn.timeout = 5;
	config.faults = faults;
	config.cosim.pcie.stall_percent = stall;
	config.cosim.pcie.latency_ns = 100;
	rig_start(&rig, &config);
	if (faults)
		rig_fault(&rig, "%s", faults);
	for (; posted < entries; posted++)
		put(posted);
	urdma_eh_ring_sq(&rig.side[0].qp[0]);
	seen = urdma_cosim_now(rig.cosim);
	while (done < MESSAGES) {
		uint64_t now = urdma_cosim_now(rig.cosim);

		rig_check(&rig, urdma_cosim_run_until(rig.cosim, now + STEP), "messages");
		while (urdma_eh_poll_cq(&rig.side[0].send_cq, &cqe, 1)) {
			check(done++, &cqe);
			put(posted++);
			urdma_eh_ring_sq(&rig.side[0].qp[0]);
			seen = now;
		}
		if (now > seen + LIMIT)
			fail_msg("message %u does not complete", done);
	}
	rig_stop(&rig);
}

static void test_full(void **state)
{
	(void)state;
	for (unsigned int log_sq = 4; log_sq <= 7; log_sq++) {
		run(log_sq, 0, NULL);
		run(log_sq, 60, NULL);
	}
}

static void test_loss(void **state)
{
	static const char *const faults[] = { "drop,p=1", "dup,p=5", "reorder,p=5",
					      "delay,ns=3000,p=5" };

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		run(5 + i % 2, 40 * (i % 2), faults[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
