// SPDX-License-Identifier: Apache-2.0
// Faults of the wire, see fault.h.
#include "eth/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "output.h"
#include "random.h"

#define DEFAULT_REORDER_NS     5000u
#define DEFAULT_REORDER_FRAMES 4u /* random maximum */
#define DEFAULT_DELAY_NS       1000u
#define MAX_NS		       UINT64_C(1000000000)

struct rule {
	struct urdma_fault_rule r;
	unsigned int id; /* number among all rules ever added */
	uint64_t matched[URDMA_FAULT_MAX_WIRES][2];
};

struct attachment {
	struct urdma_faults *faults;
	unsigned int wire;
};

struct urdma_faults {
	uint64_t seed;
	struct rule *rule;
	size_t n;
	unsigned int ids;
	struct attachment at[URDMA_FAULT_MAX_WIRES];
	uint64_t count[2][URDMA_FAULT_KINDS];
	urdma_fault_fn fn;
	void *ctx;
	struct urdma_output *log;
};

static const char *const kind_name[URDMA_FAULT_KINDS] = { "drop", "dup",   "reorder", "corrupt",
							  "fcs",  "delay", "ecn" };

const char *urdma_fault_name(enum urdma_fault_kind kind)
{
	return (unsigned int)kind < URDMA_FAULT_KINDS ? kind_name[kind] : "?";
}

/* ---- looking into a frame ------------------------------------------------------------------ */

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define ETHERTYPE_CTAG 0x8100u
#define ETHERTYPE_STAG 0x88a8u
#define IP_UDP	       17u
#define ROCE_PORT      4791u
#define BTH_BYTES      12u

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | be16(p + 1);
}

/* RC opcodes with an AETH after the BTH: READ responses except MIDDLE, ACK, ATOMIC ACK. */
static bool has_aeth(uint8_t opcode)
{
	return opcode == 0x0d || (opcode >= 0x0f && opcode <= 0x12);
}

/* Offset of a frame's IP header, 0 if it has no complete one. */
static uint32_t find_ip(const uint8_t *frame, size_t len, bool *ipv6)
{
	uint32_t at = 12;

	while (at + 6 <= len &&
	       (be16(frame + at) == ETHERTYPE_CTAG || be16(frame + at) == ETHERTYPE_STAG))
		at += 4;
	if (at + 2 > len)
		return 0;
	if (be16(frame + at) == ETHERTYPE_IPV4 && at + 22 <= len && frame[at + 2] >> 4 == 4) {
		*ipv6 = false;
		return at + 2;
	}
	if (be16(frame + at) == ETHERTYPE_IPV6 && at + 42 <= len && frame[at + 2] >> 4 == 6) {
		*ipv6 = true;
		return at + 2;
	}
	return 0;
}

bool urdma_roce_parse(const uint8_t *frame, size_t len, struct urdma_roce *r)
{
	const uint8_t *ip, *udp, *bth;
	uint32_t at;

	memset(r, 0, sizeof(*r));
	r->ip = find_ip(frame, len, &r->ipv6);
	if (!r->ip)
		return false;
	ip = frame + r->ip;
	if (r->ipv6) {
		if (ip[6] != IP_UDP)
			return false;
		at = r->ip + 40;
	} else {
		/* a fragment (offset or "more fragments") is not a packet */
		if (ip[9] != IP_UDP || (ip[0] & 0xf) < 5 || be16(ip + 6) & 0x3fff)
			return false;
		at = r->ip + (ip[0] & 0xfu) * 4;
	}
	if (at + 8 + BTH_BYTES + 4 > len)
		return false;
	udp = frame + at;
	r->end = at + be16(udp + 4);
	if (be16(udp + 2) != ROCE_PORT || r->end > len || r->end < at + 8 + BTH_BYTES + 4)
		return false;
	r->bth = at + 8;
	bth = frame + r->bth;
	r->opcode = bth[0];
	r->solicited = bth[1] >> 7;
	r->pad = bth[1] >> 4 & 3;
	r->qpn = be24(bth + 5);
	r->ack_req = bth[8] >> 7;
	r->psn = be24(bth + 9);
	r->has_aeth = has_aeth(r->opcode) && r->end >= r->bth + BTH_BYTES + 4 + 4;
	if (r->has_aeth)
		r->syndrome = bth[BTH_BYTES];
	return true;
}

