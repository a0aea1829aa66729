// SPDX-License-Identifier: Apache-2.0
// The data of the report as JSON. docs/events.md describes it.
#include "events/moments.h"

static const struct {
	const char *name;
	double percent;
} percentiles[] = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p99_9", 99.9 } };

static void set(json_t *json, const char *key, uint64_t value)
{
	json_object_set_new(json, key, json_integer((json_int_t)value));
}

static void set_real(json_t *json, const char *key, double value)
{
	json_object_set_new(json, key, json_real(value));
}

static json_t *distribution(const struct urdma_histogram *h)
{
	json_t *json = json_object();

	set(json, "n", h->n);
	set_real(json, "mean", urdma_histogram_mean(h));
	for (unsigned int i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
		set(json, percentiles[i].name,
		    urdma_histogram_percentile(h, percentiles[i].percent));
	set(json, "max", h->max);
	return json;
}

/*
 * `buckets`: [from, to, count] of non-empty buckets, URDMA_MERGED merged into one; to is exclusive.
 * `split`: the mean of each stage over the messages in each bucket. split NULL: not known.
 */
static void buckets(json_t *json, const struct urdma_histogram *h, urdma_split *const *split)
{
	json_t *list = json_array(), *splits = json_array();

	for (unsigned int i = 0; i < URDMA_HISTOGRAM_BUCKETS * URDMA_HISTOGRAM_OCTAVES;
	     i += URDMA_MERGED) {
		uint64_t from = 0, to = 0, low, high, n = 0;
		unsigned int octave = i / URDMA_HISTOGRAM_BUCKETS;
		json_t *means;

		if (!h->octave[octave])
			continue;
		for (unsigned int k = 0; k < URDMA_MERGED; k++) {
			n += urdma_histogram_bucket(h, i + k, &low, &high);
			from = k ? from : low;
			to = high;
		}
		if (!n)
			continue;
		json_array_append_new(list, json_pack("[I, I, I]", (json_int_t)from, (json_int_t)to,
						      (json_int_t)n));
		if (!split || !split[octave])
			continue;
		means = json_array();
		for (unsigned int k = 0; k < URDMA_STAGES; k++)
			json_array_append_new(
				means,
				json_real((double)(*split[octave])[i % URDMA_HISTOGRAM_BUCKETS /
								   URDMA_MERGED][k] /
					  (double)n));
		json_array_append_new(splits, means);
	}
	json_object_set_new(json, "buckets", list);
	if (split)
		json_object_set_new(json, "split", splits);
	else
		json_decref(splits);
}

static json_t *causes(const uint64_t *n)
{
	json_t *json = json_object();

	for (unsigned int i = 1; i < URDMA_CAUSES; i++)
		set(json, urdma_name_cause(i), n[i]);
	return json;
}

static json_t *messages(const struct urdma_messages *m, urdma_split *const *split)
{
	double ns = (double)(m->last - m->first) * URDMA_CYCLE_NS;
	json_t *json = json_object(), *stages = json_object(), *incomplete = json_object(), *part;

	set(json, "messages", m->n);
	set(json, "failed", m->failed);
	set(json, "completions", m->completions);
	set(json, "doorbells", m->doorbells);
	set(json, "bytes", m->bytes);
	set(json, "first_ns", m->first * URDMA_CYCLE_NS);
	set(json, "last_ns", m->last * URDMA_CYCLE_NS);
	set_real(json, "goodput_gbps", ns > 0 ? (double)m->bytes * 8 / ns : 0);
	set_real(json, "messages_per_s", ns > 0 ? (double)m->n * 1e9 / ns : 0);
	part = distribution(&m->whole);
	buckets(part, &m->whole, split);
	json_object_set_new(json, "latency_ns", part);
	for (unsigned int i = 0; i < URDMA_STAGES; i++) {
		part = distribution(&m->stage[i]);
		set_real(part, "share",
			 m->whole.sum ? (double)m->stage[i].sum / (double)m->whole.sum : 0);
		json_object_set_new(stages, urdma_stage_name[i], part);
	}
	json_object_set_new(json, "stages_ns", stages);
	json_object_set_new(json, "retries", causes(m->retries));
	set(json, "packets_sent_again", m->resent);
	for (unsigned int i = 0; i < URDMA_INCOMPLETES; i++)
		set(incomplete, urdma_incomplete_key[i], m->incomplete[i]);
	json_object_set_new(json, "incomplete", incomplete);
	return json;
}

/* The mean per cycle of each slice, times the factor. */
static json_t *rates(const struct urdma_stats *s, const struct urdma_series *series, double factor)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < s->timeline.n; i++)
		json_array_append_new(
			list, json_real((double)series->sum[i] * factor / (double)series->cycles));
	return list;
}

