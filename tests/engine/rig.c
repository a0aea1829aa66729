// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "counters.h"
#include "digest.h"
#include "drops.h"
#include "rig.h"

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
	urdma_eh_config_defaults(&config->eh);
	urdma_eh_conn_defaults(&config->conn, config->mtu);
	config->fault_seed = 1;
}

void rig_check(struct rig *rig, int result, const char *what)
{
	const char *error = rig->cosim ? urdma_cosim_error(rig->cosim) : NULL;

	if (!result && !error)
		return;
	fprintf(stderr, "rig: %s: %d%s%s\n", what, result, error ? ": " : "", error ? error : "");
	exit(EXIT_FAILURE);
}

bool rig_sends(const struct rig *rig, unsigned int side, unsigned int i)
{
	return (rig->config.xrc_back && i >= rig->config.qps / 2) == (side == 1);
}

void rig_make_qp(struct rig *rig, unsigned int n, unsigned int i)
{
	const struct rig_config *config = &rig->config;
	struct rig_side *side = &rig->side[n];
	bool target = config->xrc && !rig_sends(rig, n, i);
	struct urdma_eh_qp_attr attr = {
		.qpn = RIG_QPN(i),
		.pd = target ? RIG_XRCD : RIG_PD,
		.send_cq = &side->send_cq,
		.recv_cq = &side->recv_cq,
		.db_page = RIG_DB_PAGE,
		.log_sq = config->log_sq,
		.log_rq = config->log_rq,
		.log_sq_stride = config->log_stride,
		.log_rq_stride = config->log_rq_stride ? config->log_rq_stride : config->log_stride,
		.sig_all = config->sig_all,
		.priv = config->priv,
		.no_loop = i < 64 && (config->no_loop >> i & 1),
		.type = target		? URDMA_QPT_XRC_TGT
			: config->xrc	? URDMA_QPT_XRC_INI
			: config->types ? config->types[i]
					: config->type,
		.srq = config->srqs && !config->xrc ? &side->srq[i % config->srqs] : NULL,
		.kind = config->kind,
	};

	rig_check(rig, urdma_eh_create_qp(side->eh, &attr, &side->qp[i]), "create QP");
}

void rig_renew_qp(struct rig *rig, unsigned int side, unsigned int i)
{
	rig_check(rig, urdma_eh_destroy_qp(&rig->side[side].qp[i]), "destroy QP");
	rig_make_qp(rig, side, i);
}

static void make_srq(struct rig *rig, unsigned int n, unsigned int i)
{
	const struct rig_config *config = &rig->config;
	struct urdma_eh_srq_attr attr = {
		.srqn = RIG_SRQN(i),
		.pd = RIG_PD,
		.db_page = RIG_DB_PAGE,
		.log_entries = config->log_srq,
		.log_stride = config->log_rq_stride ? config->log_rq_stride : config->log_stride,
		.kind = config->kind,
		.xrc = config->xrc,
		.xrcd = RIG_XRCD,
		.cq = &rig->side[n].recv_cq,
	};
	struct rig_side *side = &rig->side[n];

	rig_check(rig, urdma_eh_create_srq(side->eh, &attr, &side->srq[i]), "create SRQ");
}

void rig_make_queues(struct rig *rig, unsigned int n)
{
	const struct rig_config *config = &rig->config;
	struct rig_side *side = &rig->side[n];

	rig_check(rig,
		  urdma_eh_create_cq(side->eh, 1, config->log_cqe, 1, RIG_DB_PAGE, config->kind,
				     &side->send_cq),
		  "create send CQ");
	rig_check(rig,
		  urdma_eh_create_cq(side->eh, 2, config->log_cqe, 1, RIG_DB_PAGE, config->kind,
				     &side->recv_cq),
		  "create receive CQ");
	for (unsigned int i = 0; i < config->srqs; i++)
		make_srq(rig, n, i);
	if (config->batch)
		urdma_eh_batch_begin(side->eh);
	for (unsigned int i = 0; i < config->qps; i++)
		rig_make_qp(rig, n, i);
	if (config->batch)
		rig_check(rig, urdma_eh_batch_end(side->eh), "create QPs");
}

