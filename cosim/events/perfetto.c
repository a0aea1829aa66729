// SPDX-License-Identifier: Apache-2.0
/*
 * A trace for ui.perfetto.dev. Each NIC is a process. It has a thread for each QP, threads for
 * activities that do not overlap, and parallel tracks (lanes) for those that do. Trace packets are
 * written when slices end, so they are not in time order; Perfetto sorts them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/outputs.h"
#include "output.h"
#include "perfetto.pb-c.h"

#define SEQUENCE	 1u
#define STATE_CLEARED	 1u /* SEQ_INCREMENTAL_STATE_CLEARED */
#define MAX_ARGS	 12u
#define MAX_READS	 1024u /* maximum outstanding at a time; later ones are omitted */
#define MAX_LANES	 32768u
#define BYTES_EACH	 250u /* cycles between values of the PCIe counters: 1 us */
#define TRACK(nic, kind) ((uint64_t)((nic) + 1) << 48 | (uint64_t)(kind) << 40)

/* The trigger belongs to the run: its track is in no NIC. */
#define TRIGGER_TRACK UINT64_C(1)

enum track {
	TRACK_PROCESS,
	TRACK_TX,
	TRACK_RX,
	TRACK_WRITES,
	TRACK_READS,	   /* | lane */
	TRACK_OUTSTANDING, /* counter */
	TRACK_FLIGHT,	   /* counter */
	TRACK_STALL,	   /* | stream */
	TRACK_QP,	   /* | QP */
	TRACK_DEPTH,	   /* | QP, counter */
	TRACK_WQE,	   /* | QP << 16 | lane; needs 32 bits, so QPs below 2^16 */
	TRACK_PACKET,	   /* the same */
	TRACK_CONTROL,
	TRACK_DOORBELLS,
	TRACK_INTERRUPTS,
	TRACK_MISSES,
	TRACK_PCIE, /* | direction, counter */
};

/* Parallel tracks for overlapping slices: the cycle from which each is free. */
struct lanes {
	uint64_t *until;
	uint32_t n, size;
};

struct read {
	uint64_t begin, addr, len, tag;
};

struct qp {
	struct lanes wqes, packets;
};

/* Bytes of TLPs in one direction, from the start. */
struct bytes {
	uint64_t n, told;
	uint64_t slot; /* of BYTES_EACH cycles, of the last TLP */
};

struct nic {
	struct lanes reads;
	struct bytes pcie[2]; /* to the host, from it */
	struct qp **qp[URDMA_EVENTS_MAX_QPS / 256];
	struct read read[MAX_READS];
	unsigned int n_reads;
};

struct urdma_perfetto {
	struct urdma_output *out;
	const struct urdma_trace_nic *of;
	struct nic *nic;
	unsigned int n;
	const char *trigger;
	int error;
	uint8_t *buffer;
	size_t size;
};

/* Stages of a packet at its receiver, in ns. */
static const char *const stage_arg[URDMA_PACKET_STAGES] = {
	"receive ns", "check ns", "decide ns", "place ns", "answer ns", "send ns",
};

/* Attributes of a slice or an instant besides its name. */
struct args {
	size_t n;
	UrdmaPerfetto__DebugAnnotation arg[MAX_ARGS];
	UrdmaPerfetto__DebugAnnotation *list[MAX_ARGS];
};

static UrdmaPerfetto__DebugAnnotation *add_arg(struct args *a, const char *name)
{
	UrdmaPerfetto__DebugAnnotation *arg = &a->arg[a->n];

	urdma_perfetto__debug_annotation__init(arg);
	arg->name = (char *)name;
	a->list[a->n++] = arg;
	return arg;
}

static void arg_number(struct args *a, const char *name, uint64_t value)
{
	UrdmaPerfetto__DebugAnnotation *arg = add_arg(a, name);

	arg->has_uint_value = 1;
	arg->uint_value = value;
}

