// SPDX-License-Identifier: Apache-2.0
// urdma-cosim: NICs for guests, each behind a vfio-user socket, wired to each other.
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "counters.h"
#include "eth/fault.h"
#include "host/vfio_user.h"
#include "scheduler.h"

/* Cycles between two looks at the sockets while the NICs are busy. */
#define BUSY_SLICE 256u
/* Register accesses that may wait for a NIC before its socket is left alone. */
#define BACKLOG_MAX 4096u
#define MAX_FAULTS  64u

struct options {
	const char *socket[URDMA_COSIM_MAX_NICS];
	unsigned int n_sockets;
	const char *out;
	bool trace_pcap;
	bool topology_given; /* --wire or --switch */
	/* Their texts: names of ports may be given after their use. */
	const char *wire[URDMA_COSIM_MAX_WIRES];
	unsigned int n_wires;
	const char *sw[URDMA_COSIM_MAX_SWITCHES];
	const char *control;
	bool verbose;
	unsigned int gen, lanes;
	uint64_t seed;
	struct urdma_fault_rule fault[MAX_FAULTS];
	unsigned int n_faults;
	struct urdma_cosim_config cosim;
};

struct program {
	struct options opt;
	struct urdma_cosim *c;
	struct urdma_faults *faults; /* NULL: the wires are good */
	struct urdma_counters *counters;
	struct urdma_vfio_user_server *server[URDMA_COSIM_MAX_NICS];
	struct urdma_control *control;
	int signals;
	struct timespec start;
};

static const char usage_text[] =
	"Usage: urdma-cosim --socket PATH [--socket PATH ...] --out DIR [options]\n"
	"Simulates one urdma NIC for each socket, to be used by QEMU's vfio-user-pci device.\n"
	"\n"
	"  --socket PATH           vfio-user socket of the next NIC (urdma0, urdma1, ...)\n"
	"  --out DIR               where counters.json, cosim.json and captures go\n"
	"  --trace pcap            capture each port into DIR/urdma<n>.pcapng or DIR/NAME.pcapng\n"
	"  --port NAME=KIND:...    a port that is no NIC, by this name: "
	"stream:unix:PATH[,listen],\n"
	"                          stream:tcp:PORT[,listen], dgram:unix:PATH[,peer=PATH],\n"
	"                          dgram:udp:PORT[,peer=PORT], tap:IFNAME,\n"
	"                          replay:FILE[,fast][,at=NS][,hold][,only=in|only=out]\n"
	"  --wire A-B              join A and B, each the number of a NIC or the name of a port;\n"
	"                          \"none\": no wires. Without any --wire and --switch: 0-1, 2-3, "
	"...\n"
	"  --switch A,B,...        these are on a switch; again for another\n"
	"  --switch-queue BYTES    what each port of a switch can store (524288)\n"
	"  --switch-latency NS     of a switch, from a frame's last bit to its first (500)\n"
	"  --switch-age S          until a switch forgets an address (300)\n"
	"  --rate GBPS             line rate of the ports (100)\n"
	"  --delay NS              propagation delay of the wires (250)\n"
	"  --loss P, --dup P, --reorder P, --corrupt P, --ecn P\n"
	"                          lose, double, reorder, change, mark P percent of the frames of "
	"each\n"
	"                          direction; log in DIR/faults.log\n"
	"  --seed S                of what is random on the wires (1)\n"
	"  --fault SPEC            a chosen fault, KIND[,KEY=VALUE...], for instance\n"
	"                          drop,side=0,qpn=0x11,op=write_last,nth=3; may be repeated; see "
	"docs/cosim.md\n"
	"  --control PATH          socket that takes commands; see docs/cosim.md\n"
	"  --tell PATH COMMAND...  gives a running urdma-cosim a command by that socket, and ends\n"
	"  --pcie-gen N            PCIe generation, 1 to 5 (3)\n"
	"  --pcie-lanes N          PCIe lanes, 1 to 16 (16)\n"
	"  --pcie-gbps G           TLP bandwidth each way instead of generation and lanes\n"
	"  --pcie-latency NS       latency of a DMA read (500)\n"
	"  --mps BYTES             maximum payload the firmware programs: 128, 256, 512 (256)\n"
	"  --mrrs BYTES            maximum read request, 128 to 4096 (512)\n"
	"  --rcb BYTES             read completion boundary, 64 or 128 (64)\n"
	"  --completion BYTES      cut completions at multiples of it (the maximum payload)\n"
	"  --reorder-completions SEED  completions out of order and in varying pieces\n"
	"  --pcie-stall PERCENT    cycles in which the PCIe block accepts nothing (0)\n"
	"  --stall-us US           report a stall after that much simulated time, 0: never (1000)\n"
	"  --no-skip               evaluate every cycle, also when nothing happens\n"
	"  --verbose               log each vfio-user message\n"
	"  --help\n"
	"\n"
	"Prints \"ready\" when all sockets listen. SIGTERM or SIGINT ends it: it writes its "
	"reports and\n"
	"exits 0; 1 after a simulation error, 2 for bad options.\n";