static void start_side(struct rig *rig, unsigned int n)
{
	const struct rig_config *config = &rig->config;
	struct rig_side *side = &rig->side[n];

	rig_check(rig, urdma_eh_open(rig->host, n, &config->eh, &side->eh), "open");
	rig_check(rig, urdma_eh_alloc_pd(side->eh, RIG_PD), "allocate PD");
	if (config->xrc)
		rig_check(rig, urdma_eh_alloc_pd(side->eh, RIG_XRCD), "allocate XRC domain");
	side->buffer = urdma_embedded_alloc(rig->host, config->buffer);
	rig_check(rig, side->buffer ? 0 : -1, "allocate buffer");
	rig_check(rig,
		  urdma_eh_create_mr(
			  side->eh, 1, 0x5a, RIG_PD,
			  URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ |
				  URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_FLUSH_GLOBAL,
			  side->buffer, config->buffer, (uintptr_t)side->buffer, &side->mr),
		  "create MR");
	side->qp = calloc(config->qps, sizeof(*side->qp));
	side->srq = calloc(config->srqs + 1, sizeof(*side->srq));
	rig_check(rig, side->qp && side->srq ? 0 : -1, "memory for queues");
	rig_make_queues(rig, n);
}

void rig_restart_side(struct rig *rig, unsigned int n)
{
	urdma_eh_close(rig->side[n].eh);
	free(rig->side[n].qp);
	free(rig->side[n].srq);
	start_side(rig, n);
}

/* n pairs, a[i] with b[i]. */
static void connect_pairs(struct rig *rig, struct urdma_eh_qp *a, struct urdma_eh_qp *b,
			  unsigned int n)
{
	const struct rig_config *config = &rig->config;

	if (config->batch)
		rig_check(rig, urdma_eh_connect_many(a, b, n, &config->conn, config->ipv6),
			  "connect");
	for (unsigned int i = 0; i < n && !config->batch; i++)
		rig_check(rig, urdma_eh_connect_as(&a[i], &b[i], &config->conn, config->ipv6),
			  "connect");
}

/* The rig that was started last, and how many this process has started. */
static struct rig *rig_now;
static unsigned int rigs;

static void end_waves(struct rig *rig)
{
	for (unsigned int n = 0; n < rig->config.cosim.n_nics && rig->waves; n++)
		if (urdma_sim_waves(urdma_cosim_model(rig->cosim, n), NULL, NULL,
				    urdma_cosim_now(rig->cosim)))
			fprintf(stderr, "urdma%u.fst could not be written whole\n", n);
	rig->waves = false;
}

static void start_waves(void *ctx)
{
	const char *directory = getenv("URDMA_TEST_WAVES");
	struct rig *rig = ctx;

	rig->waves = true;
	for (unsigned int n = 0; n < rig->config.cosim.n_nics; n++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/urdma%u.fst", directory, n);
		rig_check(rig,
			  urdma_sim_waves(urdma_cosim_model(rig->cosim, n), path, NULL,
					  urdma_cosim_now(rig->cosim)),
			  "URDMA_TEST_WAVES, which needs a build with -DURDMA_TRACE=ON");
	}
}

/* The process ends; after a failure a rig may still be up. Its files have to be complete. */
static void ended(void)
{
	const char *where = getenv("URDMA_TEST_WHERE");
	FILE *f = where && rig_now ? fopen(where, "w") : NULL;

	if (f) {
		fprintf(f, "%u:%llu\n", rigs - 1,
			(unsigned long long)(urdma_cosim_now(rig_now->cosim) * URDMA_SIM_CYCLE_NS));
		fclose(f);
	}
	if (rig_now)
		end_waves(rig_now);
	rig_now = NULL;
}

/* cmocka aborts on a failure if CMOCKA_TEST_ABORT is set. */
static void aborted(int signal)
{
	(void)signal;
	ended();
}

