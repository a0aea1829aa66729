// SPDX-License-Identifier: Apache-2.0
// system.json, counters.json and cosim.json.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "output.h"
#include "program.h"

static double wall_seconds(const struct urdma_program *p)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - p->start.tv_sec) +
	       (double)(now.tv_nsec - p->start.tv_nsec) * 1e-9;
}

static void dump(struct urdma_program *p, const char *name, json_t *json)
{
	char *text = json_dumps(json, URDMA_OPTIONS_DUMP), path[4096];
	struct urdma_output *out = NULL;
	int ret = text ? 0 : -ENOMEM;

	snprintf(path, sizeof(path), "%s/%s", p->opt.out, name);
	if (!ret)
		ret = urdma_output_open(path, &out);
	if (!ret) {
		urdma_output_record(
			out, (struct iovec[]){ { text, strlen(text) }, { (char[]){ '\n' }, 1 } },
			2);
		ret = urdma_output_close(out);
	}
	if (ret)
		urdma_program_fail(p, "%s could not be written: %s", path, strerror(-ret));
	free(text);
	json_decref(json);
}

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static double cpu_seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* The simulated time, how much of it was evaluated, and the time this took. */
static void put_time(const struct urdma_program *p, json_t *json)
{
	const struct urdma_cosim_stats *cs = urdma_cosim_stats(p->c);
	double user, system;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	user = cpu_seconds(&usage.ru_utime);
	system = cpu_seconds(&usage.ru_stime);
	json_object_set_new(json, "simulated_ns",
			    integer(urdma_cosim_now(p->c) * URDMA_SIM_CYCLE_NS));
	json_object_set_new(json, "cycles_simulated", integer(cs->steps));
	json_object_set_new(json, "cycles_skipped", integer(cs->skipped));
	json_object_set_new(json, "cycles_evaluated", integer(cs->evaluated));
	json_object_set_new(json, "cycles_waited", integer(cs->waited));
	json_object_set_new(json, "wakings", integer(cs->wakings));
	json_object_set_new(json, "cycles_shared", integer(cs->shared));
	json_object_set_new(json, "socket_looks", integer(p->looks));
	json_object_set_new(json, "cpu_user_seconds", json_real(user));
	json_object_set_new(json, "cpu_system_seconds", json_real(system));
	json_object_set_new(json, "wall_seconds", json_real(wall_seconds(p)));
	json_object_set_new(
		json, "evaluated_per_cpu_second",
		json_real(user + system > 0 ? (double)cs->evaluated / (user + system) : 0));
}

static json_t *report_faults(const struct urdma_program *p)
{
	json_t *faults, *counts;

	if (!p->faults)
		return json_null();
	faults = json_object();
	counts = json_object();
	for (unsigned int k = 0; k < URDMA_FAULT_KINDS; k++)
		json_object_set_new(counts, urdma_fault_name(k),
				    integer(urdma_faults_count(p->faults, 0, k) +
					    urdma_faults_count(p->faults, 1, k)));
	json_object_set_new(faults, "seed", integer(p->opt.seed));
	json_object_set_new(faults, "log", json_string(URDMA_FAULT_LOG));
	json_object_set_new(faults, "counts", counts);
	return faults;
}

void urdma_program_put_port(json_t *json, const struct urdma_eth_stats *es)
{
	json_object_set_new(json, "tx_frames", integer(es->tx_frames));
	json_object_set_new(json, "tx_bytes", integer(es->tx_bytes));
	json_object_set_new(json, "rx_frames", integer(es->rx_frames));
	json_object_set_new(json, "rx_bytes", integer(es->rx_bytes));
	json_object_set_new(json, "lost_link_down", integer(es->tx_unconnected + es->rx_lost));
	json_object_set_new(json, "lost_overrun", integer(es->rx_overrun));
}

static void put_capture(const struct urdma_program *p, json_t *json, const char *name)
{
	char file[80];

	snprintf(file, sizeof(file), "%s.pcapng", name);
	json_object_set_new(json, "capture", p->opt.trace_pcap ? json_string(file) : json_null());
}