static void arg_text(struct args *a, const char *name, const char *value)
{
	add_arg(a, name)->string_value = (char *)value;
}

/* ---- packets --------------------------------------------------------------------------------- */

static void put(struct urdma_perfetto *p, UrdmaPerfetto__TracePacket *packet)
{
	UrdmaPerfetto__Trace trace = URDMA_PERFETTO__TRACE__INIT;
	struct iovec part;
	size_t size;

	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = SEQUENCE;
	trace.n_packet = 1;
	trace.packet = &packet;
	size = urdma_perfetto__trace__get_packed_size(&trace);
	if (size > p->size) {
		uint8_t *more = realloc(p->buffer, size * 2);

		if (!more) {
			p->error = -ENOMEM;
			return;
		}
		p->buffer = more;
		p->size = size * 2;
	}
	part.iov_base = p->buffer;
	part.iov_len = urdma_perfetto__trace__pack(&trace, p->buffer);
	urdma_output_record(p->out, &part, 1);
}

static void put_track(struct urdma_perfetto *p, UrdmaPerfetto__TrackDescriptor *track,
		      uint64_t uuid, uint64_t parent)
{
	UrdmaPerfetto__TracePacket packet = URDMA_PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = 1;
	track->uuid = uuid;
	track->has_parent_uuid = parent != 0;
	track->parent_uuid = parent;
	packet.track_descriptor = track;
	put(p, &packet);
}

static void put_plain_track(struct urdma_perfetto *p, uint64_t uuid, uint64_t parent,
			    const char *name)
{
	UrdmaPerfetto__TrackDescriptor track = URDMA_PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.name = (char *)name;
	put_track(p, &track, uuid, parent);
}

static void put_counter_track(struct urdma_perfetto *p, uint64_t uuid, uint64_t parent,
			      const char *name, const char *unit)
{
	UrdmaPerfetto__TrackDescriptor track = URDMA_PERFETTO__TRACK_DESCRIPTOR__INIT;
	UrdmaPerfetto__CounterDescriptor counter = URDMA_PERFETTO__COUNTER_DESCRIPTOR__INIT;

	counter.unit_name = (char *)unit;
	track.counter = &counter;
	track.name = (char *)name;
	put_track(p, &track, uuid, parent);
}

static void put_thread(struct urdma_perfetto *p, unsigned int nic, uint64_t uuid, uint64_t tid,
		       const char *name)
{
	UrdmaPerfetto__TrackDescriptor track = URDMA_PERFETTO__TRACK_DESCRIPTOR__INIT;
	UrdmaPerfetto__ThreadDescriptor thread = URDMA_PERFETTO__THREAD_DESCRIPTOR__INIT;

	thread.has_pid = thread.has_tid = 1;
	thread.pid = (int32_t)nic + 1;
	thread.tid = (int64_t)tid;
	thread.thread_name = (char *)name;
	track.thread = &thread;
	put_track(p, &track, uuid, TRACK(nic, TRACK_PROCESS));
}

static void put_event(struct urdma_perfetto *p, UrdmaPerfetto__TrackEvent *event, uint64_t uuid,
		      uint64_t cycle)
{
	UrdmaPerfetto__TracePacket packet = URDMA_PERFETTO__TRACE_PACKET__INIT;

	event->has_type = event->has_track_uuid = 1;
	event->track_uuid = uuid;
	packet.has_timestamp = 1;
	packet.timestamp = cycle * URDMA_CYCLE_NS;
	packet.track_event = event;
	put(p, &packet);
}

static void begin(struct urdma_perfetto *p, uint64_t uuid, uint64_t cycle, const char *name,
		  struct args *args, uint64_t flow, bool flow_ends)
{
	UrdmaPerfetto__TrackEvent event = URDMA_PERFETTO__TRACK_EVENT__INIT;

