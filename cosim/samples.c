// SPDX-License-Identifier: Apache-2.0
// samples.jsonl: counters over time.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "program.h"

struct urdma_samples {
	struct urdma_output *out;	    /* NULL: the file has ended */
	json_t *last[URDMA_COSIM_MAX_NICS]; /* values after the NIC's last line */
};

/* Read from the model, not from registers, so that samples do not change the run. */
static json_t *counters(const struct urdma_program *p, unsigned int nic)
{
	uint64_t now[URDMA_CNT_N], cleared[URDMA_CNT_N];
	json_t *json = json_object();

	urdma_counters_cleared(p->counters, nic, cleared);
	/* A reset clears the registers, and has already counted them. */
	if (urdma_pcie_in_reset(urdma_cosim_pcie(p->c, nic)))
		memset(now, 0, sizeof(now));
	else
		urdma_sim_counters(urdma_cosim_model(p->c, nic), now);
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		json_object_set_new(json, urdma_counter_name(i),
				    json_integer((json_int_t)(now[i] + cleared[i])));
	return json;
}

static json_t *values(const struct urdma_program *p, unsigned int nic)
{
	json_t *json = json_object(), *port = json_object();

	urdma_program_put_port(port, &urdma_cosim_port(p->c, nic)->stats);
	json_object_set_new(json, "counters", counters(p, nic));
	json_object_set_new(json, "port", port);
	json_object_set_new(json, "pcie", urdma_program_pcie(p, nic));
	return json;
}

/* The changed counters; NULL: none. before NULL: all were 0. */
static json_t *changed(json_t *now, const json_t *before)
{
	json_t *json = json_object(), *value, *part;
	const char *key;

	json_object_foreach(now, key, value)
	{
		const json_t *old = before ? json_object_get(before, key) : NULL;

		if (json_is_object(value)) {
			part = changed(value, old);
			if (part)
				json_object_set_new(json, key, part);
		} else if (json_integer_value(value) != json_integer_value(old)) {
			json_object_set(json, key, value);
		}
	}
	if (json_object_size(json))
		return json;
	json_decref(json);
	return NULL;
}

static void write_line(struct urdma_samples *s, json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);
	struct iovec part[] = { { text, text ? strlen(text) : 0 }, { (char[]){ '\n' }, 1 } };

	if (text)
		urdma_output_record(s->out, part, 2);
	free(text);
}

static void take(void *ctx, uint64_t cycle)
{
	json_t *line = json_pack("{s:I}", "ns", (json_int_t)(cycle * URDMA_SIM_CYCLE_NS));
	struct urdma_program *p = ctx;
	struct urdma_samples *s = p->samples;

	for (unsigned int i = 0; i < p->opt.cosim.n_nics && s->out; i++) {
		json_t *now = values(p, i), *part = changed(now, s->last[i]);

		json_decref(s->last[i]);
		s->last[i] = now;
		if (part)
			json_object_set_new(line, urdma_cosim_port(p->c, i)->name, part);
	}
	if (s->out && json_object_size(line) > 1)
		write_line(s, line);
	json_decref(line);
}

/* Closes the file at the end of the run, or after a write error. */
static void end(struct urdma_program *p)
{
	struct urdma_samples *s = p->samples;
	int ret = urdma_output_close(s->out);

	s->out = NULL;
	urdma_cosim_sample(p->c, 0, NULL, NULL);
	if (ret)
		urdma_program_not_whole(p, URDMA_SAMPLES, ret);
}

int urdma_program_open_samples(struct urdma_program *p)
{
	struct urdma_samples *s;
	char path[4096];
	int ret;

	if (!p->opt.sample_ns)
		return 0;
	p->samples = s = calloc(1, sizeof(*s));
	snprintf(path, sizeof(path), "%s/" URDMA_SAMPLES, p->opt.out);
	ret = s ? urdma_output_open(path, &s->out) : -ENOMEM;
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
	else
		urdma_cosim_sample(p->c, p->opt.sample_ns / URDMA_SIM_CYCLE_NS, take, p);
	return ret != 0;
}

void urdma_program_flush_samples(struct urdma_program *p)
{
	if (p->samples && p->samples->out)
		urdma_output_flush(p->samples->out);
}

void urdma_program_watch_samples(struct urdma_program *p)
{
	if (p->samples && p->samples->out && urdma_output_error(p->samples->out))
		end(p);
}

void urdma_program_close_samples(struct urdma_program *p)
{
	if (!p->samples || !p->samples->out)
		return;
	take(p, urdma_cosim_now(p->c));
	end(p);
}

void urdma_program_free_samples(struct urdma_program *p)
{
	if (!p->samples)
		return;
	urdma_output_close(p->samples->out);
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_NICS; i++)
		json_decref(p->samples->last[i]);
	free(p->samples);
	p->samples = NULL;
}