json_t *urdma_program_ports(const struct urdma_program *p)
{
	json_t *ports = json_array();

	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		struct urdma_external *e = p->opt.cosim.external[i];
		const struct urdma_external_stats *xs = urdma_external_stats(e);
		json_t *port = json_object();

		json_object_set_new(port, "name", json_string(urdma_external_name(e)));
		json_object_set_new(port, "kind", json_string(urdma_external_kind(e)));
		json_object_set_new(port, "up", json_boolean(xs->up));
		urdma_program_put_port(port, &urdma_external_port(e)->stats);
		json_object_set_new(port, "no_peer", integer(xs->no_peer));
		json_object_set_new(port, "peer_full", integer(xs->peer_full));
		json_object_set_new(port, "bad_fcs", integer(xs->bad_fcs));
		json_object_set_new(port, "bad_length", integer(xs->bad_length));
		json_object_set_new(port, "connects", integer(xs->connects));
		json_object_set_new(port, "disconnects", integer(xs->disconnects));
		json_object_set_new(port, "skipped", integer(xs->skipped));
		put_capture(p, port, urdma_external_name(e));
		json_array_append_new(ports, port);
	}
	return ports;
}

static const char *port_name(const struct urdma_program *p, unsigned int port)
{
	return urdma_cosim_port(p->c, port)->name;
}

json_t *urdma_program_switches(const struct urdma_program *p)
{
	json_t *switches = json_array();

	for (unsigned int i = 0; i < urdma_cosim_switches(p->c); i++) {
		struct urdma_switch *s = urdma_cosim_switch(p->c, i);
		const struct urdma_switch_stats *ss = urdma_switch_stats(s);
		json_t *sw = json_object(), *ports = json_array();

		json_object_set_new(sw, "name", json_string(urdma_switch_name(s)));
		json_object_set_new(sw, "frames", integer(ss->frames));
		json_object_set_new(sw, "bytes", integer(ss->bytes));
		json_object_set_new(sw, "forwarded", integer(ss->forwarded));
		json_object_set_new(sw, "group", integer(ss->group));
		json_object_set_new(sw, "unknown", integer(ss->unknown));
		json_object_set_new(sw, "filtered", integer(ss->filtered));
		json_object_set_new(sw, "reserved", integer(ss->reserved));
		json_object_set_new(sw, "bad_fcs", integer(ss->bad_fcs));
		json_object_set_new(sw, "tail_drops", integer(ss->tail_drops));
		json_object_set_new(sw, "learned", integer(ss->learned));
		json_object_set_new(sw, "moved", integer(ss->moved));
		json_object_set_new(sw, "aged", integer(ss->aged));
		for (unsigned int k = 0; k < urdma_switch_ports(s); k++) {
			const struct urdma_eth_stats *es = &urdma_switch_port(s, k)->stats;
			json_t *port = json_object();

			json_object_set_new(port, "to",
					    json_string(port_name(p, p->opt.cosim.sw[i].port[k])));
			urdma_program_put_port(port, es);
			json_object_set_new(port, "tail_drops", integer(es->tx_dropped));
			json_object_set_new(port, "queue_max", integer(es->tx_queue_max));
			json_array_append_new(ports, port);
		}
		json_object_set_new(sw, "ports", ports);
		json_array_append_new(switches, sw);
	}
	return switches;
}

json_t *urdma_program_counters(const struct urdma_program *p, unsigned int nic, bool quiet)
{
	json_t *values = json_object();
	uint64_t cnt[URDMA_CNT_N];
	int ret;

	ret = urdma_counters_read(p->counters, nic, cnt);
	if (ret && !quiet)
		fprintf(stderr, "urdma-cosim: urdma%u does not answer reads of its counters: %s\n",
			nic, strerror(-ret));
	for (unsigned int k = 0; k < URDMA_CNT_N; k++)
		json_object_set_new(values, urdma_counter_name(k), integer(cnt[k]));
	return values;
}