/* ---- rules --------------------------------------------------------------------------------- */

void urdma_fault_rule_defaults(struct urdma_fault_rule *rule, enum urdma_fault_kind kind)
{
	*rule = (struct urdma_fault_rule){
		.kind = kind,
		.wire = URDMA_FAULT_ANY,
		.qpn = URDMA_FAULT_ANY,
		.psn_first = URDMA_FAULT_ANY,
		.psn_last = URDMA_FAULT_ANY,
		.opcode = URDMA_FAULT_ANY,
		.byte = URDMA_FAULT_ANY,
		.bit = URDMA_FAULT_ANY,
	};
}

int urdma_faults_create(uint64_t seed, struct urdma_faults **faults)
{
	*faults = calloc(1, sizeof(**faults));
	if (!*faults)
		return -ENOMEM;
	(*faults)->seed = seed;
	return 0;
}

void urdma_faults_destroy(struct urdma_faults *f)
{
	if (!f)
		return;
	urdma_output_close(f->log);
	free(f->rule);
	free(f);
}

int urdma_faults_add(struct urdma_faults *f, const struct urdma_fault_rule *r)
{
	struct rule *rule;

	if ((unsigned int)r->kind >= URDMA_FAULT_KINDS || r->sides > 3 ||
	    r->probability > URDMA_FAULT_CERTAIN || r->ns > MAX_NS || r->bit > 7 ||
	    (r->psn_first < 0) != (r->psn_last < 0) || r->wire >= (int)URDMA_FAULT_MAX_WIRES)
		return -EINVAL;
	rule = realloc(f->rule, (f->n + 1) * sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	f->rule = rule;
	memset(&rule[f->n], 0, sizeof(*rule));
	rule[f->n].r = *r;
	rule[f->n].id = f->ids++;
	f->n++;
	return 0;
}

void urdma_faults_clear(struct urdma_faults *f)
{
	f->n = 0;
}

uint64_t urdma_faults_count(const struct urdma_faults *f, unsigned int side,
			    enum urdma_fault_kind kind)
{
	return f->count[side][kind];
}

void urdma_faults_watch(struct urdma_faults *f, urdma_fault_fn fn, void *ctx)
{
	f->fn = fn;
	f->ctx = ctx;
}

int urdma_faults_log(struct urdma_faults *f, const char *path)
{
	if (f->log)
		return -EBUSY;
	return urdma_output_open(path, &f->log);
}

int urdma_faults_flush(struct urdma_faults *f)
{
	return f->log ? urdma_output_flush(f->log) : 0;
}

int urdma_faults_log_error(const struct urdma_faults *f)
{
	return f->log ? urdma_output_error(f->log) : 0;
}

int urdma_faults_end_log(struct urdma_faults *f)
{
	int ret = urdma_output_close(f->log);

	f->log = NULL;
	return ret;
}

/* ---- a frame comes by ---------------------------------------------------------------------- */

static bool psn_matches(const struct urdma_fault_rule *r, uint32_t psn)
{
	uint32_t first = (uint32_t)r->psn_first, last = (uint32_t)r->psn_last;

	return ((psn - first) & 0xffffff) <= ((last - first) & 0xffffff);
}

static bool aeth_matches(enum urdma_fault_aeth want, const struct urdma_roce *roce)
{
	/* syndrome bits 6:5: 0 ACK, 1 RNR NAK, 3 NAK (9.7.5.1.2); bit 7 is reserved */
	unsigned int kind = roce->syndrome >> 5 & 3;

	return roce->has_aeth && kind == (want == URDMA_FAULT_AETH_ACK	 ? 0u
					  : want == URDMA_FAULT_AETH_RNR ? 1u
									 : 3u);
}

/* roce NULL: no BTH. */
static bool matches(const struct urdma_fault_rule *r, unsigned int wire, unsigned int side,
		    const struct urdma_roce *roce)
{
	if ((r->sides && !(r->sides & 1u << side)) ||
	    (r->wire >= 0 && (unsigned int)r->wire != wire))
		return false;
	if (r->qpn < 0 && r->psn_first < 0 && r->opcode < 0 && !r->aeth)
		return true;
	return roce && (r->qpn < 0 || (uint32_t)r->qpn == roce->qpn) &&
	       (r->psn_first < 0 || psn_matches(r, roce->psn)) &&
	       (r->opcode < 0 || r->opcode == roce->opcode) &&
	       (!r->aeth || aeth_matches(r->aeth, roce));
}

/* IP header checksum (RFC 1071) over the current header, without the checksum field. */
static uint16_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < (ip[0] & 0xfu) * 4; i += 2)
		if (i != 10)
			sum += be16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* False if there is no IP header, or it is already marked. The ICRC does not cover these bits. */
