// SPDX-License-Identifier: Apache-2.0
#include "options/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "options/options.h"

void urdma_option_bad(struct argp_state *state, const char *option, const char *text,
		      const char *fmt, ...)
{
	const struct urdma_options *o = state->input;
	char why[1024], value[512] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (text)
		snprintf(value, sizeof(value), " '%s'", text);
	if (o->scope.place[0])
		argp_failure(state, argp_err_exit_status, 0, "%s%s%s%s: %s", o->scope.place,
			     option[0] ? "." : "", option, value, why);
	else
		argp_error(state, "--%s%s: %s", option, value, why);
	exit(argp_err_exit_status); /* neither function returns */
}

uint64_t urdma_option_number(struct argp_state *state, const char *option, const char *text,
			     uint64_t min, uint64_t max)
{
	uint64_t v;
	char *end;

	errno = 0;
	v = urdma_number(text, &end);
	if (errno || end == text || *end || strchr(text, '-') || v < min || v > max)
		urdma_option_bad(state, option, text, "not a number from %" PRIu64 " to %" PRIu64,
				 min, max);
	return v;
}

uint32_t urdma_option_power_of_two(struct argp_state *state, const char *option, const char *text,
				   uint32_t min, uint32_t max)
{
	uint32_t v = (uint32_t)urdma_option_number(state, option, text, min, max);

	if (v & (v - 1))
		urdma_option_bad(state, option, text, "not a power of two");
	return v;
}

const char *urdma_option_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	errno = 0;
	v = strtoull(text, &end, 10);
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]) && !errno; i++) {
		size_t n = strlen(unit[i].name);

		if (strncmp(end, unit[i].name, n) || v > UINT64_MAX / 4 / unit[i].ns)
			continue;
		*ns = v * unit[i].ns;
		return end + n;
	}
	return NULL;
}

uint64_t urdma_option_gbps(struct argp_state *state, const char *option, const char *text,
			   unsigned int max)
{
	size_t whole = strspn(text, "0123456789"), digits = 0;
	uint64_t mbps = 0;

	for (size_t i = 0; i < whole && mbps <= 1000000; i++)
		mbps = mbps * 10 + (uint64_t)(text[i] - '0') * 1000;
	if (text[whole] == '.') {
		static const uint64_t unit[] = { 100, 10, 1 };
		const char *fraction = text + whole + 1;

		digits = strspn(fraction, "0123456789");
		if (digits > 3)
			urdma_option_bad(state, option, text,
					 "more than three digits behind the point");
		for (size_t i = 0; i < digits; i++)
			mbps += (uint64_t)(fraction[i] - '0') * unit[i];
		digits++;
	}
	if (!whole || digits == 1 || text[whole + digits] || mbps < 100 ||
	    mbps > (uint64_t)max * 1000)
		urdma_option_bad(state, option, text, "not a rate from 0.1 to %u Gb/s", max);
	return mbps;
}
