// SPDX-License-Identifier: Apache-2.0
// Counter registers, summed over resets.
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Cycles that a NIC may take to answer all reads; after that it is stuck. */
#define READ_LIMIT 100000u

struct watch {
	struct urdma_counters *counters;
	unsigned int nic;
	uint64_t sum[URDMA_CNT_N]; /* from before the last reset */
};

struct urdma_counters {
	struct urdma_cosim *c;
	struct watch watch[URDMA_COSIM_MAX_NICS];
};

static const char *const names[URDMA_CNT_N] = {
#include "urdma_counter_names.inc"
};

const char *urdma_counter_name(unsigned int index)
{
	return index < URDMA_CNT_N && names[index] ? names[index] : "unknown";
}

struct reading {
	unsigned int left;
	unsigned int refs; /* reads that have not called back, plus the reader */
	int status;
	uint64_t value[URDMA_CNT_N];
};

struct slot {
	struct reading *r;
	unsigned int index;
};

static void unref(struct reading *r)
{
	if (!--r->refs)
		free(r);
}

static void done(void *arg, int status, uint64_t value)
{
	struct slot *s = arg;

	s->r->left--;
	if (status)
		s->r->status = status;
	s->r->value[s->index] = value;
	unref(s->r);
	free(s);
}

static bool all_done(void *arg)
{
	return !((struct reading *)arg)->left;
}

static int read_now(struct urdma_cosim *c, unsigned int nic, uint64_t value[URDMA_CNT_N])
{
	struct urdma_pcie *pcie = urdma_cosim_pcie(c, nic);
	struct reading *r = calloc(1, sizeof(*r));
	int ret = 0;

	if (!r)
		return -ENOMEM;
	r->refs = 1;
	for (unsigned int i = 0; i < URDMA_CNT_N; i++) {
		struct slot *s = malloc(sizeof(*s));

		if (!s) {
			ret = -ENOMEM;
			break;
		}
		s->r = r;
		s->index = i;
		r->refs++;
		r->left++;
		ret = urdma_pcie_mmio_read(pcie, URDMA_BAR_REGS, URDMA_REG_COUNTERS + 8 * i, 8,
					   done, s);
		if (ret) {
			r->refs--;
			r->left--;
			free(s);
			break;
		}
	}
	if (!ret)
		ret = urdma_cosim_run_cond(c, all_done, r, urdma_cosim_now(c) + READ_LIMIT);
	if (!ret)
		ret = r->status;
	if (!ret)
		memcpy(value, r->value, sizeof(r->value));
	unref(r);
	return ret;
}

static void before_reset(void *ctx)
{
	struct watch *w = ctx;
	uint64_t value[URDMA_CNT_N];

	if (read_now(w->counters->c, w->nic, value))
		return; /* a NIC that does not answer has no counters */
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		w->sum[i] += value[i];
}

struct urdma_counters *urdma_counters_create(struct urdma_cosim *c)
{
	struct urdma_counters *counters = calloc(1, sizeof(*counters));

	if (!counters)
		return NULL;
	counters->c = c;
	for (unsigned int i = 0; i < urdma_cosim_nics(c); i++) {
		counters->watch[i].counters = counters;
		counters->watch[i].nic = i;
		urdma_pcie_set_before_reset(urdma_cosim_pcie(c, i), before_reset,
					    &counters->watch[i]);
	}
	return counters;
}

void urdma_counters_destroy(struct urdma_counters *counters)
{
	if (!counters)
		return;
	for (unsigned int i = 0; i < urdma_cosim_nics(counters->c); i++)
		urdma_pcie_set_before_reset(urdma_cosim_pcie(counters->c, i), NULL, NULL);
	free(counters);
}

int urdma_counters_read(struct urdma_counters *counters, unsigned int nic,
			uint64_t values[URDMA_CNT_N])
{
	int ret = read_now(counters->c, nic, values);

	if (ret)
		memset(values, 0, URDMA_CNT_N * sizeof(*values));
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		values[i] += counters->watch[nic].sum[i];
	return ret;
}

void urdma_counters_cleared(const struct urdma_counters *counters, unsigned int nic,
			    uint64_t values[URDMA_CNT_N])
{
	memcpy(values, counters->watch[nic].sum, sizeof(counters->watch[nic].sum));
}
