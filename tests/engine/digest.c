// SPDX-License-Identifier: Apache-2.0
#include "digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct digest {
	void *model;
	char name[16];
	uint64_t cycle; /* of the NIC: skipped ones included */
	uint64_t sum;
	uint64_t transfers;
};

static void *create(const char *name, unsigned int index)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->sum = UINT64_C(0xcbf29ce484222325);
	d->model = urdma_model_verilated.create(name, index);
	if (!d->model) {
		free(d);
		return NULL;
	}
	return d;
}

static void destroy(void *model)
{
	const char *path = getenv("URDMA_TEST_DIGEST");
	struct digest *d = model;
	FILE *f = path ? fopen(path, "a") : NULL;

	urdma_model_verilated.destroy(d->model);
	if (path && (!f ||
		     fprintf(f, "%s %016llx of %llu transfers\n", d->name,
			     (unsigned long long)d->sum, (unsigned long long)d->transfers) < 0 ||
		     fclose(f))) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	free(d);
}

static void add(struct digest *d, uint64_t v)
{
	d->sum = (d->sum ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	d->sum ^= d->sum >> 29;
}

/* Only what counts: where keep says that there is data. */
static void add_data(struct digest *d, unsigned int stream, const uint32_t *data,
		     unsigned int dwords, uint64_t keep)
{
	d->transfers++;
	add(d, d->cycle * 8 + stream);
	add(d, keep);
	for (unsigned int i = 0; i < dwords; i++)
		add(d, data[i]);
}

static void add_pcie(struct digest *d, unsigned int stream, const struct urdma_pcie_beat *b)
{
	add_data(d, stream, b->data, (unsigned int)__builtin_popcount(b->keep),
		 b->keep | b->last << 16);
}

static void add_eth(struct digest *d, unsigned int stream, const struct urdma_eth_beat *b)
{
	uint32_t data[URDMA_SIM_BEAT_DW] = { 0 };

	memcpy(data, b->data, (size_t)__builtin_popcountll(b->keep));
	add_data(d, stream, data, URDMA_SIM_BEAT_DW, b->keep);
	add(d, (uint64_t)(b->last | b->error << 1));
}

static void cycle(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out)
{
	struct digest *d = model;

	urdma_model_verilated.cycle(d->model, in, out);
	if (!in->rst) {
		if (in->cq.valid && out->cq_ready)
			add_pcie(d, 0, &in->cq);
		if (in->rc.valid && out->rc_ready)
			add_pcie(d, 1, &in->rc);
		if (out->cc.valid && in->cc_ready)
			add_pcie(d, 2, &out->cc);
		if (out->rq.valid && in->rq_ready)
			add_pcie(d, 3, &out->rq);
		if (in->rx.valid)
			add_eth(d, 4, &in->rx);
		if (out->tx.valid && in->tx_ready)
			add_eth(d, 5, &out->tx);
		if (out->irq_valid && in->irq_ready)
			add_data(d, 6, NULL, 0, out->irq_vec);
		for (unsigned int i = 0; i < URDMA_SIM_TRACE_TAPS; i++) {
			const struct urdma_trace *t = &out->trace[i];

			if (!(out->traced >> i & 1))
				continue;
			add_data(d, 7, NULL, 0, i);
			add(d, (uint64_t)t->qpn << 40 | (uint64_t)t->psn << 16 | t->arg);
			add(d, t->ev);
		}
	}
	d->cycle += 1 + (in->skip_valid ? in->skip_cycles : 0);
}

const struct urdma_model_ops digest_model = {
	.create = create,
	.destroy = destroy,
	.cycle = cycle,
};