static void __attribute__((noreturn, format(printf, 1, 2))) bad_option(const char *fmt, ...)
{
	va_list ap;

	fputs("urdma-cosim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\nTry urdma-cosim --help.\n", stderr);
	exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || v < min || v > max)
		bad_option("--%s %s: not a number from %" PRIu64 " to %" PRIu64, option, text, min,
			   max);
	return v;
}

/* A decimal number of Gb/s with up to three digits behind the point, as Mb/s. */
static uint64_t gbps(const char *option, const char *text)
{
	unsigned long long whole;
	uint64_t mbps, unit = 1000;
	char *end;

	errno = 0;
	whole = strtoull(text, &end, 10);
	if (errno || end == text || strchr(text, '-') || whole > 1000)
		bad_option("--%s %s: not a rate in Gb/s", option, text);
	mbps = whole * 1000;
	if (*end == '.') {
		for (end++; *end >= '0' && *end <= '9' && unit > 1; end++) {
			unit /= 10;
			mbps += (uint64_t)(*end - '0') * unit;
		}
	}
	if (*end || mbps < 100 || mbps > 1000000)
		bad_option("--%s %s: not a rate from 0.1 to 1000 Gb/s", option, text);
	return mbps;
}

static uint32_t power_of_two(const char *option, const char *text, uint32_t min, uint32_t max)
{
	uint32_t v = (uint32_t)number(option, text, min, max);

	if (v & (v - 1))
		bad_option("--%s %s: not a power of two", option, text);
	return v;
}

static void add_port(struct options *o, const char *text)
{
	struct urdma_cosim_config *c = &o->cosim;
	struct urdma_external *e;
	char error[256];

	if (c->n_external == URDMA_COSIM_MAX_EXTERNAL)
		bad_option("--port %s: more than %u", text, URDMA_COSIM_MAX_EXTERNAL);
	if (urdma_external_parse(text, &e, error, sizeof(error)))
		bad_option("--port %s: %s", text, error);
	for (unsigned int i = 0; i < c->n_external; i++)
		if (!strcmp(urdma_external_name(c->external[i]), urdma_external_name(e)))
			bad_option("--port %s: there is one of this name already", text);
	c->external[c->n_external++] = e;
}

/* What len characters name: a NIC by its number, with or without "urdma" in front, or a port. -1:
 * neither. */
static int find_port(const struct urdma_cosim_config *c, const char *text, size_t len)
{
	unsigned int v = 0;

	for (unsigned int i = 0; i < c->n_external; i++) {
		const char *name = urdma_external_name(c->external[i]);

		if (strlen(name) == len && !memcmp(name, text, len))
			return (int)URDMA_COSIM_EXTERNAL(i);
	}
	if (len > 5 && !memcmp(text, "urdma", 5)) {
		text += 5;
		len -= 5;
	}
	if (!len || len > 4)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (unsigned int)(text[i] - '0');
	}
	return v < c->n_nics ? (int)v : -1;
}

/* The port that an end of a wire names; it may have one wire only. */
static unsigned int wire_end(struct options *o, const char *option, const char *text,
			     const char *name, size_t len, bool used[URDMA_COSIM_MAX_PORTS])
{
	const struct urdma_cosim_config *c = &o->cosim;
	int port = find_port(c, name, len);

	if (port < 0 && len && strspn(name, "0123456789") >= len)
		bad_option("--%s %s: there are %u NICs, counted from 0", option, text, c->n_nics);
	if (port < 0)
		bad_option("--%s %s: '%.*s' is no NIC, and no --port has this name", option, text,
			   (int)len, name);
	if (used[port])
		bad_option("--%s %s: %s%.*s has a wire already", option, text,
			   port < (int)URDMA_COSIM_MAX_NICS ? "NIC " : "", (int)len, name);
	used[port] = true;
	return (unsigned int)port;
}

