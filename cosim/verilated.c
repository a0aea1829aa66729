// SPDX-License-Identifier: Apache-2.0
// The Verilated NIC as a model of the scheduler.
#include "scheduler.h"

static void *create(const char *name, unsigned int index)
{
	(void)index;
	return urdma_sim_create(name);
}

static void destroy(void *model)
{
	urdma_sim_destroy(model);
}

static void cycle(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out)
{
	urdma_sim_cycle(model, in, out);
}

const struct urdma_model_ops urdma_model_verilated = {
	.create = create,
	.destroy = destroy,
	.cycle = cycle,
};