/* Minimum bytes that a QP must have sent to have its times in the output. */
static uint64_t least_sent(const struct urdma_stats *s, unsigned int n)
{
	uint64_t most[URDMA_TIMED_QPS] = { 0 }; /* the largest first */

	for (uint32_t qpn = 0; qpn < URDMA_EVENTS_MAX_QPS; qpn++) {
		const struct urdma_qp_stats *qp = urdma_stats_qp(s, n, qpn);
		uint64_t bytes = qp ? qp->bytes : 0;

		for (unsigned int i = 0; i < URDMA_TIMED_QPS; i++) {
			uint64_t other = most[i];

			if (bytes <= other)
				continue;
			most[i] = bytes;
			bytes = other;
		}
	}
	return most[URDMA_TIMED_QPS - 1];
}

static json_t *qps(const struct urdma_stats *s, unsigned int n)
{
	json_t *list = json_array();
	uint64_t least = least_sent(s, n);

	for (uint32_t qpn = 0; qpn < URDMA_EVENTS_MAX_QPS; qpn++) {
		const struct urdma_qp_stats *qp = urdma_stats_qp(s, n, qpn);
		json_t *json, *wire;

		if (!qp)
			continue;
		json = messages(&qp->messages, NULL);
		set(json, "qp", qpn);
		json_object_set_new(json, "depth",
				    json_pack("{s:f, s:I}", "mean",
					      urdma_level_mean(&qp->depth, qp->depth.since), "max",
					      (json_int_t)qp->depth.max));
		set(json, "active_ns",
		    urdma_level_busy(&qp->depth, s->timeline.at) * URDMA_CYCLE_NS);
		wire = json_pack("{s:I, s:I}", "frames", (json_int_t)qp->frames, "bytes",
				 (json_int_t)qp->bytes);
		if (qp->times && qp->bytes >= least) {
			json_object_set_new(
				wire, "gbps",
				rates(s, &qp->times->sent.series, 8.0 / URDMA_CYCLE_NS));
			json_object_set_new(
				wire, "again",
				rates(s, &qp->times->resent, (double)qp->times->resent.cycles));
		}
		json_object_set_new(json, "sent", wire);
		json_array_append_new(list, json);
	}
	return list;
}

/* Rates of the NIC's links in each direction; 0: not known. */
static void limits(json_t *json, const struct urdma_trace_nic *nic)
{
	json_object_set_new(json, "limits_gbps",
			    json_pack("{s:f, s:f}", "wire", nic->wire_mbps / 1e3, "pcie",
				      nic->pcie_mbps / 1e3));
}

static json_t *direction(const struct urdma_stats *s, const struct urdma_link_stats *l,
			 unsigned int i)
{
	json_t *json = json_object();

	set(json, "bytes", l->bytes[i]);
	set(json, "slice_ns", l->flow[i].series.cycles * URDMA_CYCLE_NS);
	json_object_set_new(json, "gbps", rates(s, &l->flow[i].series, 8.0 / URDMA_CYCLE_NS));
	return json;
}

static json_t *wire(const struct urdma_stats *s, const struct urdma_nic_stats *nic)
{
	static const char *const name[] = { "sent", "received" };
	json_t *json = json_object();

	for (unsigned int i = 0; i < 2; i++) {
		json_t *part = direction(s, &nic->wire, i);

		set(part, "frames", nic->frames[i]);
		json_object_set_new(json, name[i], part);
	}
	return json;
}

static json_t *pcie(const struct urdma_stats *s, const struct urdma_nic_stats *nic)
{
	static const char *const name[] = { "to_host", "from_host" };
	static const char *const dma[] = { "dma_writes", "dma_reads" };
	json_t *json = json_object();

	for (unsigned int i = 0; i < 2; i++) {
		json_t *part = direction(s, &nic->pcie, i);

		set(part, dma[i], nic->dma[i]);
		set(part, "dma_bytes", nic->dma_payload[i]);
		json_object_set_new(json, name[i], part);
	}
	return json;
}

