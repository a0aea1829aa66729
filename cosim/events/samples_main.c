// SPDX-License-Identifier: Apache-2.0
// urdma-samples: counters over time, for the report.
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/samples.h"
#include "options/value.h"

struct program {
	const char *file;
	uint64_t sample_ns;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct program *p = state->input;
	const char *rest;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "unexpected argument '%s'", arg);
		if (state->arg_num == 1) {
			p->file = arg;
			return 0;
		}
		rest = urdma_option_time(arg, &p->sample_ns);
		if (!rest || *rest || p->sample_ns < 1000)
			argp_error(state, "'%s' is not the time of a sample, as 10us", arg);
		return 0;
	case ARGP_KEY_END:
		if (!p->file)
			argp_error(state,
				   "it needs the time of a sample, as 10us, and a file of "
				   "samples: a run with --sample-us 10 writes samples.jsonl");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* 0, or 1 after a message. */
static int read_lines(const struct program *p, struct urdma_samples_reader *r, FILE *in)
{
	unsigned long long n = 0;
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (!ret && getline(&line, &size, in) > 0) {
		n++;
		ret = urdma_samples_reader_line(r, line);
	}
	if (!ret && ferror(in))
		ret = -errno;
	free(line);
	if (ret == -EBADMSG)
		fprintf(stderr, "urdma-samples: %s: line %llu is no sample of counters\n", p->file,
			n);
	else if (ret)
		fprintf(stderr, "urdma-samples: cannot read %s: %s\n", p->file, strerror(-ret));
	return ret != 0;
}

/* 0, or 1 after a message. */
static int write_json(struct urdma_samples_reader *r)
{
	json_t *json = urdma_samples_reader_json(r);
	int ret = !json || json_dumpf(json, stdout, JSON_COMPACT) || puts("") < 0 || fflush(stdout);

	json_decref(json);
	if (ret)
		fprintf(stderr, "urdma-samples: cannot write the slices\n");
	return ret;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "TIME SAMPLES",
		.doc = "Reads counters over time (samples.jsonl of a run with --sample-us), with "
		       "the TIME of a sample, as 10us. Prints them in at most 200 slices, as JSON "
		       "for the report.\v"
		       "Exits with 0; with 1 if the file cannot be read; with 2 for bad options.",
	};
	struct urdma_samples_reader *r = NULL;
	struct program p = { 0 };
	FILE *in;
	int ret;

	argp_program_version = "urdma-samples " URDMA_COSIM_VERSION;
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &p);
	in = fopen(p.file, "re");
	if (!in) {
		fprintf(stderr, "urdma-samples: cannot read %s: %s\n", p.file, strerror(errno));
		return 1;
	}
	r = urdma_samples_reader_create(p.sample_ns);
	if (!r)
		fprintf(stderr, "urdma-samples: no memory\n");
	ret = !r || read_lines(&p, r, in) || write_json(r);
	urdma_samples_reader_destroy(r);
	fclose(in);
	return ret;
}
