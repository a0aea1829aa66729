// SPDX-License-Identifier: Apache-2.0
#include "events/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "events/names.h"
#include "number.h"
#include "urdma_hw.h"

#define NAMED_VALUES 256u /* values below this may have names */
/* Maximum names in a message: opcodes of all transports share their names, in blocks of 32. */
#define LISTED_VALUES 32u

static int say(char *error, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int say(char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Appends a list item to error if there is room. */
static void list(char *error, size_t size, const char *separator, const char *what)
{
	size_t n = strlen(error);

	snprintf(error + n, size - n, "%s%s", separator, what);
}

/* Parses a number at the start of a text; *end is the rest. False: no number. */
static bool number(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = urdma_number(text, end);
	return !errno;
}

/* ---- names of values ------------------------------------------------------------------------- */

static const char *(*namer(uint8_t kind, const char *field))(uint64_t)
{
	static const struct {
		const char *field;
		const char *(*name_of)(uint64_t value);
	} fields[] = {
		{ "cause", urdma_name_cause },	 { "op", urdma_name_op },
		{ "opcode", urdma_name_opcode }, { "stream", urdma_name_stream },
		{ "client", urdma_name_client },
	};

	/* In other events a field of the same name has another meaning. */
	if (kind == URDMA_TRACE_CQE && !strcmp(field, "status"))
		return urdma_name_status;
	if (kind == URDMA_TRACE_RSP && !strcmp(field, "verdict"))
		return urdma_name_verdict;
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!strcmp(field, fields[i].field))
			return fields[i].name_of;
	return NULL;
}

/* A name as one word: lower case, with '-' for other characters than letters and digits. */
static void one_word(const char *name, char *word, size_t size)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++) {
		if (isalnum((unsigned char)*name))
			word[n++] = (char)tolower((unsigned char)*name);
		else if (n && word[n - 1] != '-')
			word[n++] = '-';
	}
	word[n] = '\0';
}

