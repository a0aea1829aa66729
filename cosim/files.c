// SPDX-License-Identifier: Apache-2.0
// The files that a run writes continuously: captures and the log of faults.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

void urdma_program_fail(struct urdma_program *p, const char *fmt, ...)
{
	size_t n = strlen(p->error);
	char text[2560];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "urdma-cosim: %s\n", text);
	snprintf(p->error + n, sizeof(p->error) - n, "%s%s", n ? "; " : "", text);
}

void urdma_program_not_whole(struct urdma_program *p, const char *name, int error)
{
	urdma_program_fail(p, "%s/%s could not be written whole: %s", p->opt.out, name,
			   strerror(-error));
}

static int capture(struct urdma_program *p, unsigned int port)
{
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/%s.pcapng", p->opt.out,
		 urdma_cosim_port(p->c, port)->name);
	ret = urdma_cosim_capture(p->c, port, path);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
	return ret;
}

int urdma_program_open_files(struct urdma_program *p)
{
	char path[4096];
	int ret;

	if (p->faults) {
		snprintf(path, sizeof(path), "%s/" URDMA_FAULT_LOG, p->opt.out);
		ret = urdma_faults_log(p->faults, path);
		if (ret) {
			fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
			return 1;
		}
	}
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS && p->opt.trace_pcap; i++)
		if (urdma_cosim_port(p->c, i) && capture(p, i))
			return 1;
	return 0;
}

void urdma_program_flush_files(struct urdma_program *p)
{
	urdma_cosim_flush_captures(p->c);
	if (p->faults)
		urdma_faults_flush(p->faults);
	urdma_program_flush_samples(p);
}

static void end_capture(struct urdma_program *p, unsigned int port)
{
	int ret = urdma_cosim_end_capture(p->c, port);
	char name[80];

	if (!ret)
		return;
	snprintf(name, sizeof(name), "%s.pcapng", urdma_cosim_port(p->c, port)->name);
	urdma_program_not_whole(p, name, ret);
}

static void end_log(struct urdma_program *p)
{
	int ret = p->faults ? urdma_faults_end_log(p->faults) : 0;

	if (ret)
		urdma_program_not_whole(p, URDMA_FAULT_LOG, ret);
}

void urdma_program_watch_files(struct urdma_program *p)
{
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS; i++)
		if (urdma_cosim_capture_error(p->c, i))
			end_capture(p, i);
	if (p->faults && urdma_faults_log_error(p->faults))
		end_log(p);
	urdma_program_watch_samples(p);
}

void urdma_program_close_files(struct urdma_program *p)
{
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS; i++)
		end_capture(p, i);
	end_log(p);
}
