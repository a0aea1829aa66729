// SPDX-License-Identifier: Apache-2.0
#include "options/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t urdma_option_number(struct argp_state *state, const char *option, const char *text,
			     uint64_t min, uint64_t max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || v < min || v > max)
		argp_error(state, "--%s '%s': not a number from %" PRIu64 " to %" PRIu64, option,
			   text, min, max);
	return v;
}

uint32_t urdma_option_power_of_two(struct argp_state *state, const char *option, const char *text,
				   uint32_t min, uint32_t max)
{
	uint32_t v = (uint32_t)urdma_option_number(state, option, text, min, max);

	if (v & (v - 1))
		argp_error(state, "--%s '%s': not a power of two", option, text);
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

uint64_t urdma_option_gbps(struct argp_state *state, const char *option, const char *text)
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
			argp_error(state, "--%s '%s': more than three digits behind the point",
				   option, text);
		for (size_t i = 0; i < digits; i++)
			mbps += (uint64_t)(fraction[i] - '0') * unit[i];
		digits++;
	}
	if (!whole || digits == 1 || text[whole + digits] || mbps < 100 || mbps > 1000000)
		argp_error(state, "--%s '%s': not a rate from 0.1 to 1000 Gb/s", option, text);
	return mbps;
}
