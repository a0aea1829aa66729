// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rig_defaults(struct rig_config *config)
{
	*config = (struct rig_config){
		.qps = 1,
		.mtu = 5,
		.buffer = 4u << 20,
		.log_sq = 8,
		.log_rq = 8,
		.log_stride = 6,
		.log_cqe = 10,
	};
	urdma_cosim_config_defaults(&config->cosim, 2);
	urdma_embedded_config_defaults(&config->memory);
}

void rig_check(struct rig *rig, int result, const char *what)
{
	const char *error = rig->cosim ? urdma_cosim_error(rig->cosim) : NULL;

	if (!result && !error)
		return;
	fprintf(stderr, "rig: %s: %d%s%s\n", what, result, error ? ": " : "", error ? error : "");
	exit(EXIT_FAILURE);
}

static void start_side(struct rig *rig, unsigned int n)
{
	const struct rig_config *config = &rig->config;
	struct rig_side *side = &rig->side[n];

	rig_check(rig, urdma_eh_open(rig->host, n, NULL, &side->eh), "open");
	rig_check(rig, urdma_eh_alloc_pd(side->eh, RIG_PD), "allocate PD");
	side->buffer = urdma_embedded_alloc(rig->host, config->buffer);
	rig_check(rig, side->buffer ? 0 : -1, "allocate buffer");
	rig_check(rig,
		  urdma_eh_create_mr(side->eh, 1, 0x5a, RIG_PD,
				     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE |
					     URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC,
				     side->buffer, config->buffer, (uintptr_t)side->buffer,
				     &side->mr),
		  "create MR");
	rig_check(rig,
		  urdma_eh_create_cq(side->eh, 1, config->log_cqe, 1, RIG_DB_PAGE, config->kind,
				     &side->send_cq),
		  "create send CQ");
	rig_check(rig,
		  urdma_eh_create_cq(side->eh, 2, config->log_cqe, 1, RIG_DB_PAGE, config->kind,
				     &side->recv_cq),
		  "create receive CQ");
	for (unsigned int i = 0; i < config->qps; i++) {
		struct urdma_eh_qp_attr attr = {
			.qpn = RIG_QPN(i),
			.pd = RIG_PD,
			.send_cq = &side->send_cq,
			.recv_cq = &side->recv_cq,
			.db_page = RIG_DB_PAGE,
			.log_sq = config->log_sq,
			.log_rq = config->log_rq,
			.log_sq_stride = config->log_stride,
			.log_rq_stride = config->log_stride,
			.sig_all = config->sig_all,
			.kind = config->kind,
		};

		rig_check(rig, urdma_eh_create_qp(side->eh, &attr, &side->qp[i]), "create QP");
	}
}

void rig_start(struct rig *rig, const struct rig_config *config)
{
	memset(rig, 0, sizeof(*rig));
	rig->config = *config;
	rig_check(rig, urdma_cosim_create(&config->cosim, &urdma_model_verilated, &rig->cosim),
		  "create simulation");
	rig_check(rig, urdma_embedded_create(rig->cosim, &config->memory, &rig->host),
		  "create host");
	for (unsigned int n = 0; n < 2; n++)
		start_side(rig, n);
	if (config->capture) {
		for (unsigned int n = 0; n < 2; n++) {
			char path[512];

			snprintf(path, sizeof(path), "%s/urdma%u.pcapng", config->capture, n);
			rig_check(rig, urdma_cosim_capture(rig->cosim, n, path), "capture");
		}
	}
	for (unsigned int i = 0; i < config->qps; i++)
		rig_check(rig,
			  urdma_eh_connect(&rig->side[0].qp[i], &rig->side[1].qp[i], config->mtu,
					   config->ipv6),
			  "connect");
}

void rig_stop(struct rig *rig)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *side = &rig->side[n];

		for (unsigned int i = 0; i < rig->config.qps; i++)
			rig_check(rig, urdma_eh_destroy_qp(&side->qp[i]), "destroy QP");
		rig_check(rig, urdma_eh_destroy_cq(&side->send_cq), "destroy CQ");
		rig_check(rig, urdma_eh_destroy_cq(&side->recv_cq), "destroy CQ");
		rig_check(rig, urdma_eh_destroy_mr(&side->mr), "destroy MR");
		rig_check(rig, urdma_eh_dealloc_pd(side->eh, RIG_PD), "deallocate PD");
		urdma_eh_close(side->eh);
	}
	urdma_embedded_destroy(rig->host);
	urdma_cosim_destroy(rig->cosim);
}

uint64_t rig_hash(uint64_t hash, const void *p, size_t len)
{
	const uint8_t *byte = p;

	while (len--) {
		hash ^= *byte++;
		hash *= 0x100000001b3ull;
	}
	return hash;
}