static bool mark_ecn(struct urdma_eth_frame *frame)
{
	bool ipv6;
	uint32_t at = find_ip(frame->data, frame->len, &ipv6);
	uint8_t *ip = frame->data + at;
	uint16_t sum;

	if (!at || (!ipv6 && at + (ip[0] & 0xfu) * 4 > frame->len))
		return false;
	if (ipv6) {
		if ((ip[1] & 0x30) == 0x30)
			return false;
		ip[1] |= 0x30;
		return true;
	}
	if ((ip[1] & 3) == 3)
		return false;
	ip[1] |= 3;
	sum = ip_checksum(ip);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	return true;
}

static void log_record(struct urdma_faults *f, const struct urdma_fault_record *r)
{
	char line[512];
	int n;

	f->count[r->side][r->kind]++;
	if (f->fn)
		f->fn(f->ctx, r);
	if (!f->log)
		return;
	n = snprintf(line, sizeof(line),
		     "{\"cycle\": %" PRIu64 ", \"wire\": %u, \"side\": %u, \"frame\": %" PRIu64
		     ", \"kind\": \"%s\", \"qpn\": %d, \"psn\": %d, \"opcode\": %d, \"n\": %u, "
		     "\"ns\": %" PRIu64 ", \"byte\": %d, \"bit\": %d}\n",
		     r->cycle, r->wire, r->side, r->frame, kind_name[r->kind], r->qpn, r->psn,
		     r->opcode, r->n, r->ns, r->byte, r->bit);
	urdma_output_record(f->log, &(struct iovec){ line, (size_t)n }, 1);
}

/* Adds a rule's action to the note of a frame; a full note does not change. */
static void note(struct urdma_eth_frame *frame, const struct urdma_fault_record *r)
{
	size_t at = strlen(frame->note);
	char what[64] = "lost";

	switch (r->kind) {
	case URDMA_FAULT_DROP:
		break;
	case URDMA_FAULT_DUP:
		snprintf(what, sizeof(what), "doubled, %u more", r->n);
		break;
	case URDMA_FAULT_REORDER:
		snprintf(what, sizeof(what), "overtaken by %u", r->n);
		break;
	case URDMA_FAULT_CORRUPT:
		snprintf(what, sizeof(what), "bit %d of byte %d inverted", r->bit, r->byte);
		break;
	case URDMA_FAULT_FCS:
		snprintf(what, sizeof(what), "bit %d of byte %d inverted, bad FCS", r->bit,
			 r->byte);
		break;
	case URDMA_FAULT_DELAY:
		snprintf(what, sizeof(what), "delayed by %" PRIu64 " ns", r->ns);
		break;
	default:
		snprintf(what, sizeof(what), "marked: congestion experienced");
		break;
	}
	snprintf(frame->note + at, sizeof(frame->note) - at, "%sfault %u: %s", at ? "; " : "",
		 r->rule, what);
}

/* Inverts a bit; false if the frame has no such byte. */
static bool flip(const struct urdma_fault_rule *r, struct urdma_random *rnd,
		 struct urdma_eth_frame *frame, struct urdma_fault_record *rec)
{
	/* always draw both, so that a fixed one does not change the other */
	uint32_t byte = urdma_random_below(rnd, frame->len), bit = urdma_random_below(rnd, 8);

	if (r->byte >= 0)
		byte = (uint32_t)r->byte;
	else if (r->byte != URDMA_FAULT_ANY)
		byte = frame->len - (uint32_t)(-1 - r->byte);
	if (byte >= frame->len)
		return false;
	if (r->bit >= 0)
		bit = (uint32_t)r->bit;
	frame->data[byte] ^= (uint8_t)(1u << bit);
	rec->byte = (int32_t)byte;
	rec->bit = (int32_t)bit;
	return true;
}

