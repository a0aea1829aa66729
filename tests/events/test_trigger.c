// SPDX-License-Identifier: Apache-2.0
// Triggers: accepted texts, refused texts with their messages, and matching events.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "events/trigger.h"
#include "random.h"
#include "seed.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

static struct urdma_trigger parse(const char *text)
{
	struct urdma_trigger t;
	char error[512];

	if (urdma_trigger_parse(text, &t, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	assert_int_equal(t.nic, -1);
	return t;
}

static struct urdma_trace_event acked(uint8_t nic, uint32_t qpn, unsigned int cause)
{
	return (struct urdma_trace_event){
		.cycle = 9,
		.kind = URDMA_TRACE_ACKED,
		.nic = nic,
		.acked = { .qpn = qpn, .wqe = 4, .psn = 5, .cause = cause },
	};
}

static bool matches(const char *text, const struct urdma_trace_event *event)
{
	struct urdma_trigger t = parse(text);

	return urdma_trigger_matches(&t, event);
}

static void test_forms(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum urdma_trigger_what what;
		uint64_t nth;
	} forms[] = {
		{ "acked", URDMA_TRIGGER_EVENT, 1 },
		{ "3*acked.qpn=17", URDMA_TRIGGER_EVENT, 3 },
		{ "0x10*reset", URDMA_TRIGGER_EVENT, 16 },
		{ "error", URDMA_TRIGGER_ERROR, 1 },
		{ "2*error", URDMA_TRIGGER_ERROR, 2 },
		{ "fault", URDMA_TRIGGER_FAULT, 1 },
		{ "fault=7", URDMA_TRIGGER_FAULT, 7 },
		{ "fault=18446744073709551615", URDMA_TRIGGER_FAULT, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct urdma_trigger t = parse(forms[i].text);

		assert_int_equal(t.what, forms[i].what);
		assert_int_equal(t.nth, forms[i].nth);
	}
}

/* Every event and every field by its name, with the largest value. */
static void test_all_fields(void **state)
{
	(void)state;
	char text[512];

	for (unsigned int kind = 0; kind < URDMA_TRACE_TRIGGER; kind++) {
		const struct urdma_trace_desc *desc = &urdma_trace_desc[kind];
		struct urdma_trace_event event = { .kind = (uint8_t)kind };
		int n = snprintf(text, sizeof(text), "%s", desc->name);

		for (unsigned int i = 0; i < desc->n_fields; i++) {
			event.field[i] = urdma_trace_max(&desc->field[i]);
			n += snprintf(text + n, sizeof(text) - (size_t)n, ".%s=%" PRIu64,
				      desc->field[i].name, event.field[i]);
		}
		assert_true(matches(text, &event));
		assert_true(matches(desc->name, &event));
		for (unsigned int i = 0; i < desc->n_fields; i++) {
			event.field[i]--;
			assert_false(matches(text, &event));
			assert_true(matches(desc->name, &event));
			event.field[i]++;
		}
		event.kind = (uint8_t)((kind + 1) % URDMA_TRACE_KINDS);
		assert_false(matches(text, &event));
		assert_false(matches(desc->name, &event));
	}
}

/* No field accepts a value that is wider than the field: such a trigger would never fire. */
static void test_widths(void **state)
{
	(void)state;
	unsigned int refused = 0;
	struct urdma_trigger t;
	char text[128], error[512], words[256];

	for (unsigned int kind = 0; kind < URDMA_TRACE_TRIGGER; kind++) {
		const struct urdma_trace_desc *desc = &urdma_trace_desc[kind];

		for (unsigned int i = 0; i < desc->n_fields; i++) {
			const struct urdma_trace_field *field = &desc->field[i];

			assert_in_range(field->width, 1, 64);
			if (field->width == 64)
				continue;
			snprintf(text, sizeof(text), "%s.%s=%" PRIu64, desc->name, field->name,
				 UINT64_C(1) << field->width);
			snprintf(words, sizeof(words), "%s never comes: %s has %u bit", text,
				 field->name, field->width);
			assert_int_not_equal(urdma_trigger_parse(text, &t, error, sizeof(error)),
					     0);
			if (!strstr(error, words))
				fail_msg("%s: %s", text, error);
			refused++;
		}
	}
	assert_true(refused > 80);
}

static void test_nic(void **state)
{
	(void)state;
	struct urdma_trace_event event = acked(1, 17, TRC_NAK);
	struct urdma_trigger t = parse("acked.qpn=17");

	t.nic = 1;
	assert_true(urdma_trigger_matches(&t, &event));
	t.nic = 0;
	assert_false(urdma_trigger_matches(&t, &event));
	t = parse("error");
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_CQE,
					    .nic = 1,
					    .cqe.status = URDMA_WC_RETRY_EXC_ERR };
	t.nic = 1;
	assert_true(urdma_trigger_matches(&t, &event));
	t.nic = 0;
	assert_false(urdma_trigger_matches(&t, &event));
	t = parse("fault");
	assert_false(urdma_trigger_matches(&t, &event));
}

static void test_names(void **state)
{
	(void)state;
	struct urdma_trace_event event = acked(0, 17, TRC_TIMEOUT);

	assert_true(matches("acked.cause=time-out", &event));
	assert_true(matches("acked.cause=TIME-OUT", &event));
	assert_true(matches("acked.cause=time-out.qpn=0x11", &event));
	assert_false(matches("acked.cause=nak-sequence-error", &event));
	event.acked.cause = TRC_RNR_WAIT;
	assert_true(matches("acked.cause=rnr-nak-waits", &event));
	/* A name that begins like another name. */
	assert_false(matches("acked.cause=rnr-nak", &event));
	/* One name, three transports: RC, UC, UD. */
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_PKT, .pkt.opcode = 0x04 };
	assert_true(matches("pkt.opcode=send-only", &event));
	event.pkt.opcode = 0x64;
	assert_true(matches("pkt.opcode=send-only", &event));
	assert_false(matches("pkt.opcode=4", &event));
	event.pkt.opcode = 0x81;
	assert_true(matches("pkt.opcode=cnp", &event));
	assert_false(matches("pkt.opcode=rdma-write-first", &event));
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_CQE,
					    .cqe.status = URDMA_WC_REM_ACCESS_ERR };
	assert_true(matches("cqe.status=remote-access-error", &event));
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_RSP, .rsp.verdict = TRV_GAP };
	assert_true(matches("rsp.verdict=out-of-sequence", &event));
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_WQE, .wqe.op = URDMA_WR_READ };
	assert_true(matches("wqe.op=rdma-read", &event));
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_STALL,
					    .stall.stream = URDMA_TRACE_STREAM_TX };
	assert_true(matches("stall.stream=mac-takes-no-frame", &event));
	event = (struct urdma_trace_event){ .kind = URDMA_TRACE_XLAT, .xlat.client = MRC_SQ };
	assert_true(matches("xlat.client=send-queue", &event));
}

