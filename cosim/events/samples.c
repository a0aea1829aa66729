// SPDX-License-Identifier: Apache-2.0
#include "events/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "events/outputs.h"
#include "events/series.h"

struct counter {
	uint64_t value; /* from the last line that contains it */
	uint64_t sum;	/* in all slices */
	struct urdma_series series;
};

struct urdma_samples_reader {
	uint64_t cycles; /* of a sample */
	struct urdma_timeline timeline;
	uint64_t ns;   /* of the last line */
	json_t *index; /* NIC, kind, counter: its number in: */
	struct counter **counter;
	size_t n, size;
};

struct urdma_samples_reader *urdma_samples_reader_create(uint64_t sample_ns)
{
	struct urdma_samples_reader *r = calloc(1, sizeof(*r));
	uint64_t samples;

	if (!r)
		return NULL;
	r->cycles = sample_ns / URDMA_CYCLE_NS;
	r->index = json_object();
	if (!r->index) {
		free(r);
		return NULL;
	}
	/* Whole samples, so that samples after a pause are aligned to slices. */
	samples = (URDMA_PAUSE + r->cycles - 1) / r->cycles;
	urdma_timeline_init(&r->timeline, r->cycles, samples * r->cycles);
	return r;
}

void urdma_samples_reader_destroy(struct urdma_samples_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->counter[i]);
	free(r->counter);
	json_decref(r->index);
	free(r);
}

/* The object with this name; creates it if needed. NULL: no memory. */
static json_t *part_of(json_t *json, const char *key)
{
	json_t *part = json_object_get(json, key);

	if (part)
		return part;
	return json_object_set_new(json, key, json_object()) ? NULL : json_object_get(json, key);
}

/* NULL: no memory. */
static struct counter *counter_of(struct urdma_samples_reader *r, json_t *names, const char *name)
{
	json_t *number = json_object_get(names, name);

	if (number)
		return r->counter[json_integer_value(number)];
	if (r->n == r->size) {
		size_t size = r->size ? r->size * 2 : 64;
		struct counter **more = realloc(r->counter, size * sizeof(struct counter *));

		if (!more)
			return NULL;
		r->counter = more;
		r->size = size;
	}
	r->counter[r->n] = calloc(1, sizeof(struct counter));
	if (!r->counter[r->n])
		return NULL;
	r->n++;
	if (json_object_set_new(names, name, json_integer((json_int_t)r->n - 1)))
		return NULL;
	return r->counter[r->n - 1];
}

static int count(struct urdma_samples_reader *r, json_t *names, const char *name, json_t *value,
		 bool counts)
{
	struct counter *c = counter_of(r, names, name);
	uint64_t now = (uint64_t)json_integer_value(value);

	if (!c)
		return -ENOMEM;
	if (!json_is_integer(value) || now < c->value)
		return -EBADMSG;
	if (counts) {
		urdma_series_add(&c->series, &r->timeline, now - c->value);
		c->sum += now - c->value;
	}
	c->value = now;
	return 0;
}

static bool is_traffic(json_t *nic)
{
	json_t *port = json_object_get(nic, "port");

	return json_object_get(port, "tx_frames") || json_object_get(port, "rx_frames") ||
	       json_object_get(json_object_get(nic, "counters"), "cqe");
}

static int count_nic(struct urdma_samples_reader *r, const char *name, json_t *nic, bool counts)
{
	json_t *index = part_of(r->index, name), *part, *value;
	const char *kind, *key;
	int ret = index ? 0 : -ENOMEM;

	if (!ret && !json_is_object(nic))
		ret = -EBADMSG;
	if (ret)
		return ret;
	json_object_foreach(nic, kind, part)
	{
		json_t *names = part_of(index, kind);

		if (!names)
			return -ENOMEM;
		if (!json_is_object(part))
			return -EBADMSG;
		json_object_foreach(part, key, value)
		{
			ret = count(r, names, key, value, counts);
			if (ret)
				return ret;
		}
	}
	return 0;
}

int urdma_samples_reader_line(struct urdma_samples_reader *r, const char *line)
{
	json_t *json = json_loads(line, 0, NULL), *at = json_object_get(json, "ns"), *nic;
	uint64_t ns = (uint64_t)json_integer_value(at), end = ns / URDMA_CYCLE_NS;
	/* The run may end before the first sample does. */
	uint64_t begin = end > r->cycles ? end - r->cycles : 0;
	bool traffic = false, counts;
	const char *name;
	int ret = 0;

	if (!json_is_integer(at) || json_integer_value(at) < 0 || ns < r->ns) {
		json_decref(json);
		return -EBADMSG;
	}
	r->ns = ns;
	json_object_del(json, "ns");
	json_object_foreach(json, name, nic) traffic |= is_traffic(nic);
	urdma_timeline_move(&r->timeline, begin, traffic);
	/* Changes during a pause are in no slice. */
	counts = r->timeline.begun && r->timeline.last == begin;
	json_object_foreach(json, name, nic)
	{
		ret = count_nic(r, name, nic, counts);
		if (ret)
			break;
	}
	json_decref(json);
	return ret;
}

static json_t *slices(const struct urdma_timeline *t, const struct counter *c)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < t->n; i++)
		json_array_append_new(list, json_integer((json_int_t)c->series.sum[i]));
	return list;
}

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* The changed counters of a kind. */
static json_t *changed(struct urdma_samples_reader *r, json_t *names)
{
	json_t *json = json_object(), *number;
	const char *name;

	json_object_foreach(names, name, number)
	{
		struct counter *c = r->counter[json_integer_value(number)];

		urdma_series_end(&c->series, &r->timeline);
		if (c->sum)
			json_object_set_new(json, name, slices(&r->timeline, c));
	}
	return json;
}

json_t *urdma_samples_reader_json(struct urdma_samples_reader *r)
{
	const struct urdma_timeline *t = &r->timeline;
	json_t *json = json_object(), *begins = json_array(), *nics = json_object(), *kinds, *names;
	const char *nic, *kind;

	for (unsigned int i = 0; i < t->n; i++)
		json_array_append_new(begins, integer(t->from[i] * URDMA_CYCLE_NS));
	json_object_foreach(r->index, nic, kinds)
	{
		json_t *of = json_object();

		json_object_foreach(kinds, kind, names)
			json_object_set_new(of, kind, changed(r, names));
		json_object_set_new(nics, nic, of);
	}
	json_object_set_new(json, "slice_ns", integer(t->cycles * URDMA_CYCLE_NS));
	json_object_set_new(json, "slices_ns", begins);
	json_object_set_new(json, "nics", nics);
	return json;
}