	event.type = URDMA_PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN;
	event.name = (char *)name;
	if (args) {
		event.n_debug_annotations = args->n;
		event.debug_annotations = args->list;
	}
	if (flow && flow_ends) {
		event.n_terminating_flow_ids = 1;
		event.terminating_flow_ids = &flow;
	} else if (flow) {
		event.n_flow_ids = 1;
		event.flow_ids = &flow;
	}
	put_event(p, &event, uuid, cycle);
}

static void end(struct urdma_perfetto *p, uint64_t uuid, uint64_t cycle)
{
	UrdmaPerfetto__TrackEvent event = URDMA_PERFETTO__TRACK_EVENT__INIT;

	event.type = URDMA_PERFETTO__TRACK_EVENT__TYPE__SLICE_END;
	put_event(p, &event, uuid, cycle);
}

static void instant(struct urdma_perfetto *p, uint64_t uuid, uint64_t cycle, const char *name,
		    struct args *args)
{
	UrdmaPerfetto__TrackEvent event = URDMA_PERFETTO__TRACK_EVENT__INIT;

	event.type = URDMA_PERFETTO__TRACK_EVENT__TYPE__INSTANT;
	event.name = (char *)name;
	event.n_debug_annotations = args->n;
	event.debug_annotations = args->list;
	put_event(p, &event, uuid, cycle);
}