static void test_error(void **state)
{
	(void)state;
	static const uint64_t bad_kinds[] = { URDMA_EV_CQ_ERR, URDMA_EV_QP_FATAL,
					      URDMA_EV_QP_REQ_ERR, URDMA_EV_QP_ACCESS_ERR,
					      URDMA_EV_SRQ_ERR };

	for (uint64_t status = 0; status < 32; status++) {
		struct urdma_trace_event event = { .kind = URDMA_TRACE_CQE, .cqe.status = status };

		assert_int_equal(matches("error", &event),
				 status != URDMA_WC_SUCCESS && status != URDMA_WC_FLUSH_ERR);
		/* The status of a command is not the status of a QP. */
		event = (struct urdma_trace_event){ .kind = URDMA_TRACE_CMD, .cmd.status = status };
		assert_false(matches("error", &event));
	}
	for (uint64_t kind = 0; kind < 32; kind++) {
		struct urdma_trace_event event = { .kind = URDMA_TRACE_EQE, .eqe.kind = kind };
		bool bad = false;

		for (size_t i = 0; i < sizeof(bad_kinds) / sizeof(*bad_kinds); i++)
			bad |= kind == bad_kinds[i];
		assert_int_equal(matches("error", &event), bad);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "", "there is no event ''" },
		{ "acks", "there is no event 'acks': it is error, fault, or one of sq_db, " },
		{ "Acked", "there is no event 'Acked'" },
		{ "trigger", "there is no event 'trigger'" },
		{ "acked.", "'' is not of the form FIELD=VALUE" },
		{ ".qpn=1", "there is no event ''" },
		{ "acked.qpn", "'qpn' is not of the form FIELD=VALUE" },
		{ "acked.qpn=", "'qpn=' is not of the form FIELD=VALUE" },
		{ "acked.=1", "'=1' is not of the form FIELD=VALUE" },
		{ "acked..qpn=1", "'' is not of the form FIELD=VALUE" },
		{ "acked.qp=1", "acked has no field 'qp': it has qpn, wqe, psn, cause" },
		{ "reset.x=1", "reset has no field 'x': it has none" },
		{ "acked.qpn=1.qpn=1", "acked.qpn has two values" },
		{ "acked.qpn=-1", "'-1' is no value of acked.qpn: it is a number" },
		{ "acked.qpn=1x", "'1x' is not a number" },
		{ "acked.qpn=18446744073709551616", "'18446744073709551616' is not a number" },
		{ "rsp.psn=0x1000000",
		  "rsp.psn=0x1000000 never comes: psn has 24 bits, its largest value is 0xffffff" },
		{ "acked.cause=8",
		  "acked.cause=8 never comes: cause has 3 bits, its largest value is 0x7" },
		{ "in.full=2", "in.full=2 never comes: full has 1 bit, its largest value is 0x1" },
		{ "db_write.offset=0x800000", "never comes: offset has 23 bits" },
		{ "acked.cause=bad",
		  "'bad' is no value of acked.cause: it is a number, or one of acknowledged, "
		  "nak-sequence-error, implied-nak, time-out, rnr-nak-waits, rnr-nak" },
		{ "acked.cause=time out", "'time out' is no value of acked.cause" },
		{ "acked.cause=time\xffout", "is no value of acked.cause" },
		{ "acked.cause=?", "'?' is no value of acked.cause" },
		{ "pkt.opcode=send", "'send' is no value of pkt.opcode" },
		{ "cmd.status=flushed", "'flushed' is no value of cmd.status: it is a number" },
		{ "0*acked", "before '*' there is no number from 1" },
		{ "*acked", "before '*' there is no number from 1" },
		{ "-1*acked", "before '*' there is no number from 1" },
		{ "18446744073709551616*acked", "before '*' there is no number from 1" },
		{ "acked*3", "before '*' there is no number from 1" },
		{ "2*3*acked", "there is no event '3*acked'" },
		{ "fault=", "'fault=' is not fault or fault=N, with N from 1" },
		{ "fault=0", "'fault=0' is not fault or fault=N, with N from 1" },
		{ "fault=1,2", "'fault=1,2' is not fault or fault=N, with N from 1" },
		{ "2*fault", "the Nth fault is fault=N" },
		{ "faults", "there is no event 'faults'" },
		{ "error.qpn=3", "error has no fields" },
		{ "errors", "there is no event 'errors'" },
	};
	struct urdma_trigger t;
	char error[1024], text[2000];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_not_equal(urdma_trigger_parse(bad[i].text, &t, error, sizeof(error)), 0);
		if (!strstr(error, bad[i].words))
			fail_msg("%s: %s", bad[i].text, error);
		/* The list is complete. */
		assert_true(strlen(error) + 1 < sizeof(error));
	}
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_not_equal(urdma_trigger_parse(text, &t, error, sizeof(error)), 0);
	assert_string_equal(error, "it is too long");
	assert_int_not_equal(urdma_trigger_parse("acks", &t, error, 9), 0);
	assert_string_equal(error, "there is");
}

