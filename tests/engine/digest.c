// SPDX-License-Identifier: Apache-2.0
#include "digest.h"

#include <stdio.h>
#include <stdlib.h>

struct digest {
	void *model;
	char name[16];
	uint64_t cycle; /* of the NIC, skipped cycles included */
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

/* Where data is, not the data itself: it contains addresses of this process. The tests compare the
 * data. */
static void add_beat(struct digest *d, unsigned int stream, uint64_t keep, unsigned int last)
{
	d->transfers++;
	add(d, d->cycle * 8 + stream);
	add(d, keep);
	add(d, last);
}

static void cycle(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out)
{
	struct digest *d = model;

	urdma_model_verilated.cycle(d->model, in, out);
	if (!in->rst) {
		if (in->cq.valid && out->cq_ready)
			add_beat(d, 0, in->cq.keep, in->cq.last);
		if (in->rc.valid && out->rc_ready)
			add_beat(d, 1, in->rc.keep, in->rc.last);
		if (out->cc.valid && in->cc_ready)
			add_beat(d, 2, out->cc.keep, out->cc.last);
		if (out->rq.valid && in->rq_ready)
			add_beat(d, 3, out->rq.keep, out->rq.last);
		if (in->rx.valid)
			add_beat(d, 4, in->rx.keep, in->rx.last);
		if (out->tx.valid && in->tx_ready)
			add_beat(d, 5, out->tx.keep, out->tx.last);
		if (out->irq_valid && in->irq_ready)
			add_beat(d, 6, out->irq_vec, 1);
		for (uint32_t m = out->traced; m; m &= m - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(m);
			const struct urdma_sim_lane *lane = &out->lane[i];

			add_beat(d, 7, i, 1);
			add(d, (uint64_t)lane->w[1] << 32 | lane->w[0]);
			add(d, lane->w[2]);
		}
	}
	d->cycle += 1 + (in->skip_valid ? in->skip_cycles : 0);
}

const struct urdma_model_ops digest_model = {
	.create = create,
	.destroy = destroy,
	.cycle = cycle,
};