/* Applies a rule that hits; false if it cannot apply to this frame. */
static bool apply(const struct urdma_fault_rule *r, struct urdma_random *rnd, bool has_bth,
		  struct urdma_eth_frame *frame, struct urdma_wire_verdict *v,
		  struct urdma_fault_record *rec)
{
	bool certain = !r->probability || r->probability == URDMA_FAULT_CERTAIN;

	switch (r->kind) {
	case URDMA_FAULT_DROP:
		v->drop = true;
		return true;
	case URDMA_FAULT_DUP:
		rec->n = r->copies ? r->copies : 1;
		rec->ns = r->ns;
		v->copies += rec->n;
		v->copy_delay_cycles = urdma_ns_to_cycles(rec->ns);
		return true;
	case URDMA_FAULT_REORDER:
		rec->n = r->frames ? r->frames
			 : certain ? 1
				   : 1 + urdma_random_below(rnd, DEFAULT_REORDER_FRAMES);
		rec->ns = r->ns ? r->ns : DEFAULT_REORDER_NS;
		v->behind = rec->n;
		v->delay_cycles += urdma_ns_to_cycles(rec->ns);
		return true;
	case URDMA_FAULT_CORRUPT:
		if (!flip(r, rnd, frame, rec))
			return false;
		/* Only the FCS protects a frame without ICRC. */
		frame->error |= !has_bth;
		return true;
	case URDMA_FAULT_FCS:
		if (!flip(r, rnd, frame, rec))
			return false;
		frame->error = true;
		return true;
	case URDMA_FAULT_DELAY:
		rec->ns = r->ns ? r->ns : DEFAULT_DELAY_NS;
		if (!certain)
			rec->ns = 1 + urdma_random_below(rnd, (uint32_t)rec->ns);
		v->delay_cycles += urdma_ns_to_cycles(rec->ns);
		return true;
	default:
		return mark_ecn(frame);
	}
}

static struct urdma_random draw_of(const struct urdma_faults *f, const struct rule *rule,
				   unsigned int wire, unsigned int side, uint64_t frame)
{
	struct urdma_random rnd = { .state = f->seed };

	rnd.state = urdma_random_next(&rnd) ^ ((uint64_t)rule->id << 32 | wire << 1 | side);
	rnd.state = urdma_random_next(&rnd) ^ frame;
	return rnd;
}

static void hook(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
		 struct urdma_wire_verdict *verdict)
{
	const struct attachment *at = ctx;
	struct urdma_faults *f = at->faults;
	struct urdma_fault_record rec[2 * URDMA_FAULT_KINDS];
	bool has_bth, drop = false;
	struct urdma_roce roce;
	unsigned int n = 0;

	has_bth = urdma_roce_parse(frame->data, frame->len, &roce);
	for (size_t i = 0; i < f->n; i++) {
		struct rule *rule = &f->rule[i];
		const struct urdma_fault_rule *r = &rule->r;
		uint64_t nth = r->nth ? r->nth : 1, k;
		struct urdma_random rnd;

		if (!matches(r, at->wire, side, has_bth ? &roce : NULL))
			continue;
		k = ++rule->matched[at->wire][side];
		if (k < nth || (r->count && k >= nth + r->count))
			continue;
		rnd = draw_of(f, rule, at->wire, side, frame->number);
		if (r->probability && urdma_random_next(&rnd) >> 32 >= r->probability)
			continue;
		if (n == sizeof(rec) / sizeof(rec[0]))
			continue;
		rec[n] = (struct urdma_fault_record){
			.cycle = frame->sent,
			.wire = at->wire,
			.side = side,
			.frame = frame->number,
			.rule = rule->id,
			.kind = r->kind,
			.qpn = has_bth ? (int32_t)roce.qpn : -1,
			.psn = has_bth ? (int32_t)roce.psn : -1,
			.opcode = has_bth ? roce.opcode : -1,
			.byte = -1,
			.bit = -1,
		};
		if (apply(r, &rnd, has_bth, frame, verdict, &rec[n])) {
			drop |= r->kind == URDMA_FAULT_DROP;
			n++;
		}
	}
	/* If a frame is lost, its other faults have no effect. */
	for (unsigned int i = 0; i < n; i++) {
		if (drop && rec[i].kind != URDMA_FAULT_DROP)
			continue;
		log_record(f, &rec[i]);
		note(frame, &rec[i]);
		if (drop)
			break;
	}
}