/*
 * URDMA_TEST_WAVES=DIR: waves of each NIC. URDMA_TEST_WAVES_FROM=N:NS: only of the process's Nth
 * rig (from 0), from NS ns on; without it each rig writes all, over the files of the one before.
 * URDMA_TEST_WHERE=FILE: when the process fails, FILE gets the N:NS of this moment.
 */
static void watch(struct rig *rig)
{
	const char *from = getenv("URDMA_TEST_WAVES_FROM");
	unsigned long long ns = 0;
	unsigned int n;

	rig_now = rig;
	n = rigs++;
	if (!getenv("URDMA_TEST_WAVES") && !getenv("URDMA_TEST_WHERE"))
		return;
	signal(SIGABRT, aborted);
	if (!n)
		atexit(ended);
	if (!getenv("URDMA_TEST_WAVES"))
		return;
	if (from && sscanf(from, "%u:%llu", &n, &ns) != 2)
		rig_check(rig, -EINVAL, "URDMA_TEST_WAVES_FROM is not N:NS");
	if (n != rigs - 1)
		return;
	if (ns)
		rig_check(rig,
			  urdma_cosim_at(rig->cosim, ns / URDMA_SIM_CYCLE_NS, start_waves, rig),
			  "waves");
	else
		start_waves(rig);
}

static void record(void *ctx, const struct urdma_trace_event *event)
{
	struct rig *rig = ctx;

	urdma_recorder_add(rig->recorder, event);
}

static void start_events(struct rig *rig, const char *path)
{
	struct urdma_trace_nic nic[URDMA_COSIM_MAX_NICS];

	for (unsigned int n = 0; n < rig->config.cosim.n_nics; n++) {
		const struct urdma_eth_port *port = urdma_cosim_port(rig->cosim, n);

		nic[n] = (struct urdma_trace_nic){ port->name, port->line.mbps,
						   rig->config.cosim.pcie.mbps };
	}
	rig_check(rig,
		  urdma_recorder_open(path, nic, rig->config.cosim.n_nics, NULL, &rig->recorder),
		  "file of events");
	rig_check(rig, urdma_cosim_listen(rig->cosim, record, rig), "events");
}

/* Prints, once, the seed from which the seeds of all tests follow. */
static void tell_seed(void)
{
	static bool told;

	if (!told && getenv("SEED"))
		print_message("SEED=%s\n", getenv("SEED"));
	told = true;
}

void rig_start(struct rig *rig, const struct rig_config *config)
{
	const struct urdma_model_ops *model;

	tell_seed();
	memset(rig, 0, sizeof(*rig));
	rig->config = *config;
	if (!config->capture)
		rig->config.capture = getenv("URDMA_TEST_CAPTURE");
	if (!config->events)
		rig->config.events = getenv("URDMA_TEST_EVENTS");
	if (getenv("URDMA_TEST_NO_SKIP"))
		rig->config.cosim.no_skip = true;
	if (getenv("URDMA_TEST_THREADS"))
		rig->config.cosim.threads = (unsigned int)atoi(getenv("URDMA_TEST_THREADS"));
	model = config->model		      ? config->model
		: getenv("URDMA_TEST_DIGEST") ? &digest_model
					      : &urdma_model_verilated;
	rig_check(rig, urdma_cosim_create(&rig->config.cosim, model, &rig->cosim),
		  "create simulation");
	watch(rig);
	if (rig->config.events)
		start_events(rig, rig->config.events);
	rig_check(rig, urdma_embedded_create(rig->cosim, &config->memory, &rig->host),
		  "create host");
	for (unsigned int n = 0; n < config->cosim.n_nics; n++)
		start_side(rig, n);
	if (rig->config.capture) {
		for (unsigned int n = 0; n < config->cosim.n_nics; n++) {
			char path[512];

			snprintf(path, sizeof(path), "%s/urdma%u.pcapng", rig->config.capture, n);
			rig_check(rig, urdma_cosim_capture(rig->cosim, n, path), "capture");
		}
	}
	if (config->faults) {
		rig_check(rig, urdma_faults_create(config->fault_seed, &rig->faults), "faults");
		rig_check(rig, urdma_faults_attach(rig->faults, urdma_cosim_wire(rig->cosim, 0), 0),
			  "faults");
	}
	rig->config.conn.mtu = config->mtu;
	if (!config->loopback && config->cosim.n_nics == 2)
		connect_pairs(rig, rig->side[0].qp, rig->side[1].qp, config->qps);
	for (unsigned int n = 0; n < config->cosim.n_nics && config->loopback; n++)
		connect_pairs(rig, rig->side[n].qp, rig->side[n].qp + config->qps / 2,
			      config->qps / 2);
}