/* Random combinations of the parts of good texts; a sanitizer notices accesses out of bounds. */
static void test_any_text(void **state)
{
	(void)state;
	static const char *const pieces[] = { "acked", ".",	"=",	       "*",
					      "qpn",   "cause", "3",	       "0x",
					      "fault", "error", "pkt.opcode=", "-",
					      "\xff",  " ",	"cqe.status=", "time-out" };
	struct urdma_random seed = { test_seed(3) };
	unsigned int good = 0;

	for (unsigned int i = 0; i < 200000; i++) {
		struct urdma_trace_event event = acked(0, 3, TRC_TIMEOUT);
		struct urdma_trigger t;
		char text[700] = "", error[64] = "";

		for (uint64_t n = urdma_random_next(&seed) % (i % 100 ? 8 : 60); n; n--)
			strcat(text, pieces[urdma_random_next(&seed) %
					    (sizeof(pieces) / sizeof(*pieces))]);
		if (urdma_trigger_parse(text, &t, error, sizeof(error))) {
			assert_true(error[0]);
			continue;
		}
		good++;
		assert_true(t.nth);
		urdma_trigger_matches(&t, &event);
	}
	assert_true(good > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_widths),	cmocka_unit_test(test_nic),
		cmocka_unit_test(test_names),	cmocka_unit_test(test_error),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