/* After all options: what is joined with what. */
static void make_topology(struct options *o)
{
	struct urdma_cosim_config *c = &o->cosim;
	bool used[URDMA_COSIM_MAX_PORTS] = { false };

	for (unsigned int i = 0; i < o->n_wires; i++) {
		const char *text = o->wire[i], *dash = strchr(text, '-');
		size_t len = dash ? (size_t)(dash - text) : 0;

		if (!strcmp(text, "none"))
			continue;
		if (!dash || strchr(dash + 1, '-') || !len || !dash[1])
			bad_option("--wire %s: not of the form A-B", text);
		if (strlen(dash + 1) == len && !memcmp(text, dash + 1, len))
			bad_option("--wire %s: joins a NIC with itself", text);
		c->wire[c->n_wires][0] = wire_end(o, "wire", text, text, len, used);
		c->wire[c->n_wires][1] =
			wire_end(o, "wire", text, dash + 1, strlen(dash + 1), used);
		c->n_wires++;
	}
	for (unsigned int i = 0; i < c->n_switches; i++) {
		const char *at = o->sw[i];

		for (;;) {
			size_t len = strcspn(at, ",");

			if (c->sw[i].n == URDMA_SWITCH_MAX_PORTS)
				bad_option("--switch %s: more than %u ports", o->sw[i],
					   URDMA_SWITCH_MAX_PORTS);
			c->sw[i].port[c->sw[i].n++] =
				wire_end(o, "switch", o->sw[i], at, len, used);
			if (!at[len])
				break;
			at += len + 1;
		}
	}
	for (unsigned int i = 0; i + 1 < c->n_nics && !o->topology_given; i += 2) {
		c->wire[i / 2][0] = i;
		c->wire[i / 2][1] = i + 1;
		used[i] = used[i + 1] = true;
		c->n_wires++;
	}
	for (unsigned int i = 0; i < c->n_external; i++)
		if (!used[URDMA_COSIM_EXTERNAL(i)])
			bad_option("--port %s=...: no --wire and no --switch has it",
				   urdma_external_name(c->external[i]));
}

/* The rest of the command line is a command for another. */
static void __attribute__((noreturn)) tell(const char *path, int argc, char **argv, int at)
{
	char line[URDMA_CONTROL_MAX_LINE] = "";

	if (at >= argc)
		bad_option("--tell %s: tell it what?", path);
	for (; at < argc; at++) {
		if (strlen(line) + strlen(argv[at]) + 2 > sizeof(line))
			bad_option("--tell: the command is too long");
		if (line[0])
			strcat(line, " ");
		strcat(line, argv[at]);
	}
	exit(urdma_control_tell(path, line));
}

static void add_fault(struct options *o, const char *option, const struct urdma_fault_rule *rule)
{
	if (o->n_faults == MAX_FAULTS)
		bad_option("--%s: more than %u faults", option, MAX_FAULTS);
	o->fault[o->n_faults++] = *rule;
}

static void add_random_fault(struct options *o, const char *option, enum urdma_fault_kind kind,
			     const char *text)
{
	struct urdma_fault_rule rule;

	urdma_fault_rule_defaults(&rule, kind);
	if (urdma_fault_percent(text, &rule.probability))
		bad_option("--%s %s: not a number of percent from 0 to 100", option, text);
	if (rule.probability)
		add_fault(o, option, &rule);
}

static void add_chosen_fault(struct options *o, const char *text)
{
	struct urdma_fault_rule rule;
	char error[160];

	if (urdma_fault_parse(text, &rule, error, sizeof(error)))
		bad_option("--fault %s: %s", text, error);
	add_fault(o, "fault", &rule);
}