/* A level: its mean until then, and the means per slice under the name `slices`. */
static json_t *level(const struct urdma_stats *s, const struct urdma_level *l,
		     const struct urdma_series *series, uint64_t until, const char *slices)
{
	json_t *json = json_object();

	set_real(json, "mean", urdma_level_mean(l, until));
	set(json, "max", l->max);
	set(json, "slice_ns", series->cycles * URDMA_CYCLE_NS);
	json_object_set_new(json, slices, rates(s, series, 1));
	return json;
}

static json_t *reads(const struct urdma_stats *s, const struct urdma_nic_stats *nic)
{
	json_t *json = level(s, &nic->reads, &nic->reads_series, s->timeline.at, "outstanding");

	set(json, "errors", nic->read_errors);
	return json;
}

static json_t *translation(const struct urdma_nic_stats *nic)
{
	json_t *json = json_object();

	for (unsigned int i = 0; i < URDMA_CLIENTS; i++) {
		json_t *part = json_object();

		set(part, "lookups", nic->xlat[i].n);
		set(part, "hits", nic->xlat[i].hits);
		set(part, "misses", nic->xlat[i].misses);
		set(part, "directory_hits", nic->xlat[i].dir_hits);
		set(part, "directory_misses", nic->xlat[i].dir_misses);
		set(part, "refused", nic->xlat[i].refused);
		json_object_set_new(json, urdma_name_client(i), part);
	}
	return json;
}

static json_t *stalls(const struct urdma_nic_stats *nic)
{
	json_t *json = json_object();

	for (unsigned int i = 0; i < URDMA_TRACE_STREAMS; i++) {
		json_t *part = json_object();

		set(part, "n", nic->stall[i].n);
		set(part, "ns", nic->stall[i].cycles * URDMA_CYCLE_NS);
		set(part, "longest_ns", nic->stall[i].max * URDMA_CYCLE_NS);
		json_object_set_new(json, urdma_name_stream(i), part);
	}
	return json;
}

static json_t *responder(const struct urdma_nic_stats *nic)
{
	json_t *json = json_object(), *verdicts = json_object(), *stages = json_object();

	for (unsigned int i = 0; i < URDMA_VERDICTS; i++)
		set(verdicts, urdma_name_verdict(i), nic->verdicts[i]);
	for (unsigned int i = 0; i < URDMA_PACKET_STAGES; i++)
		json_object_set_new(stages, urdma_packet_stage_name[i],
				    distribution(&nic->packet[i]));
	json_object_set_new(json, "packets", verdicts);
	json_object_set_new(json, "stages_ns", stages);
	set(json, "rnr_naks", nic->rnr_naks);
	set(json, "dropped_for_lack_of_room", nic->dropped_full);
	return json;
}

static json_t *nic_json(const struct urdma_stats *s, unsigned int n)
{
	const struct urdma_nic_stats *nic = &s->nic[n];
	json_t *json = messages(&nic->messages, nic->split);

	json_object_set_new(json, "nic", json_string(s->of[n].name));
	json_object_set_new(json, "origin_ns",
			    nic->origin == URDMA_NEVER
				    ? json_null()
				    : json_integer((json_int_t)(nic->origin * URDMA_CYCLE_NS)));
	json_object_set_new(json, "qps", qps(s, n));
	set(json, "active_ns", urdma_level_busy(&nic->posted, s->timeline.at) * URDMA_CYCLE_NS);
	limits(json, &s->of[n]);
	json_object_set_new(json, "pcie", pcie(s, nic));
	json_object_set_new(json, "pcie_reads", reads(s, nic));
	json_object_set_new(json, "send_queues",
			    level(s, &nic->posted, &nic->posted_series, nic->posted.since, "wqes"));
	json_object_set_new(json, "wire", wire(s, nic));
	set(json, "bad_frames", nic->bad_frames);
	set(json, "interrupts", nic->irqs);
	set(json, "send_completions", nic->cqes[1]);
	set(json, "receive_completions", nic->cqes[0]);
	json_object_set_new(json, "losses", causes(nic->losses));
	json_object_set_new(json, "translation", translation(nic));
	json_object_set_new(json, "stalls", stalls(nic));
	json_object_set_new(json, "responder", responder(nic));
	return json;
}