int urdma_faults_attach(struct urdma_faults *f, struct urdma_wire *wire, unsigned int index)
{
	if (!wire || index >= URDMA_FAULT_MAX_WIRES || f->at[index].faults)
		return -EINVAL;
	f->at[index] = (struct attachment){ .faults = f, .wire = index };
	urdma_wire_set_fault(wire, hook, &f->at[index]);
	return 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t opcode;
} opcode_names[] = {
	{ "send_first", 0x00 },
	{ "send_middle", 0x01 },
	{ "send_last", 0x02 },
	{ "send_last_imm", 0x03 },
	{ "send_only", 0x04 },
	{ "send_only_imm", 0x05 },
	{ "write_first", 0x06 },
	{ "write_middle", 0x07 },
	{ "write_last", 0x08 },
	{ "write_last_imm", 0x09 },
	{ "write_only", 0x0a },
	{ "write_only_imm", 0x0b },
	{ "read_request", 0x0c },
	{ "read_response_first", 0x0d },
	{ "read_response_middle", 0x0e },
	{ "read_response_last", 0x0f },
	{ "read_response_only", 0x10 },
	{ "acknowledge", 0x11 },
	{ "atomic_acknowledge", 0x12 },
	{ "compare_swap", 0x13 },
	{ "fetch_add", 0x14 },
	{ "send_last_inv", 0x16 },
	{ "send_only_inv", 0x17 },
	{ "flush", 0x1c },
	{ "atomic_write", 0x1d },
	{ "cnp", 0x81 },
};

int urdma_fault_percent(const char *text, uint64_t *probability)
{
	uint64_t whole = 0, frac = 0, unit = 1;
	const char *p = text;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		whole = whole * 10 + (uint64_t)(*p - '0');
		if (whole > 100)
			return -EINVAL;
	}
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && unit < 1000000; p++) {
			frac = frac * 10 + (uint64_t)(*p - '0');
			unit *= 10;
		}
	if (*p == '%')
		p++;
	if (*p || (whole == 100 && frac))
		return -EINVAL;
	*probability = (whole * unit + frac) * URDMA_FAULT_CERTAIN / (100 * unit);
	return 0;
}

/* Decimal or 0x; *end is set after it. */
static bool parse_number(const char *text, uint64_t max, uint64_t *value, const char **end)
{
	char *stop;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = urdma_number(text, &stop);
	*end = stop;
	return !errno && *value <= max;
}

static bool parse_whole(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *end;

	return parse_number(text, max, value, &end) && !*end && *value >= min;
}