static void parse(struct options *o, int argc, char **argv)
{
	enum {
		OPT_SOCKET = 1,
		OPT_OUT,
		OPT_TRACE,
		OPT_PORT,
		OPT_WIRE,
		OPT_SWITCH,
		OPT_SWITCH_QUEUE,
		OPT_SWITCH_LATENCY,
		OPT_SWITCH_AGE,
		OPT_CONTROL,
		OPT_TELL,
		OPT_RATE,
		OPT_DELAY,
		OPT_LOSS,
		OPT_DUP,
		OPT_REORDER,
		OPT_CORRUPT,
		OPT_ECN,
		OPT_SEED,
		OPT_FAULT,
		OPT_GEN,
		OPT_LANES,
		OPT_GBPS,
		OPT_LATENCY,
		OPT_MPS,
		OPT_MRRS,
		OPT_RCB,
		OPT_COMPLETION,
		OPT_REORDER_CPL,
		OPT_PCIE_STALL,
		OPT_STALL,
		OPT_NO_SKIP,
		OPT_VERBOSE,
		OPT_HELP,
	};
	static const struct option options[] = {
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "out", required_argument, NULL, OPT_OUT },
		{ "trace", required_argument, NULL, OPT_TRACE },
		{ "port", required_argument, NULL, OPT_PORT },
		{ "wire", required_argument, NULL, OPT_WIRE },
		{ "switch", required_argument, NULL, OPT_SWITCH },
		{ "switch-queue", required_argument, NULL, OPT_SWITCH_QUEUE },
		{ "switch-latency", required_argument, NULL, OPT_SWITCH_LATENCY },
		{ "switch-age", required_argument, NULL, OPT_SWITCH_AGE },
		{ "control", required_argument, NULL, OPT_CONTROL },
		{ "tell", required_argument, NULL, OPT_TELL },
		{ "rate", required_argument, NULL, OPT_RATE },
		{ "delay", required_argument, NULL, OPT_DELAY },
		{ "loss", required_argument, NULL, OPT_LOSS },
		{ "dup", required_argument, NULL, OPT_DUP },
		{ "reorder", required_argument, NULL, OPT_REORDER },
		{ "corrupt", required_argument, NULL, OPT_CORRUPT },
		{ "ecn", required_argument, NULL, OPT_ECN },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "fault", required_argument, NULL, OPT_FAULT },
		{ "pcie-gen", required_argument, NULL, OPT_GEN },
		{ "pcie-lanes", required_argument, NULL, OPT_LANES },
		{ "pcie-gbps", required_argument, NULL, OPT_GBPS },
		{ "pcie-latency", required_argument, NULL, OPT_LATENCY },
		{ "mps", required_argument, NULL, OPT_MPS },
		{ "mrrs", required_argument, NULL, OPT_MRRS },
		{ "rcb", required_argument, NULL, OPT_RCB },
		{ "completion", required_argument, NULL, OPT_COMPLETION },
		{ "reorder-completions", required_argument, NULL, OPT_REORDER_CPL },
		{ "pcie-stall", required_argument, NULL, OPT_PCIE_STALL },
		{ "stall-us", required_argument, NULL, OPT_STALL },
		{ "no-skip", no_argument, NULL, OPT_NO_SKIP },
		{ "verbose", no_argument, NULL, OPT_VERBOSE },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct urdma_cosim_config *c = &o->cosim;
	bool link_given = false, gbps_given = false;
	int k;

	memset(o, 0, sizeof(*o));
	urdma_cosim_config_defaults(c, 0);
	o->gen = 3;
	o->lanes = 16;
	o->seed = 1;
	opterr = 0;
	while ((k = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		switch (k) {
		case OPT_SOCKET:
			if (o->n_sockets == URDMA_COSIM_MAX_NICS)
				bad_option("--socket: more than %u NICs", URDMA_COSIM_MAX_NICS);
			o->socket[o->n_sockets++] = optarg;
			break;
		case OPT_OUT:
			o->out = optarg;
			break;
		case OPT_TRACE:
			if (strcmp(optarg, "pcap"))
				bad_option("--trace %s: only pcap is known", optarg);
			o->trace_pcap = true;
			break;
		case OPT_WIRE:
			if (o->n_wires == URDMA_COSIM_MAX_WIRES)
				bad_option("--wire %s: more than %u wires", optarg,
					   URDMA_COSIM_MAX_WIRES);
			o->wire[o->n_wires++] = optarg;
			o->topology_given = true;
			break;
		case OPT_PORT:
			add_port(o, optarg);
			break;
		case OPT_SWITCH:
			if (c->n_switches == URDMA_COSIM_MAX_SWITCHES)
				bad_option("--switch %s: more than %u switches", optarg,
					   URDMA_COSIM_MAX_SWITCHES);
			o->sw[c->n_switches++] = optarg;
			o->topology_given = true;
			break;
		case OPT_SWITCH_QUEUE:
			c->switch_queue =
				number("switch-queue", optarg, URDMA_ETH_MAX_FRAME, 1u << 30);
			break;
		case OPT_SWITCH_LATENCY:
			c->switch_latency_ns = number("switch-latency", optarg, 4, 1000000000);
			break;
		case OPT_SWITCH_AGE:
			c->switch_age_ns =
				number("switch-age", optarg, 1, 1000000) * UINT64_C(1000000000);
			break;
		case OPT_CONTROL:
			o->control = optarg;
			break;
		case OPT_TELL:
			tell(optarg, argc, argv, optind);
		case OPT_RATE:
			c->rate_mbps = gbps("rate", optarg);
			break;
		case OPT_DELAY:
			c->delay_ns = number("delay", optarg, 4, 1000000000);
			break;
		case OPT_LOSS:
			add_random_fault(o, "loss", URDMA_FAULT_DROP, optarg);
			break;
		case OPT_DUP:
			add_random_fault(o, "dup", URDMA_FAULT_DUP, optarg);
			break;
		case OPT_REORDER:
			add_random_fault(o, "reorder", URDMA_FAULT_REORDER, optarg);
			break;
		case OPT_CORRUPT:
			add_random_fault(o, "corrupt", URDMA_FAULT_CORRUPT, optarg);
			break;
		case OPT_ECN:
			add_random_fault(o, "ecn", URDMA_FAULT_ECN, optarg);
			break;
		case OPT_SEED:
			o->seed = number("seed", optarg, 0, UINT64_MAX);
			break;
		case OPT_FAULT:
			add_chosen_fault(o, optarg);
			break;
		case OPT_GEN:
			o->gen = (unsigned int)number("pcie-gen", optarg, 1, 5);
			link_given = true;
			break;
		case OPT_LANES:
			o->lanes = power_of_two("pcie-lanes", optarg, 1, 16);
			link_given = true;
			break;
		case OPT_GBPS:
			c->pcie.mbps = (uint32_t)gbps("pcie-gbps", optarg);
			gbps_given = true;
			break;
		case OPT_LATENCY:
			c->pcie.latency_ns = (uint32_t)number("pcie-latency", optarg, 16, 100000);
			break;
		case OPT_MPS:
			c->pcie.mps = power_of_two("mps", optarg, 128, 512);
			break;
		case OPT_MRRS:
			c->pcie.mrrs = power_of_two("mrrs", optarg, 128, 4096);
			break;
		case OPT_RCB:
			c->pcie.rcb = power_of_two("rcb", optarg, 64, 128);
			break;
		case OPT_COMPLETION:
			c->pcie.cpl = power_of_two("completion", optarg, 64, 512);
			break;
		case OPT_REORDER_CPL:
			c->pcie.reorder = 1;
			c->pcie.seed = number("reorder-completions", optarg, 0, UINT64_MAX);
			break;
		case OPT_PCIE_STALL:
			c->pcie.stall_percent = (uint8_t)number("pcie-stall", optarg, 0, 95);
			break;
		case OPT_STALL:
			c->stall_ns = number("stall-us", optarg, 0, 1000000000) * 1000;
			break;
		case OPT_NO_SKIP:
			c->no_skip = true;
			break;
		case OPT_VERBOSE:
			o->verbose = true;
			break;
		case OPT_HELP:
			fputs(usage_text, stdout);
			exit(0);
		case ':':
			bad_option("%s needs a value", argv[optind - 1]);
		default:
			bad_option("unknown option %s", argv[optind - 1]);
		}
	}
	if (optind < argc)
		bad_option("unexpected argument %s", argv[optind]);
	if (!o->n_sockets)
		bad_option("no --socket: nothing to simulate");
	if (!o->out)
		bad_option("--out is missing");
	if (link_given && gbps_given)
		bad_option("--pcie-gbps excludes --pcie-gen and --pcie-lanes");
	if (!gbps_given)
		c->pcie.mbps = urdma_pcie_link_mbps(o->gen, o->lanes);
	if (c->pcie.cpl && c->pcie.cpl < c->pcie.rcb)
		bad_option("--completion %u: below the read completion boundary of %u", c->pcie.cpl,
			   c->pcie.rcb);
	c->n_nics = o->n_sockets;
	make_topology(o);
}