json_t *urdma_program_pcie(const struct urdma_program *p, unsigned int nic)
{
	const struct urdma_pcie_stats *ps = urdma_pcie_stats(urdma_cosim_pcie(p->c, nic));
	json_t *pcie = json_object();

	json_object_set_new(pcie, "dma_reads", integer(ps->rq_reads));
	json_object_set_new(pcie, "dma_read_bytes", integer(ps->rq_read_bytes));
	json_object_set_new(pcie, "dma_writes", integer(ps->rq_writes));
	json_object_set_new(pcie, "dma_write_bytes", integer(ps->rq_write_bytes));
	json_object_set_new(pcie, "to_host_bytes", integer(ps->to_host_bytes));
	json_object_set_new(pcie, "from_host_bytes", integer(ps->from_host_bytes));
	json_object_set_new(pcie, "dma_faults", integer(ps->read_faults + ps->write_faults));
	json_object_set_new(pcie, "register_reads", integer(ps->mmio_reads));
	json_object_set_new(pcie, "register_writes", integer(ps->mmio_writes));
	json_object_set_new(pcie, "interrupts", integer(ps->irqs));
	json_object_set_new(pcie, "resets", integer(ps->resets));
	return pcie;
}

static json_t *report_nic(const struct urdma_program *p, unsigned int nic)
{
	const struct urdma_eth_port *port = urdma_cosim_port(p->c, nic);
	json_t *json = json_object(), *pcie;

	json_object_set_new(json, "name", json_string(port->name));
	json_object_set_new(json, "socket", json_string(p->opt.nic[nic].socket));
	json_object_set_new(json, "rate_gbps", json_real((double)port->line.mbps / 1000));
	urdma_program_put_port(json, &port->stats);
	put_capture(p, json, port->name);
	json_object_set_new(json, "frames_without_fate",
			    integer(urdma_cosim_unknown_fates(p->c, nic)));
	pcie = urdma_program_pcie(p, nic);
	json_object_set_new(pcie, "gbps", json_real((double)p->opt.nic[nic].pcie.mbps / 1000));
	json_object_set_new(json, "pcie", pcie);
	return json;
}

int urdma_program_describe(struct urdma_program *p)
{
	dump(p, URDMA_SYSTEM, urdma_system_json(&p->opt));
	return p->error[0] != 0;
}

void urdma_program_report(struct urdma_program *p)
{
	json_t *counters = json_object(), *root = json_object(), *nics = json_array();
	/* A NIC that broke a rule or stalled does not answer; the error is already known. */
	bool quiet = urdma_cosim_error(p->c);

	/* Before reading the counters, because that takes simulated time. */
	put_time(p, root);
	urdma_program_close_trigger(p);
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		json_object_set_new(counters, urdma_cosim_port(p->c, i)->name,
				    urdma_program_counters(p, i, quiet));
	/* This includes the register reads of the counters, as do samples and events. */
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		json_array_append_new(nics, report_nic(p, i));
	json_object_set_new(root, "nics", nics);
	json_object_set_new(root, "ports", urdma_program_ports(p));
	json_object_set_new(root, "switches", urdma_program_switches(p));
	json_object_set_new(root, "faults", report_faults(p));
	json_object_set_new(root, "samples", p->samples ? json_string(URDMA_SAMPLES) : json_null());
	json_object_set_new(root, "settings", urdma_options_json(&p->opt));
	/* Reading the counters ran the NICs again, so captures and waves are closed after it. */
	urdma_program_close_files(p);
	urdma_program_close_waves(p);
	urdma_program_close_samples(p);
	urdma_program_close_events(p);
	json_object_set_new(root, "events", urdma_program_events(p));
	json_object_set_new(root, "trigger", urdma_program_trigger(p));
	dump(p, "counters.json", counters);
	/* Last, so that it includes all files that could not be written. */
	json_object_set_new(root, "error", p->error[0] ? json_string(p->error) : json_null());
	dump(p, "cosim.json", root);
}