static void counter(struct urdma_perfetto *p, uint64_t uuid, uint64_t cycle, uint64_t value)
{
	UrdmaPerfetto__TrackEvent event = URDMA_PERFETTO__TRACK_EVENT__INIT;

	event.type = URDMA_PERFETTO__TRACK_EVENT__TYPE__COUNTER;
	event.has_counter_value = 1;
	event.counter_value = (int64_t)value;
	put_event(p, &event, uuid, cycle);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* Takes a lane that is free during [from, to). *fresh: it needs a descriptor. */
static uint32_t take_lane(struct urdma_perfetto *p, struct lanes *l, uint64_t from, uint64_t to,
			  bool *fresh)
{
	uint32_t i = 0;

	while (i < l->n && l->until[i] > from)
		i++;
	*fresh = i == l->n;
	if (*fresh && l->n == l->size) {
		uint32_t size = l->size ? l->size * 2 : 4;
		uint64_t *more = size <= MAX_LANES ? realloc(l->until, size * sizeof(*more)) : NULL;

		if (!more) {
			p->error = -ENOMEM;
			*fresh = false;
			return 0;
		}
		l->until = more;
		l->size = size;
	}
	if (*fresh)
		l->n++;
	l->until[i] = to;
	return i;
}

/* The tracks of a QP are declared at its first use. NULL: no memory. */
static struct qp *qp_of(struct urdma_perfetto *p, unsigned int n, uint32_t qpn)
{
	struct nic *nic = &p->nic[n];
	struct qp ***page = &nic->qp[qpn / 256], **qp;
	char name[64];

	if (!*page)
		*page = calloc(256, sizeof(**page));
	if (!*page) {
		p->error = -ENOMEM;
		return NULL;
	}
	qp = &(*page)[qpn % 256];
	if (*qp)
		return *qp;
	*qp = calloc(1, sizeof(**qp));
	if (!*qp) {
		p->error = -ENOMEM;
		return NULL;
	}
	snprintf(name, sizeof(name), "QP %u", qpn);
	put_thread(p, n, TRACK(n, TRACK_QP) | qpn, 100 + (uint64_t)qpn, name);
	snprintf(name, sizeof(name), "QP %u: send queue", qpn);
	put_counter_track(p, TRACK(n, TRACK_DEPTH) | qpn, TRACK(n, TRACK_PROCESS), name, "WQEs");
	return *qp;
}

static void declare(struct urdma_perfetto *p, unsigned int n)
{
	UrdmaPerfetto__TrackDescriptor track = URDMA_PERFETTO__TRACK_DESCRIPTOR__INIT;
	UrdmaPerfetto__ProcessDescriptor process = URDMA_PERFETTO__PROCESS_DESCRIPTOR__INIT;
	uint64_t parent = TRACK(n, TRACK_PROCESS);

	process.has_pid = 1;
	process.pid = (int32_t)n + 1;
	process.process_name = (char *)p->of[n].name;
	track.process = &process;
	put_track(p, &track, parent, 0);
	put_thread(p, n, TRACK(n, TRACK_TX), 1, "MAC tx");
	put_thread(p, n, TRACK(n, TRACK_RX), 2, "MAC rx");
	put_thread(p, n, TRACK(n, TRACK_WRITES), 3, "PCIe writes");
	put_thread(p, n, TRACK(n, TRACK_CONTROL), 4, "control");
	put_thread(p, n, TRACK(n, TRACK_DOORBELLS), 5, "doorbells");
	put_thread(p, n, TRACK(n, TRACK_INTERRUPTS), 6, "events and interrupts");
	put_thread(p, n, TRACK(n, TRACK_MISSES), 7, "page table misses");
	for (unsigned int i = 0; i < URDMA_TRACE_STREAMS; i++)
		put_thread(p, n, TRACK(n, TRACK_STALL) | i, 10 + i, urdma_name_stream(i));
	put_counter_track(p, TRACK(n, TRACK_OUTSTANDING), parent, "PCIe reads outstanding",
			  "reads");
	put_counter_track(p, TRACK(n, TRACK_FLIGHT), parent, "bytes in flight", "bytes");
	put_counter_track(p, TRACK(n, TRACK_PCIE), parent, "PCIe bytes to the host", "bytes");
	put_counter_track(p, TRACK(n, TRACK_PCIE) | 1, parent, "PCIe bytes from the host", "bytes");
}

int urdma_perfetto_open(const char *path, const struct urdma_trace_nic *nic, unsigned int n,
			const char *trigger, struct urdma_perfetto **perfetto)
{
	UrdmaPerfetto__TracePacket first = URDMA_PERFETTO__TRACE_PACKET__INIT;
	struct urdma_perfetto *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	p->nic = calloc(n, sizeof(*p->nic));
	ret = p->nic ? urdma_output_open(path, &p->out) : -ENOMEM;
	if (ret) {
		free(p->nic);
		free(p);
		return ret;
	}
	p->of = nic;
	p->n = n;
	p->trigger = trigger;
	first.has_sequence_flags = 1;
	first.sequence_flags = STATE_CLEARED;
	put(p, &first);
	if (trigger)
		put_plain_track(p, TRIGGER_TRACK, 0, "trigger");
	for (unsigned int i = 0; i < n; i++)
		declare(p, i);
	*perfetto = p;
	return 0;
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void wqe(void *ctx, const struct urdma_wqe *w)
{
	struct urdma_perfetto *p = ctx;
	uint64_t from = w->at[URDMA_AT_WRITE], to = w->at[URDMA_AT_REPORTED], uuid;
	uint64_t parent = TRACK(w->nic, TRACK_QP) | w->qpn;
	struct qp *qp = qp_of(p, w->nic, w->qpn);
	struct args args = { 0 };
	char name[80];
	uint32_t lane;
	bool fresh;

	if (!qp)
		return;
	lane = take_lane(p, &qp->wqes, from, to, &fresh);
	uuid = TRACK(w->nic, TRACK_WQE) | (uint64_t)w->qpn << 16 | lane;
	if (fresh)
		put_plain_track(p, uuid, parent, "WQEs");
	arg_number(&args, "wqe", w->index);
	arg_number(&args, "bytes", w->bytes);
	arg_number(&args, "psn", w->psn);
	arg_number(&args, "packets", w->packets);
	arg_number(&args, "retries", urdma_wqe_retries(w));
	arg_text(&args, "status", urdma_name_status(w->status));
	arg_number(&args, "first frame", w->first_frame);
	arg_number(&args, "last frame", w->last_frame);
	arg_number(&args, "answer frame", w->answer_frame);
	snprintf(name, sizeof(name), "%s %u", urdma_name_op(w->op), w->index);
	begin(p, uuid, from, name, &args, 0, false);
	for (unsigned int i = 0; i < URDMA_STAGES; i++) {
		if (!urdma_wqe_stage(w, i))
			continue;
		begin(p, uuid, w->at[i], urdma_stage_name[i], NULL, 0, false);
		end(p, uuid, w->at[i + 1]);
	}
	end(p, uuid, to);
}

/* A frame of one beat takes a cycle, so that it is visible. */
static void frame(void *ctx, const struct urdma_frame *f)
{
	struct urdma_perfetto *p = ctx;
	uint64_t uuid = TRACK(f->nic, f->received ? TRACK_RX : TRACK_TX);
	struct args args = { 0 };

	arg_number(&args, "frame", f->number);
	arg_number(&args, "bytes", f->len);
	if (f->rdma) {
		arg_number(&args, "destination QP", f->dqpn);
		arg_number(&args, "psn", f->psn);
	}
	if (f->qpn != URDMA_NO_QP && !f->received)
		arg_number(&args, "QP", f->qpn);
	if (f->has_wqe)
		arg_number(&args, "wqe", f->wqe);
	if (f->again)
		arg_text(&args, "sent", "again");
	if (f->error)
		arg_text(&args, "error", "bad FCS");
	begin(p, uuid, f->begin, f->rdma ? urdma_name_opcode(f->opcode) : "Ethernet", &args,
	      f->flow, f->flow_ends);
	end(p, uuid, f->end + 1);
}

/* A request at its receiver, until its payload is on its way to memory or it ends earlier. */
static void packet(void *ctx, const struct urdma_packet *packet)
{
	struct urdma_perfetto *p = ctx;
	const uint64_t ends[] = { packet->put, packet->decided, packet->in, packet->rx_end };
	struct args args = { 0 };
	uint64_t from = packet->rx, to = URDMA_NEVER, cycles, uuid;
	struct qp *qp;
	bool fresh;

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(*ends) && to == URDMA_NEVER; i++)
		to = ends[i];
	/* Packets that the NIC sends to itself do not pass the MAC. */
	if (from == URDMA_NEVER)
		from = packet->in;
	if (from == URDMA_NEVER || to == URDMA_NEVER || packet->qpn >= URDMA_EVENTS_MAX_QPS ||
	    urdma_opcode_answers(packet->opcode))
		return;
	qp = qp_of(p, packet->nic, packet->qpn);
	if (!qp)
		return;
	uuid = TRACK(packet->nic, TRACK_PACKET) | (uint64_t)packet->qpn << 16 |
	       take_lane(p, &qp->packets, from, to, &fresh);
	if (fresh)
		put_plain_track(p, uuid, TRACK(packet->nic, TRACK_QP) | packet->qpn,
				"requests received");
	arg_number(&args, "frame", packet->number);
	arg_number(&args, "psn", packet->psn);
	if (packet->decided != URDMA_NEVER)
		arg_text(&args, "verdict", urdma_name_verdict(packet->verdict));
	for (unsigned int i = 0; i < URDMA_PACKET_STAGES; i++)
		if (urdma_packet_stage(packet, i, &cycles))
			arg_number(&args, stage_arg[i], cycles * URDMA_CYCLE_NS);
	begin(p, uuid, from, urdma_name_opcode(packet->opcode), &args, 0, false);
	end(p, uuid, to);
}

static void retry(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint16_t index,
		  unsigned int cause)
{
	struct urdma_perfetto *p = ctx;
	struct args args = { 0 };

	if (!qp_of(p, nic, qpn))
		return;
	arg_number(&args, "wqe", index);
	instant(p, TRACK(nic, TRACK_QP) | qpn, cycle, urdma_name_cause(cause), &args);
}

static void depth(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t value)
{
	struct urdma_perfetto *p = ctx;

	if (qp_of(p, nic, qpn))
		counter(p, TRACK(nic, TRACK_DEPTH) | qpn, cycle, value);
}

static void flight(void *ctx, uint64_t cycle, unsigned int nic, uint64_t bytes)
{
	counter(ctx, TRACK(nic, TRACK_FLIGHT), cycle, bytes);
}

static void begin_read(struct urdma_perfetto *p, const struct urdma_trace_event *e)
{
	struct nic *nic = &p->nic[e->nic];

	if (nic->n_reads == MAX_READS)
		return;
	nic->read[nic->n_reads++] = (struct read){ e->cycle, e->rd.addr, e->rd.len, e->rd.tag };
	counter(p, TRACK(e->nic, TRACK_OUTSTANDING), e->cycle, nic->n_reads);
}

static void end_read(struct urdma_perfetto *p, const struct urdma_trace_event *e)
{
	struct nic *nic = &p->nic[e->nic];
	struct args args = { 0 };
	unsigned int i = 0;
	struct read read;
	uint64_t uuid;
	bool fresh;

	while (i < nic->n_reads && nic->read[i].tag != e->rd_done.tag)
		i++;
	if (i == nic->n_reads)
		return;
	read = nic->read[i];
	nic->n_reads--;
	memmove(nic->read + i, nic->read + i + 1, (nic->n_reads - i) * sizeof(read));
	uuid = TRACK(e->nic, TRACK_READS) | take_lane(p, &nic->reads, read.begin, e->cycle, &fresh);
	if (fresh)
		put_plain_track(p, uuid, TRACK(e->nic, TRACK_PROCESS), "PCIe reads");
	arg_number(&args, "tag", read.tag);
	arg_number(&args, "address", read.addr);
	arg_number(&args, "bytes", read.len);
	arg_number(&args, "completions", e->rd_done.tlps);
	if (e->rd_done.error)
		arg_number(&args, "error", e->rd_done.error);
	begin(p, uuid, read.begin, "read", &args, 0, false);
	end(p, uuid, e->cycle);
	counter(p, TRACK(e->nic, TRACK_OUTSTANDING), e->cycle, nic->n_reads);
}

static void trigger(struct urdma_perfetto *p, const struct urdma_trace_event *e)
{
	struct args args = { 0 };
	char name[1024];

	if (!p->trigger)
		return;
	arg_text(&args, "seen at", e->trigger.fault ? "wire" : p->of[e->nic].name);
	snprintf(name, sizeof(name), "trigger: %s", p->trigger);
	instant(p, TRIGGER_TRACK, e->cycle, name, &args);
}

/* The counter's value so far, after the last TLP of its slot. */
static void tell_bytes(struct urdma_perfetto *p, unsigned int n, unsigned int direction)
{
	struct bytes *b = &p->nic[n].pcie[direction];

	if (b->n != b->told)
		counter(p, TRACK(n, TRACK_PCIE) | direction, (b->slot + 1) * BYTES_EACH, b->n);
	b->told = b->n;
}

static void count_bytes(struct urdma_perfetto *p, const struct urdma_trace_event *e)
{
	bool to_host;
	uint64_t n = urdma_trace_tlp_bytes(e, &to_host);
	struct bytes *b = &p->nic[e->nic].pcie[!to_host];

	if (!n)
		return;
	if (b->slot != e->cycle / BYTES_EACH)
		tell_bytes(p, e->nic, !to_host);
	b->slot = e->cycle / BYTES_EACH;
	b->n += n;
}

/* Doorbells, interrupts, misses, commands: instants with their fields. */
static void tell_instant(struct urdma_perfetto *p, const struct urdma_trace_event *e)
{
	static const struct {
		enum track track;
		const char *name;
	} instants[URDMA_TRACE_KINDS] = {
		[URDMA_TRACE_SQ_DB] = { TRACK_DOORBELLS, "send queue" },
		[URDMA_TRACE_RQ_DB] = { TRACK_DOORBELLS, "receive queue" },
		[URDMA_TRACE_CQ_DB] = { TRACK_DOORBELLS, "CQ" },
		[URDMA_TRACE_EQE] = { TRACK_INTERRUPTS, "EQE" },
		[URDMA_TRACE_IRQ] = { TRACK_INTERRUPTS, "interrupt" },
		[URDMA_TRACE_XLAT] = { TRACK_MISSES, NULL },
		[URDMA_TRACE_RESET] = { TRACK_CONTROL, "reset: the NIC's cycle counter begins" },
		[URDMA_TRACE_CMD] = { TRACK_CONTROL, "command" },
		[URDMA_TRACE_QP_END] = { TRACK_CONTROL, "QP ends" },
	};
	const struct urdma_trace_desc *desc = &urdma_trace_desc[e->kind];
	const char *name = instants[e->kind].name;
	struct args args = { 0 };

	if (e->kind == URDMA_TRACE_XLAT) {
		if (!e->xlat.pte_miss && !e->xlat.dir_miss)
			return;
		name = urdma_name_client(e->xlat.client);
	}
	if (!name)
		return;
	for (unsigned int i = 0; i < desc->n_fields; i++)
		arg_number(&args, desc->field[i].name, e->field[i]);
	instant(p, TRACK(e->nic, instants[e->kind].track), e->cycle, name, &args);
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	struct urdma_perfetto *p = ctx;
	struct args args = { 0 };
	uint64_t uuid, from;

	count_bytes(p, e);

	switch (e->kind) {
	case URDMA_TRACE_RD:
		begin_read(p, e);
		break;
	case URDMA_TRACE_RD_DONE:
		end_read(p, e);
		break;
	case URDMA_TRACE_WR:
		arg_number(&args, "address", e->wr.addr);
		arg_number(&args, "bytes", e->wr.len);
		instant(p, TRACK(e->nic, TRACK_WRITES), e->cycle, "write", &args);
		break;
	case URDMA_TRACE_TRIGGER:
		trigger(p, e);
		break;
	case URDMA_TRACE_STALL:
		if (e->stall.stream >= URDMA_TRACE_STREAMS)
			break;
		from = e->cycle > e->stall.cycles ? e->cycle - e->stall.cycles : 0;
		uuid = TRACK(e->nic, TRACK_STALL) | e->stall.stream;
		begin(p, uuid, from, "stall", NULL, 0, false);
		end(p, uuid, e->cycle);
		break;
	default:
		tell_instant(p, e);
		break;
	}
}

struct urdma_sink urdma_perfetto_sink(struct urdma_perfetto *p)
{
	return (struct urdma_sink){
		.ctx = p,
		.event = event,
		.wqe = wqe,
		.frame = frame,
		.packet = packet,
		.retry = retry,
		.depth = depth,
		.flight = flight,
	};
}

int urdma_perfetto_flush(struct urdma_perfetto *p)
{
	int ret = p ? urdma_output_flush(p->out) : 0;

	return ret || !p ? ret : p->error;
}

int urdma_perfetto_close(struct urdma_perfetto *p)
{
	int ret;

	if (!p)
		return 0;
	for (unsigned int i = 0; i < 2 * p->n; i++)
		tell_bytes(p, i / 2, i % 2);
	ret = urdma_output_close(p->out);
	if (!ret)
		ret = p->error;
	for (unsigned int i = 0; i < p->n; i++) {
		for (unsigned int k = 0; k < URDMA_EVENTS_MAX_QPS / 256; k++) {
			for (unsigned int q = 0; p->nic[i].qp[k] && q < 256; q++) {
				struct qp *qp = p->nic[i].qp[k][q];

				if (qp) {
					free(qp->wqes.until);
					free(qp->packets.until);
				}
				free(qp);
			}
			free(p->nic[i].qp[k]);
		}
		free(p->nic[i].reads.until);
	}
	free(p->nic);
	free(p->buffer);
	free(p);
	return ret;
}