/* ---- reports ------------------------------------------------------------------------------- */

static double wall_seconds(const struct program *p)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - p->start.tv_sec) +
	       (double)(now.tv_nsec - p->start.tv_nsec) * 1e-9;
}

static int dump(const struct program *p, const char *name, json_t *json)
{
	char path[4096];
	int ret = 0;

	snprintf(path, sizeof(path), "%s/%s", p->opt.out, name);
	if (!json || json_dump_file(json, path, JSON_INDENT(2))) {
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(errno));
		ret = 1;
	}
	json_decref(json);
	return ret;
}

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

#define FAULT_LOG "faults.log"

/* Rules on all wires, and their log. 0, or 1 after a message. */
static int start_faults(struct program *p)
{
	char path[4096];
	int ret;

	if (!p->opt.n_faults)
		return 0;
	ret = urdma_faults_create(p->opt.seed, &p->faults);
	for (unsigned int i = 0; i < p->opt.n_faults && !ret; i++)
		ret = urdma_faults_add(p->faults, &p->opt.fault[i]);
	for (unsigned int i = 0; i < urdma_cosim_wires(p->c) && !ret; i++)
		ret = urdma_faults_attach(p->faults, urdma_cosim_wire(p->c, i), i);
	if (ret) {
		fprintf(stderr, "urdma-cosim: cannot set up the wires' faults: %s\n",
			strerror(-ret));
		return 1;
	}
	snprintf(path, sizeof(path), "%s/" FAULT_LOG, p->opt.out);
	ret = urdma_faults_log(p->faults, path);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
	return ret != 0;
}

static json_t *report_faults(const struct program *p)
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
	json_object_set_new(faults, "log", json_string(FAULT_LOG));
	json_object_set_new(faults, "counts", counts);
	return faults;
}

static void put_port(json_t *json, const struct urdma_eth_stats *es)
{
	json_object_set_new(json, "tx_frames", integer(es->tx_frames));
	json_object_set_new(json, "tx_bytes", integer(es->tx_bytes));
	json_object_set_new(json, "rx_frames", integer(es->rx_frames));
	json_object_set_new(json, "rx_bytes", integer(es->rx_bytes));
	json_object_set_new(json, "lost_link_down", integer(es->tx_unconnected + es->rx_lost));
	json_object_set_new(json, "lost_overrun", integer(es->rx_overrun));
}

static void put_capture(const struct program *p, json_t *json, const char *name)
{
	char file[80];

	snprintf(file, sizeof(file), "%s.pcapng", name);
	json_object_set_new(json, "capture", p->opt.trace_pcap ? json_string(file) : json_null());
}

