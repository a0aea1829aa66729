// SPDX-License-Identifier: Apache-2.0
/*
 * events_agree DIR: checks that the files of a run have the same times for the same frames, to the
 * cycle: events.urdma, the capture of each NIC, and faults.log if there is one. For runs that were
 * recorded completely, on the default wires (0-1, 2-3, ...).
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "trace/recorder.h"

#define MAX_NICS 16u

struct sent {
	uint64_t cycle, dqpn, psn, opcode;
	bool rdma;
};

static struct nic {
	struct agree agree;
	struct sent *sent; /* each frame, agree.sent of them */
	size_t size;
} nics[MAX_NICS];

static const char *dir;

static bool complain(const char *file, const char *why)
{
	fprintf(stderr, "events_agree: %s/%s: %s\n", dir, file, why);
	return false;
}

/* Keeps what the fault log says about a frame. */
static void keep(struct nic *nic, const struct urdma_trace_event *e)
{
	uint64_t n = nic->agree.sent;

	if (n > nic->size) {
		nic->size = nic->size ? 2 * nic->size : 1024;
		nic->sent = realloc(nic->sent, nic->size * sizeof(*nic->sent));
		if (!nic->sent)
			abort();
	}
	nic->sent[n - 1] = (struct sent){ e->cycle, e->tx_end.dqpn, e->tx_end.psn, e->tx_end.opcode,
					  e->tx_end.rdma };
}

static bool check_events(struct urdma_events *events)
{
	struct urdma_trace_event e;
	int ret;

	while ((ret = urdma_events_next(events, &e)) == 1) {
		if (e.kind != URDMA_TRACE_TX_END && e.kind != URDMA_TRACE_RX_END)
			continue;
		if (!agree_frame(&nics[e.nic].agree, &e))
			return complain(urdma_events_nic(events, e.nic).name,
					nics[e.nic].agree.wrong);
		if (e.kind == URDMA_TRACE_TX_END)
			keep(&nics[e.nic], &e);
	}
	if (ret || !urdma_events_complete(events))
		return complain("events.urdma", "damaged, or not complete");
	return true;
}

static bool check_captures(struct urdma_events *events)
{
	bool good = true;
	char path[4096];

	for (unsigned int i = 0; good && i < urdma_events_nics(events); i++) {
		snprintf(path, sizeof(path), "%s/%s.pcapng", dir, urdma_events_nic(events, i).name);
		good = agree_open(&nics[i].agree, path);
		if (!good)
			complain(urdma_events_nic(events, i).name, nics[i].agree.wrong);
	}
	good = good && check_events(events);
	for (unsigned int i = 0; i < urdma_events_nics(events); i++)
		if (!agree_close(&nics[i].agree) && good)
			good = complain(urdma_events_nic(events, i).name, nics[i].agree.wrong);
	return good;
}

static bool check_fault(const char *line, unsigned int n_nics)
{
	json_t *json = json_loads(line, 0, NULL);
	json_int_t cycle, wire, side, frame, qpn, psn, opcode;
	const struct sent *s;
	bool good;

	if (!json || json_unpack(json, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cycle", &cycle,
				 "wire", &wire, "side", &side, "frame", &frame, "qpn", &qpn, "psn",
				 &psn, "opcode", &opcode)) {
		json_decref(json);
		return complain("faults.log", line);
	}
	json_decref(json);
	if (2 * wire + side >= n_nics || (uint64_t)frame >= nics[2 * wire + side].agree.sent)
		return complain("faults.log: of a frame that no NIC has sent", line);
	s = &nics[2 * wire + side].sent[frame];
	good = s->cycle == (uint64_t)cycle && s->rdma == (opcode >= 0);
	if (good && s->rdma)
		good = s->dqpn == (uint64_t)qpn && s->psn == (uint64_t)psn &&
		       s->opcode == (uint64_t)opcode;
	if (good)
		return true;
	fprintf(stderr,
		"events_agree: this frame was sent in cycle %" PRIu64 " to QP %" PRIu64
		", PSN %" PRIu64 ", opcode %" PRIu64 "\n",
		s->cycle, s->dqpn, s->psn, s->opcode);
	return complain("faults.log", line);
}

/* Returns the number of faults, or -1. */
static long check_faults(unsigned int n_nics)
{
	char path[4096], line[1024];
	bool good = true;
	long n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/faults.log", dir);
	file = fopen(path, "r");
	if (!file)
		return 0;
	while (good && fgets(line, sizeof(line), file)) {
		good = check_fault(line, n_nics);
		n++;
	}
	fclose(file);
	return good ? n : -1;
}

int main(int argc, char **argv)
{
	struct urdma_events *events;
	uint64_t frames = 0;
	char path[4096], *error;
	bool good;
	long n;

	if (argc != 2) {
		fprintf(stderr, "usage: events_agree DIR\n");
		return 2;
	}
	dir = argv[1];
	snprintf(path, sizeof(path), "%s/events.urdma", dir);
	if (urdma_events_open(path, &events, &error)) {
		fprintf(stderr, "events_agree: %s\n", error ? error : path);
		free(error);
		return 1;
	}
	if (urdma_events_nics(events) > MAX_NICS) {
		complain("events.urdma", "too many NICs");
		urdma_events_close(events);
		return 1;
	}
	good = check_captures(events);
	n = good ? check_faults(urdma_events_nics(events)) : -1;
	for (unsigned int i = 0; i < urdma_events_nics(events); i++) {
		frames += nics[i].agree.sent + nics[i].agree.received;
		free(nics[i].sent);
	}
	urdma_events_close(events);
	if (n < 0)
		return 1;
	printf("%" PRIu64 " frames and %ld faults have one time in all files\n", frames, n);
	return 0;
}