static void end(struct rig *rig)
{
	rig_now = NULL;
	for (unsigned int n = 0; n < rig->config.cosim.n_nics; n++) {
		free(rig->side[n].qp);
		free(rig->side[n].srq);
	}
	urdma_embedded_destroy(rig->host);
	urdma_cosim_destroy(rig->cosim);
	rig_check(&(struct rig){ .cosim = NULL }, urdma_recorder_close(rig->recorder), "events");
	urdma_faults_destroy(rig->faults);
}

/*
 * Compares the comments of the captures with the counters, before anything is closed.
 * URDMA_TEST_DROPS=exact, or home if NICs also send to themselves (drops.h).
 */
static void check_drops(struct rig *rig)
{
	const char *how = getenv("URDMA_TEST_DROPS");

	if (how && rig->config.capture && !urdma_cosim_error(rig->cosim))
		rig_check(rig, drops_check(rig, !strcmp(how, "home")) ? 0 : -EBADMSG,
			  "comments on dropped frames");
}

void rig_stop(struct rig *rig)
{
	check_drops(rig);
	for (unsigned int n = 0; n < rig->config.cosim.n_nics; n++) {
		struct rig_side *side = &rig->side[n];

		for (unsigned int i = 0; i < rig->config.qps; i++)
			rig_check(rig, urdma_eh_destroy_qp(&side->qp[i]), "destroy QP");
		for (unsigned int i = 0; i < rig->config.srqs; i++)
			rig_check(rig, urdma_eh_destroy_srq(&side->srq[i]), "destroy SRQ");
		rig_check(rig, urdma_eh_destroy_cq(&side->send_cq), "destroy CQ");
		rig_check(rig, urdma_eh_destroy_cq(&side->recv_cq), "destroy CQ");
		rig_check(rig, urdma_eh_destroy_mr(&side->mr), "destroy MR");
		rig_check(rig, urdma_eh_dealloc_pd(side->eh, RIG_PD), "deallocate PD");
		if (rig->config.xrc)
			rig_check(rig, urdma_eh_dealloc_pd(side->eh, RIG_XRCD),
				  "deallocate XRC domain");
		urdma_eh_close(side->eh);
	}
	end(rig);
}

void rig_abandon(struct rig *rig)
{
	for (unsigned int n = 0; n < rig->config.cosim.n_nics; n++)
		urdma_eh_close(rig->side[n].eh);
	end(rig);
}

void rig_fault(struct rig *rig, const char *format, ...)
{
	struct urdma_fault_rule rule;
	char text[160], error[160];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (urdma_fault_parse(text, &rule, error, sizeof(error))) {
		fprintf(stderr, "rig: fault %s: %s\n", text, error);
		exit(EXIT_FAILURE);
	}
	rig_check(rig, urdma_faults_add(rig->faults, &rule), text);
}

uint64_t rig_fault_count(const struct rig *rig, unsigned int side, enum urdma_fault_kind kind)
{
	return urdma_faults_count(rig->faults, side, kind);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

void rig_fill(void *p, size_t len, uint32_t seed)
{
	uint8_t *byte = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = mix(((uint64_t)seed << 32) + i + 1);

		memcpy(byte + i, &v, len - i < 8 ? len - i : 8);
	}
}

size_t rig_verify(const void *p, size_t len, uint32_t seed)
{
	const uint8_t *byte = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = mix(((uint64_t)seed << 32) + i + 1);
		size_t n = len - i < 8 ? len - i : 8;

		if (!memcmp(byte + i, &v, n))
			continue;
		for (size_t k = 0; k < n; k++)
			if (byte[i + k] != (uint8_t)(v >> 8 * k))
				return i + k;
	}
	return len;
}