static json_t *report_ports(const struct program *p)
{
	json_t *ports = json_array();

	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		struct urdma_external *e = p->opt.cosim.external[i];
		const struct urdma_external_stats *xs = urdma_external_stats(e);
		json_t *port = json_object();

		json_object_set_new(port, "name", json_string(urdma_external_name(e)));
		json_object_set_new(port, "kind", json_string(urdma_external_kind(e)));
		json_object_set_new(port, "up", json_boolean(xs->up));
		put_port(port, &urdma_external_port(e)->stats);
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

static const char *port_name(const struct program *p, unsigned int port)
{
	return urdma_cosim_port(p->c, port)->name;
}

static json_t *report_switches(const struct program *p)
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
			put_port(port, es);
			json_object_set_new(port, "tail_drops", integer(es->tx_dropped));
			json_object_set_new(port, "queue_max", integer(es->tx_queue_max));
			json_array_append_new(ports, port);
		}
		json_object_set_new(sw, "ports", ports);
		json_array_append_new(switches, sw);
	}
	return switches;
}

/* The counters of a NIC, by name. */
static json_t *read_counters(const struct program *p, unsigned int nic, bool quiet)
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

static int report(struct program *p, const char *error)
{
	const struct urdma_cosim_stats *cs;
	json_t *counters = json_object(), *root = json_object(), *nics = json_array();
	double wall = wall_seconds(p);
	int ret;

	/* Before the counters are read: reading them takes time of its own. */
	cs = urdma_cosim_stats(p->c);
	json_object_set_new(root, "simulated_ns",
			    integer(urdma_cosim_now(p->c) * URDMA_SIM_CYCLE_NS));
	json_object_set_new(root, "cycles_simulated", integer(cs->evaluated));
	json_object_set_new(root, "cycles_skipped", integer(cs->skipped));
	json_object_set_new(root, "wall_seconds", json_real(wall));
	json_object_set_new(root, "cycles_per_second",
			    json_real(wall > 0 ? (double)cs->evaluated / wall : 0));
	for (unsigned int i = 0; i < p->opt.n_sockets; i++) {
		const struct urdma_eth_stats *es = &urdma_cosim_port(p->c, i)->stats;
		const struct urdma_pcie_stats *ps = urdma_pcie_stats(urdma_cosim_pcie(p->c, i));
		json_t *nic = json_object(), *pcie = json_object();
		char name[64];

		snprintf(name, sizeof(name), "urdma%u", i);
		json_object_set_new(nic, "name", json_string(name));
		json_object_set_new(nic, "socket", json_string(p->opt.socket[i]));
		put_port(nic, es);
		put_capture(p, nic, name);
		json_object_set_new(pcie, "dma_reads", integer(ps->rq_reads));
		json_object_set_new(pcie, "dma_read_bytes", integer(ps->rq_read_bytes));
		json_object_set_new(pcie, "dma_writes", integer(ps->rq_writes));
		json_object_set_new(pcie, "dma_write_bytes", integer(ps->rq_write_bytes));
		json_object_set_new(pcie, "dma_faults",
				    integer(ps->read_faults + ps->write_faults));
		json_object_set_new(pcie, "register_reads", integer(ps->mmio_reads));
		json_object_set_new(pcie, "register_writes", integer(ps->mmio_writes));
		json_object_set_new(pcie, "interrupts", integer(ps->irqs));
		json_object_set_new(pcie, "resets", integer(ps->resets));
		json_object_set_new(nic, "pcie", pcie);
		json_array_append_new(nics, nic);

		json_object_set_new(counters, name, read_counters(p, i, error));
	}
	json_object_set_new(root, "nics", nics);
	json_object_set_new(root, "ports", report_ports(p));
	json_object_set_new(root, "switches", report_switches(p));
	json_object_set_new(root, "faults", report_faults(p));
	json_object_set_new(root, "error", error ? json_string(error) : json_null());
	ret = p->faults && urdma_faults_flush(p->faults);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write " FAULT_LOG "\n");
	ret |= dump(p, "counters.json", counters);
	ret |= dump(p, "cosim.json", root);
	return ret;
}

/* ---- commands from outside ----------------------------------------------------------------- */

