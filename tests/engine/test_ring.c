// SPDX-License-Identifier: Apache-2.0
/*
 * As many NICs as possible on one switch: each writes to the next one, all at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

#define NICS	 URDMA_COSIM_MAX_NICS
#define MESSAGES 8u
#define LEN	 16384u
#define LIMIT	 2000000u /* cycles without a CQE that is awaited */

static void test_ring(void **state)
{
	struct rig_config config;
	struct rig rig;
	uint64_t tx_retrans = 0;

	(void)state;
	rig_defaults(&config);
	urdma_cosim_config_defaults(&config.cosim, NICS);
	config.cosim.n_wires = 0;
	config.cosim.n_switches = 1;
	config.cosim.sw[0].n = NICS;
	for (unsigned int i = 0; i < NICS; i++)
		config.cosim.sw[0].port[i] = i;
	config.qps = 2; /* to the next NIC, and from the one before */
	config.buffer = 2 * MESSAGES * LEN;
	rig_start(&rig, &config);
	for (unsigned int i = 0; i < NICS; i++) {
		struct rig_side *to = &rig.side[(i + 1) % NICS];

		rig_check(&rig, urdma_eh_connect(&rig.side[i].qp[0], &to->qp[1], config.mtu, false),
			  "connect");
		rig_fill(rig.side[i].buffer, MESSAGES * LEN, i);
	}
	for (unsigned int i = 0; i < NICS; i++) {
		struct rig_side *from = &rig.side[i], *to = &rig.side[(i + 1) % NICS];

		for (size_t m = 0; m < MESSAGES; m++) {
			struct urdma_eh_sge sge = { (uintptr_t)from->buffer + m * LEN, LEN,
						    from->mr.key };
			struct urdma_eh_send wr = {
				.opcode = URDMA_WR_WRITE,
				.signaled = true,
				.raddr = (uintptr_t)to->buffer + (MESSAGES + m) * LEN,
				.rkey = to->mr.key,
				.sge = &sge,
				.n_sge = 1,
			};

			assert_int_equal(urdma_eh_put_send(&from->qp[0], &wr), 0);
		}
	}
	for (unsigned int i = 0; i < NICS; i++)
		urdma_eh_ring_sq(&rig.side[i].qp[0]);
	for (unsigned int i = 0; i < NICS; i++) {
		for (size_t m = 0; m < MESSAGES; m++) {
			struct urdma_eh_cqe cqe;

			rig_check(&rig, urdma_eh_next_cqe(&rig.side[i].send_cq, &cqe, LIMIT),
				  "wait for a CQE");
			assert_int_equal(cqe.status, 0);
			assert_int_equal(cqe.qpn, RIG_QPN(0));
		}
	}
	for (unsigned int i = 0; i < NICS; i++) {
		assert_int_equal(rig_verify(rig.side[i].buffer + MESSAGES * LEN, MESSAGES * LEN,
					    (i + NICS - 1) % NICS),
				 MESSAGES * LEN);
		tx_retrans += urdma_eh_counter(rig.side[i].eh, URDMA_CNT_TX_RETRANS);
	}
	assert_int_equal(tx_retrans, 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