void rig_message(struct rig *rig, unsigned int i, unsigned int from, size_t at, uint32_t len,
		 uint32_t seed)
{
	struct rig_side *tx = &rig->side[from], *rx = &rig->side[!from];
	struct urdma_eh_sge src = { (uintptr_t)tx->buffer + at, len, tx->mr.key };
	struct urdma_eh_sge dst = { (uintptr_t)rx->buffer + at, len, rx->mr.key };
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_SEND, .signaled = true, .sge = &src, .n_sge = 1
	};
	struct urdma_eh_cqe cqe;

	rig_fill(tx->buffer + at, len, seed);
	memset(rx->buffer + at, 0xa5, len);
	assert_int_equal(urdma_eh_post_recv(&rx->qp[i], &dst, 1), 0);
	assert_int_equal(urdma_eh_post_send(&tx->qp[i], &wr), 0);
	rig_check(rig, urdma_eh_next_cqe(&rx->recv_cq, &cqe, 4000000), "wait for the receive CQE");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	assert_int_equal(cqe.qpn, rx->qp[i].qpn);
	assert_int_equal(cqe.length, len);
	assert_int_equal(rig_verify(rx->buffer + at, len, seed), len);
	rig_check(rig, urdma_eh_next_cqe(&tx->send_cq, &cqe, 4000000), "wait for the send CQE");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	assert_int_equal(cqe.qpn, tx->qp[i].qpn);
}

void rig_print_counters(const struct rig *rig)
{
	for (unsigned int n = 0; n < 2; n++) {
		fprintf(stderr, "side %u:", n);
		for (unsigned int i = 0; i < URDMA_CNT_N; i++) {
			uint64_t v = urdma_eh_counter(rig->side[n].eh, i);

			if (v)
				fprintf(stderr, " %s=%llu", urdma_counter_name(i),
					(unsigned long long)v);
		}
		fprintf(stderr, "\n");
	}
}

unsigned int rig_qp_state(struct urdma_eh_qp *qp)
{
	struct urdma_eh_cmd cpl;

	assert_int_equal(urdma_eh_query_qp(qp, &cpl), 0);
	return URDMA_GET(URDMA_CPL_QP1_STATE, cpl.w[1]);
}

uint32_t rig_draw_len(uint64_t *state, uint32_t mtu, uint32_t max)
{
	uint32_t len;

	switch (rig_draw(state, 8)) {
	case 0:
		len = rig_draw(state, 4);
		break;
	case 1:
	case 2:
		len = rig_draw(state, 130);
		break;
	case 3:
		len = mtu * (1 + rig_draw(state, 3)) + rig_draw(state, 3) - 1;
		break;
	case 4:
	case 5:
		len = rig_draw(state, 2 * mtu);
		break;
	default:
		len = rig_draw(state, max + 1);
	}
	return len > max ? max : len;
}

bool rig_wanted(const char *name, int n, char **words)
{
	for (int i = 0; i < n; i++)
		if (*words[i] == '=' ? !strcmp(name, words[i] + 1) : !!strstr(name, words[i]))
			return true;
	return !n;
}

bool rig_left_out(const char *name, unsigned int one_in)
{
	return getenv("URDMA_TEST_SHORT_WAITS") &&
	       (rig_hash(RIG_HASH_START ^ test_seed(0), name, strlen(name)) >> 32) % one_in;
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

uint64_t rig_hash_cqe(uint64_t hash, const struct urdma_eh_cqe *cqe)
{
	const uint64_t field[] = { cqe->status, cqe->opcode,  cqe->vendor,    cqe->wqe,
				   cqe->recv,	cqe->has_imm, cqe->solicited, cqe->qpn,
				   cqe->length, cqe->imm,     cqe->src_qpn,   cqe->srqn,
				   cqe->cycles };

	return rig_hash(hash, field, sizeof(field));
}