static char *say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *say(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

static char *say_json(json_t *json)
{
	char *dumped = json_dumps(json, JSON_COMPACT);
	char *text = dumped ? say("ok %s", dumped) : say("error out of memory");

	free(dumped);
	json_decref(json);
	return text;
}

/* One line of the control socket, between runs. See docs/cosim.md. */
static char *command(void *ctx, char *line)
{
	struct program *p = ctx;
	char *word[3] = { NULL }, *more, *save = NULL;
	unsigned int n = 0;
	int port = -1, ret;

	for (more = strtok_r(line, " \t", &save); more; more = strtok_r(NULL, " \t", &save)) {
		if (n == 3)
			return say("error too many words");
		word[n++] = more;
	}
	if (!n)
		return NULL;
	if (n > 1) {
		port = find_port(&p->opt.cosim, word[1], strlen(word[1]));
		if (port < 0)
			return say("error there is no NIC and no port %s", word[1]);
	}
	if (!strcmp(word[0], "link") && n == 3 &&
	    (!strcmp(word[2], "up") || !strcmp(word[2], "down"))) {
		ret = urdma_cosim_link(p->c, (unsigned int)port, !strcmp(word[2], "up"));
		return ret ? say("error %s", ret == -ENOTCONN ? "it has no wire" : strerror(-ret))
			   : NULL;
	}
	if (!strcmp(word[0], "link") && n == 2) {
		bool up = urdma_wire_link(urdma_cosim_port(p->c, (unsigned int)port)->wire);

		return say("ok %s", up ? "up" : "down");
	}
	if (!strcmp(word[0], "start") && n == 2) {
		if (port < (int)URDMA_COSIM_EXTERNAL(0))
			return say("error %s is a NIC", word[1]);
		ret = urdma_external_start(
			p->opt.cosim.external[port - (int)URDMA_COSIM_EXTERNAL(0)],
			urdma_cosim_now(p->c));
		return !ret ? NULL
			    : say("error %s",
				  ret == -EALREADY ? "it has begun already" : "it is not a replay");
	}
	if (!strcmp(word[0], "counters") && n == 2) {
		if (port >= (int)URDMA_COSIM_MAX_NICS)
			return say("error %s is not a NIC", word[1]);
		return say_json(read_counters(p, (unsigned int)port, true));
	}
	if (!strcmp(word[0], "counters") && n == 1) {
		json_t *json = json_object();

		for (unsigned int i = 0; i < p->opt.n_sockets; i++) {
			char name[16];

			snprintf(name, sizeof(name), "urdma%u", i);
			json_object_set_new(json, name, read_counters(p, i, true));
		}
		json_object_set_new(json, "ports", report_ports(p));
		json_object_set_new(json, "switches", report_switches(p));
		return say_json(json);
	}
	if (!strcmp(word[0], "time") && n == 1)
		return say("ok %" PRIu64, urdma_cosim_now(p->c) * URDMA_SIM_CYCLE_NS);
	return say("error not a command: link PORT [up|down], start PORT, counters [NIC], time");
}

/* ---- time ---------------------------------------------------------------------------------- */

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Handles messages; leaves alone a guest whose accesses the NIC has not taken yet. */
static bool serve(struct program *p)
{
	bool any = false;

	for (unsigned int i = 0; i < p->opt.n_sockets; i++)
		if (urdma_pcie_backlog(urdma_cosim_pcie(p->c, i)) < BACKLOG_MAX)
			any |= urdma_vfio_user_process(p->server[i]) != 0;
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++)
		any |= urdma_external_process(p->opt.cosim.external[i], urdma_cosim_now(p->c));
	if (p->control)
		any |= urdma_control_process(p->control);
	return any;
}

/* Waits for a message, a signal, or ns nanoseconds (UINT64_MAX: for ever). True: a signal came. */
static bool wait(struct program *p, uint64_t ns)
{
	struct pollfd fds[1 + URDMA_COSIM_MAX_NICS * URDMA_VFIO_USER_MAX_POLLFDS +
			  URDMA_COSIM_MAX_EXTERNAL * URDMA_EXTERNAL_MAX_POLLFDS +
			  URDMA_CONTROL_MAX_POLLFDS];
	struct timespec ts;
	nfds_t n = 0;

	fds[n].fd = p->signals;
	fds[n++].events = POLLIN;
	for (unsigned int i = 0; i < p->opt.n_sockets; i++)
		n += urdma_vfio_user_pollfds(p->server[i], &fds[n]);
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		n += urdma_external_pollfds(p->opt.cosim.external[i], &fds[n]);
		if (urdma_external_waiting(p->opt.cosim.external[i]) && ns > 1000000)
			ns = 1000000;
	}
	if (p->control)
		n += urdma_control_pollfds(p->control, &fds[n]);
	ts = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u) };
	if (ppoll(fds, n, ns == UINT64_MAX ? NULL : &ts, NULL) < 0)
		return false;
	return fds[0].revents != 0;
}

/*
 * Runs until a signal. While a NIC is busy the model runs as fast as it can. When all are quiet,
 * the process sleeps, and afterwards simulated time moves on by as much as the wall clock did, at
 * most: an armed timer never fires before the guest had that time to act.
 */