static int parse_name(struct urdma_trigger *t, struct urdma_trigger_term *term, const char *text,
		      char *error, size_t size)
{
	const char *field = urdma_trace_desc[t->kind].field[term->field].name;
	const char *separator = " ";
	char word[64];

	term->name_of = namer(t->kind, field);
	if (!term->name_of)
		return say(error, size, "'%s' is no value of %s.%s: it is a number", text,
			   urdma_trace_desc[t->kind].name, field);
	for (uint64_t v = 0; v < NAMED_VALUES; v++) {
		term->name = term->name_of(v);
		one_word(term->name, word, sizeof(word));
		if (*word && !strcasecmp(text, word))
			return 0;
	}
	say(error, size, "'%s' is no value of %s.%s: it is a number, or one of", text,
	    urdma_trace_desc[t->kind].name, field);
	for (uint64_t v = 0; v < LISTED_VALUES; v++) {
		one_word(term->name_of(v), word, sizeof(word));
		if (!*word)
			continue;
		list(error, size, separator, word);
		separator = ", ";
	}
	return -EINVAL;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* FIELD=VALUE */
static int parse_term(struct urdma_trigger *t, char *text, char *error, size_t size)
{
	const struct urdma_trace_desc *desc = &urdma_trace_desc[t->kind];
	struct urdma_trigger_term *term = &t->term[t->n_terms];
	const struct urdma_trace_field *field;
	char *value = strchr(text, '='), *end;

	if (!value || value == text || !value[1])
		return say(error, size, "'%s' is not of the form FIELD=VALUE", text);
	*value++ = '\0';
	for (term->field = 0; term->field < desc->n_fields; term->field++)
		if (!strcmp(text, desc->field[term->field].name))
			break;
	if (term->field == desc->n_fields) {
		say(error, size, "%s has no field '%s': it has", desc->name, text);
		for (unsigned int i = 0; i < desc->n_fields; i++)
			list(error, size, i ? ", " : " ", desc->field[i].name);
		if (!desc->n_fields)
			list(error, size, " ", "none");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < t->n_terms; i++)
		if (t->term[i].field == term->field)
			return say(error, size, "%s.%s has two values", desc->name, text);
	t->n_terms++;
	if (!isdigit((unsigned char)*value))
		return parse_name(t, term, value, error, size);
	if (!number(value, &end, &term->value) || *end)
		return say(error, size, "'%s' is not a number", value);
	field = &desc->field[term->field];
	if (term->value > urdma_trace_max(field))
		return say(error, size,
			   "%s.%s=%s never comes: %s has %u bit%s, its largest value is 0x%" PRIx64,
			   desc->name, text, value, text, field->width, field->width > 1 ? "s" : "",
			   urdma_trace_max(field));
	return 0;
}

/* The trigger's own event cannot be a trigger. */
static bool can_be_one(unsigned int kind)
{
	return kind != URDMA_TRACE_TRIGGER;
}

/* EVENT[.FIELD=VALUE]... */
static int parse_event(struct urdma_trigger *t, char *text, char *error, size_t size)
{
	char *next = strchr(text, '.');
	int ret = 0;

	if (next)
		*next++ = '\0';
	for (t->kind = 0; t->kind < URDMA_TRACE_KINDS; t->kind++)
		if (!strcmp(text, urdma_trace_desc[t->kind].name) && can_be_one(t->kind))
			break;
	if (t->kind == URDMA_TRACE_KINDS) {
		say(error, size, "there is no event '%s': it is error, fault, or one of", text);
		for (unsigned int i = 0; i < URDMA_TRACE_KINDS; i++)
			if (can_be_one(i))
				list(error, size, i ? ", " : " ", urdma_trace_desc[i].name);
		return -EINVAL;
	}
	while (next && !ret) {
		char *term = next;

		next = strchr(term, '.');
		if (next)
			*next++ = '\0';
		ret = parse_term(t, term, error, size);
	}
	return ret;
}

/* fault[=N]: the text after the name. */
static int parse_fault(struct urdma_trigger *t, const char *text, char *error, size_t size)
{
	char *end;

	t->what = URDMA_TRIGGER_FAULT;
	if (!*text)
		return 0;
	if (*text != '=' || !number(text + 1, &end, &t->nth) || *end || !t->nth)
		return say(error, size, "'fault%s' is not fault or fault=N, with N from 1", text);
	return 0;
}

int urdma_trigger_parse(const char *text, struct urdma_trigger *t, char *error, size_t size)
{
	char copy[512], *rest = copy;

	memset(t, 0, sizeof(*t));
	t->nth = 1;
	t->nic = -1;
	if (strlen(text) >= sizeof(copy))
		return say(error, size, "it is too long");
	strcpy(copy, text);
	if (strchr(copy, '*')) {
		if (!number(copy, &rest, &t->nth) || *rest != '*' || !t->nth)
			return say(error, size, "before '*' there is no number from 1");
		rest++;
	}
	if (!strncmp(rest, "fault", 5) && (!rest[5] || rest[5] == '='))
		return rest == copy ? parse_fault(t, rest + 5, error, size)
				    : say(error, size, "the Nth fault is fault=N");
	if (!strncmp(rest, "error", 5) && (!rest[5] || rest[5] == '.')) {
		t->what = URDMA_TRIGGER_ERROR;
		return !rest[5] ? 0
				: say(error, size, "error has no fields; those of cqe have them");
	}
	return parse_event(t, rest, error, size);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_error(const struct urdma_trace_event *event)
{
	if (event->kind == URDMA_TRACE_CQE)
		return event->cqe.status != URDMA_WC_SUCCESS &&
		       event->cqe.status != URDMA_WC_FLUSH_ERR;
	if (event->kind != URDMA_TRACE_EQE)
		return false;
	switch (event->eqe.kind) {
	case URDMA_EV_CQ_ERR:
	case URDMA_EV_QP_FATAL:
	case URDMA_EV_QP_REQ_ERR:
	case URDMA_EV_QP_ACCESS_ERR:
	case URDMA_EV_SRQ_ERR:
		return true;
	default:
		return false;
	}
}

bool urdma_trigger_matches(const struct urdma_trigger *t, const struct urdma_trace_event *event)
{
	if (t->what == URDMA_TRIGGER_FAULT || (t->nic >= 0 && t->nic != event->nic))
		return false;
	if (t->what == URDMA_TRIGGER_ERROR)
		return is_error(event);
	if (event->kind != t->kind)
		return false;
	for (unsigned int i = 0; i < t->n_terms; i++) {
		const struct urdma_trigger_term *term = &t->term[i];
		uint64_t value = event->field[term->field];

		if (term->name_of ? term->name_of(value) != term->name : value != term->value)
			return false;
	}
	return true;
}