static int __attribute__((format(printf, 3, 4)))
refuse(char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_opcode(const char *value, int32_t *opcode)
{
	uint64_t v;

	for (size_t i = 0; i < sizeof(opcode_names) / sizeof(opcode_names[0]); i++) {
		if (!strcmp(value, opcode_names[i].name)) {
			*opcode = opcode_names[i].opcode;
			return 0;
		}
	}
	if (!parse_whole(value, 0, 255, &v))
		return -EINVAL;
	*opcode = (int32_t)v;
	return 0;
}

static int parse_psn(const char *value, struct urdma_fault_rule *rule)
{
	const char *end;
	uint64_t a, b;

	if (!parse_number(value, 0xffffff, &a, &end))
		return -EINVAL;
	b = a;
	if (*end == '-' && (!parse_number(end + 1, 0xffffff, &b, &end)))
		return -EINVAL;
	if (*end)
		return -EINVAL;
	rule->psn_first = (int32_t)a;
	rule->psn_last = (int32_t)b;
	return 0;
}

static int parse_byte(const char *value, struct urdma_fault_rule *rule)
{
	bool from_end = *value == '-';
	uint64_t v;

	if (!parse_whole(value + from_end, from_end, URDMA_ETH_MAX_FRAME, &v))
		return -EINVAL;
	rule->byte = from_end ? URDMA_FAULT_FROM_END(v) : (int32_t)v;
	return 0;
}

/* One KEY=VALUE. */
static int parse_key(const char *key, const char *value, struct urdma_fault_rule *rule,
		     bool *count_given, char *error, size_t size)
{
	const unsigned int kind = 1u << rule->kind;
	const unsigned int flips = 1u << URDMA_FAULT_CORRUPT | 1u << URDMA_FAULT_FCS;
	const unsigned int times =
		1u << URDMA_FAULT_DUP | 1u << URDMA_FAULT_REORDER | 1u << URDMA_FAULT_DELAY;
	unsigned int only = ~0u;
	uint64_t v = 0;
	bool ok;

	if (!strcmp(key, "side")) {
		ok = parse_whole(value, 0, 1, &v) || !strcmp(value, "both");
		rule->sides = strcmp(value, "both") ? 1u << v : 3;
	} else if (!strcmp(key, "wire")) {
		ok = parse_whole(value, 0, URDMA_FAULT_MAX_WIRES - 1, &v);
		rule->wire = (int)v;
	} else if (!strcmp(key, "qpn")) {
		ok = parse_whole(value, 0, 0xffffff, &v);
		rule->qpn = (int32_t)v;
	} else if (!strcmp(key, "psn")) {
		ok = !parse_psn(value, rule);
	} else if (!strcmp(key, "op")) {
		ok = !parse_opcode(value, &rule->opcode);
	} else if (!strcmp(key, "aeth")) {
		rule->aeth = !strcmp(value, "ack")   ? URDMA_FAULT_AETH_ACK
			     : !strcmp(value, "rnr") ? URDMA_FAULT_AETH_RNR
			     : !strcmp(value, "nak") ? URDMA_FAULT_AETH_NAK
						     : URDMA_FAULT_AETH_ANY;
		ok = rule->aeth != URDMA_FAULT_AETH_ANY;
	} else if (!strcmp(key, "nth")) {
		ok = parse_whole(value, 1, UINT64_MAX / 4, &rule->nth);
	} else if (!strcmp(key, "count")) {
		ok = !strcmp(value, "all") || parse_whole(value, 1, UINT64_MAX / 4, &v);
		rule->count = v;
		*count_given = true;
	} else if (!strcmp(key, "p")) {
		ok = !urdma_fault_percent(value, &rule->probability) && rule->probability;
	} else if (!strcmp(key, "copies")) {
		ok = parse_whole(value, 1, 1000, &v);
		rule->copies = (unsigned int)v;
		only = 1u << URDMA_FAULT_DUP;
	} else if (!strcmp(key, "frames")) {
		ok = parse_whole(value, 1, 1000000, &v);
		rule->frames = (unsigned int)v;
		only = 1u << URDMA_FAULT_REORDER;
	} else if (!strcmp(key, "ns")) {
		ok = parse_whole(value, 1, MAX_NS, &rule->ns);
		only = times;
	} else if (!strcmp(key, "byte")) {
		ok = !parse_byte(value, rule);
		only = flips;
	} else if (!strcmp(key, "bit")) {
		ok = parse_whole(value, 0, 7, &v);
		rule->bit = (int32_t)v;
		only = flips;
	} else {
		return refuse(error, size, "unknown key '%s'", key);
	}
	if (!(only & kind))
		return refuse(error, size, "'%s' means nothing to %s", key, kind_name[rule->kind]);
	if (!ok)
		return refuse(error, size, "'%s' is no value for '%s'", value, key);
	return 0;
}

int urdma_fault_parse(const char *text, struct urdma_fault_rule *rule, char *error, size_t size)
{
	unsigned int kind = 0;
	bool count_given = false;
	char *copy = strdup(text), *word, *rest;
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	word = strtok_r(copy, ",", &rest);
	while (kind < URDMA_FAULT_KINDS && (!word || strcmp(word, kind_name[kind])))
		kind++;
	if (kind == URDMA_FAULT_KINDS)
		ret = refuse(error, size,
			     "'%s' is not drop, dup, reorder, corrupt, fcs, delay or ecn",
			     word ? word : "");
	else
		urdma_fault_rule_defaults(rule, (enum urdma_fault_kind)kind);
	while (!ret && (word = strtok_r(NULL, ",", &rest))) {
		char *value = strchr(word, '=');

		if (!value) {
			ret = refuse(error, size, "'%s' is not of the form KEY=VALUE", word);
			break;
		}
		*value++ = '\0';
		ret = parse_key(word, value, rule, &count_given, error, size);
	}
	/* one frame by default */
	if (!ret && !count_given && !rule->probability)
		rule->count = 1;
	free(copy);
	return ret;
}
