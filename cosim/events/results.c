// SPDX-License-Identifier: Apache-2.0
#include "events/results.h"

#include <errno.h>
#include <stdlib.h>

#include "events/outputs.h"

struct urdma_results {
	struct urdma_csv *csv;
	struct urdma_perfetto *perfetto;
	struct urdma_sink sink[URDMA_RESULTS + 1];
	unsigned int n_sinks;
	struct urdma_follow *follow;
};

static int open_file(struct urdma_results *r, const struct urdma_results_config *config,
		     enum urdma_result which)
{
	const char *path = config->path[which];
	struct urdma_sink sink;
	int ret;

	if (!path)
		return 0;
	if (which == URDMA_RESULT_CSV) {
		ret = urdma_csv_open(path, config->nic, &r->csv);
		sink = urdma_csv_sink(r->csv);
	} else {
		ret = urdma_perfetto_open(path, config->nic, config->n_nics, config->trigger,
					  &r->perfetto);
		sink = urdma_perfetto_sink(r->perfetto);
	}
	if (!ret)
		r->sink[r->n_sinks++] = sink;
	return ret;
}

int urdma_results_open(const struct urdma_results_config *config, struct urdma_results **results,
		       enum urdma_result *which)
{
	struct urdma_results *r = calloc(1, sizeof(*r));
	int ret = 0;

	*which = URDMA_RESULTS;
	if (!r)
		return -ENOMEM;
	for (unsigned int i = 0; i < URDMA_RESULTS && !ret; i++) {
		ret = open_file(r, config, i);
		if (ret)
			*which = i;
	}
	r->sink[r->n_sinks++] = config->another;
	if (!ret) {
		r->follow = urdma_follow_create(config->n_nics, r->sink, r->n_sinks);
		ret = r->follow ? 0 : -ENOMEM;
	}
	if (ret)
		urdma_results_destroy(r);
	else
		*results = r;
	return ret;
}

int urdma_results_event(struct urdma_results *r, const struct urdma_trace_event *event)
{
	return urdma_follow_event(r->follow, event);
}

int urdma_results_end(struct urdma_results *r)
{
	return urdma_follow_end(r->follow);
}

int urdma_results_flush(struct urdma_results *r, enum urdma_result which)
{
	return which == URDMA_RESULT_CSV ? urdma_csv_flush(r->csv)
					 : urdma_perfetto_flush(r->perfetto);
}

int urdma_results_close(struct urdma_results *r, enum urdma_result which)
{
	int ret;

	if (which == URDMA_RESULT_CSV) {
		ret = urdma_csv_close(r->csv);
		r->csv = NULL;
	} else {
		ret = urdma_perfetto_close(r->perfetto);
		r->perfetto = NULL;
	}
	return ret;
}

void urdma_results_destroy(struct urdma_results *r)
{
	if (!r)
		return;
	urdma_follow_destroy(r->follow);
	urdma_csv_close(r->csv);
	urdma_perfetto_close(r->perfetto);
	free(r);
}