static int main_loop(struct program *p)
{
	uint64_t quiet_wall = 0, quiet_cycle = 0;
	bool quiet = false;
	int ret;

	for (;;) {
		uint64_t timer, elapsed, target;

		serve(p);
		if (urdma_cosim_busy(p->c)) {
			quiet = false;
			ret = urdma_cosim_run_while_busy(p->c, urdma_cosim_now(p->c) + BUSY_SLICE);
			if (ret)
				return ret;
			if (urdma_cosim_busy(p->c)) {
				if (wait(p, 0))
					return 0;
				continue;
			}
		}
		if (!quiet) {
			quiet = true;
			quiet_wall = wall_ns();
			quiet_cycle = urdma_cosim_now(p->c);
			urdma_cosim_flush_captures(p->c);
			if (p->faults)
				urdma_faults_flush(p->faults);
		}
		timer = urdma_cosim_next(p->c);
		elapsed = (wall_ns() - quiet_wall) / URDMA_SIM_CYCLE_NS;
		target = quiet_cycle + elapsed;
		if (timer > target) {
			/* The times of a capture may be centuries apart. */
			uint64_t left = timer - target > UINT64_MAX / URDMA_SIM_CYCLE_NS
						? UINT64_MAX
						: (timer - target) * URDMA_SIM_CYCLE_NS;

			if (wait(p, left))
				return 0;
			target = quiet_cycle + (wall_ns() - quiet_wall) / URDMA_SIM_CYCLE_NS;
		} else if (wait(p, 0)) {
			return 0;
		}
		/*
		 * The time that has passed, but not past a timer: when one fires, the NICs are busy
		 * again, and the guests have to be served meanwhile.
		 */
		if (timer < target) {
			uint64_t now = urdma_cosim_now(p->c);
			uint64_t stop = (timer > now ? timer : now) + BUSY_SLICE;

			if (stop < target)
				target = stop;
		}
		ret = urdma_cosim_run_until(p->c, target);
		if (ret)
			return ret;
	}
}

int main(int argc, char **argv)
{
	static struct program p;
	const char *error = NULL;
	sigset_t set;
	int ret;

	parse(&p.opt, argc, argv);
	clock_gettime(CLOCK_MONOTONIC, &p.start);
	if (mkdir(p.opt.out, 0777) && errno != EEXIST) {
		fprintf(stderr, "urdma-cosim: cannot make directory %s: %s\n", p.opt.out,
			strerror(errno));
		return 1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	p.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	for (unsigned int i = 0; i < p.opt.cosim.n_external; i++) {
		struct urdma_external *e = p.opt.cosim.external[i];
		char why[512];

		if (urdma_external_open(e, p.opt.cosim.rate_mbps, why, sizeof(why))) {
			fprintf(stderr, "urdma-cosim: port %s: %s\n", urdma_external_name(e), why);
			return 1;
		}
	}
	ret = urdma_cosim_create(&p.opt.cosim, &urdma_model_verilated, &p.c);
	if (p.signals < 0 || ret) {
		fprintf(stderr, "urdma-cosim: cannot create the simulation: %s\n",
			strerror(ret ? -ret : errno));
		return 1;
	}
	p.counters = urdma_counters_create(p.c);
	if (!p.counters || start_faults(&p))
		return 1;
	for (unsigned int i = 0; i < p.opt.n_sockets; i++) {
		struct urdma_vfio_user_config vc = {
			.path = p.opt.socket[i],
			.pcie = urdma_cosim_pcie(p.c, i),
			.log_debug = p.opt.verbose,
		};
		char path[4096];

		if (p.opt.trace_pcap) {
			snprintf(path, sizeof(path), "%s/urdma%u.pcapng", p.opt.out, i);
			ret = urdma_cosim_capture(p.c, i, path);
			if (ret) {
				fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path,
					strerror(-ret));
				return 1;
			}
		}
		ret = urdma_vfio_user_create(&vc, &p.server[i]);
		if (ret) {
			fprintf(stderr, "urdma-cosim: cannot listen at %s: %s\n", p.opt.socket[i],
				strerror(-ret));
			return 1;
		}
	}
	for (unsigned int i = 0; i < p.opt.cosim.n_external && p.opt.trace_pcap; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s.pcapng", p.opt.out,
			 urdma_external_name(p.opt.cosim.external[i]));
		ret = urdma_cosim_capture(p.c, URDMA_COSIM_EXTERNAL(i), path);
		if (ret) {
			fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
			return 1;
		}
	}
	if (p.opt.control) {
		ret = urdma_control_create(p.opt.control, command, &p, &p.control);
		if (ret) {
			fprintf(stderr, "urdma-cosim: cannot listen at %s: %s\n", p.opt.control,
				strerror(-ret));
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	ret = main_loop(&p);
	if (ret) {
		error = urdma_cosim_error(p.c);
		if (!error)
			error = strerror(-ret);
		fprintf(stderr, "urdma-cosim: simulation error: %s\n", error);
	}
	ret = report(&p, error) || ret;
	for (unsigned int i = 0; i < p.opt.n_sockets; i++)
		urdma_vfio_user_destroy(p.server[i]);
	urdma_control_destroy(p.control);
	urdma_counters_destroy(p.counters);
	urdma_cosim_destroy(p.c);
	for (unsigned int i = 0; i < p.opt.cosim.n_external; i++)
		urdma_external_destroy(p.opt.cosim.external[i]);
	urdma_faults_destroy(p.faults);
	close(p.signals);
	return ret ? 1 : 0;
}