static json_t *slow(const struct urdma_stats *s, const struct urdma_wqe *w,
		    const struct urdma_window *window)
{
	json_t *json = json_object(), *stages = json_object(), *times = json_array();
	json_t *again = json_array();
	uint64_t retries[URDMA_CAUSES];

	for (unsigned int i = 0; i < URDMA_CAUSES; i++)
		retries[i] = w->retries[i];
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		set(stages, urdma_stage_name[i], urdma_wqe_stage(w, i) * URDMA_CYCLE_NS);
	for (unsigned int i = 0; i < URDMA_MOMENTS; i++)
		json_array_append_new(times, json_integer((json_int_t)w->at[i] * URDMA_CYCLE_NS));
	json_object_set_new(json, "nic", json_string(s->of[w->nic].name));
	set(json, "qp", w->qpn);
	set(json, "wqe", w->index);
	json_object_set_new(json, "op", json_string(urdma_name_op(w->op)));
	set(json, "bytes", w->bytes);
	set(json, "psn", w->psn);
	set(json, "packets", w->packets);
	json_object_set_new(json, "status", json_string(urdma_name_status(w->status)));
	json_object_set_new(json, "retries", causes(retries));
	set(json, "whole_ns", urdma_wqe_whole(w) * URDMA_CYCLE_NS);
	json_object_set_new(json, "stages_ns", stages);
	json_object_set_new(json, "moments_ns", times);
	json_object_set_new(json, "window_ns",
			    json_pack("[I, I]", (json_int_t)(window->from * URDMA_CYCLE_NS),
				      (json_int_t)(window->to * URDMA_CYCLE_NS)));
	set(json, "first_frame", w->first_frame);
	set(json, "last_frame", w->last_frame);
	set(json, "answer_frame", w->answer_frame);
	for (unsigned int i = 0; i < w->n_again; i++)
		json_array_append_new(again, json_pack("[I, I]", (json_int_t)w->again[i].first,
						       (json_int_t)w->again[i].last));
	json_object_set_new(json, "frames_again", again);
	json_object_set_new(json, "more_frames_again", json_boolean(w->more_again));
	return json;
}

static json_t *trigger(const struct urdma_stats *s)
{
	bool came = s->trigger_cycle != URDMA_NEVER;
	json_t *json;

	if (!s->trigger)
		return json_null();
	json = json_pack("{s:s, s:o, s:o}", "what", s->trigger, "at_ns", json_null(), "nic",
			 json_null());
	if (came)
		set(json, "at_ns", s->trigger_cycle * URDMA_CYCLE_NS);
	if (came && s->trigger_nic < s->n)
		json_object_set_new(json, "nic", json_string(s->of[s->trigger_nic].name));
	return json;
}

json_t *urdma_stats_json(const struct urdma_stats *s, bool complete)
{
	json_t *json = json_object(), *nics = json_array(), *slowest = json_array();
	json_t *slices = json_array();
	struct urdma_window window[URDMA_SLOWEST];

	json_object_set_new(json, "file", json_string("urdma events report"));
	set(json, "version", 1);
	json_object_set_new(json, "complete", json_boolean(complete));
	set(json, "events", s->events);
	set(json, "from_ns", s->first * URDMA_CYCLE_NS);
	set(json, "to_ns", s->last * URDMA_CYCLE_NS);
	json_object_set_new(json, "trigger", trigger(s));
	for (unsigned int i = 0; i < s->timeline.n; i++)
		json_array_append_new(
			slices, json_integer((json_int_t)(s->timeline.from[i] * URDMA_CYCLE_NS)));
	json_object_set_new(json, "slices_ns", slices);
	set(json, "traffic_ns", s->timeline.at * URDMA_CYCLE_NS);
	for (unsigned int i = 0; i < s->n; i++)
		json_array_append_new(nics, nic_json(s, i));
	json_object_set_new(json, "nics", nics);
	urdma_moments_windows(s, window);
	for (unsigned int i = 0; i < s->n_slowest; i++)
		json_array_append_new(slowest, slow(s, &s->slowest[i], &window[i]));
	json_object_set_new(json, "slowest", slowest);
	return json;
}
