// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of urdma-cosim with --system FILE. Each case is a process of its own, because a
 * bad option ends it. A failure means that a NIC or a wire would not have the settings that the
 * user has written for it, that a run could not be repeated from its system.json, or that a mistake
 * in a file would go unnoticed or be reported without its position. Usage: test_system DIR; in DIR
 * are example files.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "model_nic.h"
#include "options/options.h"
#include "pcie/config_space.h"

static const char *examples;
static char dir[] = "/tmp/urdma-test-system.XXXXXX";
static char file[64], again[64];

bool urdma_sim_has_waves(void)
{
	return false;
}

int urdma_sim_check_scope(const char *scope, char *why, size_t size)
{
	(void)scope;
	(void)why;
	(void)size;
	return 0;
}

/* ---- running the options --------------------------------------------------------------------- */

/* Settings of the simulation: for each NIC, the link in configuration space and the rate of its
 * line. */
static json_t *simulation_json(const struct urdma_options *o)
{
	json_t *nics = json_array();
	struct urdma_cosim *c;

	if (urdma_cosim_create(&o->cosim, &model_nic, &c))
		return nics;
	for (unsigned int i = 0; i < urdma_cosim_nics(c); i++) {
		uint8_t status[2];

		urdma_pcie_config_read(urdma_cosim_pcie(c, i), URDMA_CONFIG_CAP_PCIE + 0x12, status,
				       2);
		json_array_append_new(
			nics, json_sprintf("gen%ux%u %u Mb/s", status[0] & 15,
					   status[0] >> 4 | (status[1] & 3) << 4,
					   (unsigned int)urdma_cosim_port(c, i)->line.mbps));
	}
	urdma_cosim_destroy(c);
	return nics;
}

static void child(int argc, char **argv)
{
	static struct urdma_options o;
	json_t *json;

	urdma_options_parse(&o, argc, argv);
	json = json_pack("{s[ss?]soso}", "sockets", o.nic[0].socket, o.nic[1].socket, "settings",
			 urdma_options_json(&o), "simulation",
			 o.cosim.n_external ? json_null() : simulation_json(&o));
	json_dumpf(json, stdout, URDMA_OPTIONS_DUMP);
	fflush(stdout);
	json_decref(json);
	for (unsigned int i = 0; i < o.cosim.n_external; i++)
		urdma_external_destroy(o.cosim.external[i]);
	exit(0);
}

/*
 * Runs the options of a command line, which is split at spaces. Returns the exit status; text has
 * the output of both streams.
 */
static int run(const char *line, char *text, size_t size)
{
	char words[1024], *argv[80] = { (char[]){ "urdma-cosim" } }, *save = NULL;
	int argc = 1, fd[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	assert_int_equal(pipe(fd), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fd[1], 1);
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		child(argc, argv);
	}
	close(fd[1]);
	while (n + 1 < size && (got = read(fd[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd[0]);
	assert_true(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static json_t *good(const char *line)
{
	static char text[65536];
	json_error_t error;
	json_t *json;
	int status = run(line, text, sizeof(text));
	size_t n = strlen(text);

	if (status)
		fail_msg("\"%s\" exits %d: %s", line, status, text + (n > 1500 ? n - 1500 : 0));
	json = json_loads(text, 0, &error);
	if (!json)
		fail_msg("\"%s\" prints: %s", line, text);
	return json;
}

static void bad(const char *line, const char *words)
{
	char text[4096];
	int status = run(line, text, sizeof(text));

	if (status != 2 || !strstr(text, words))
		fail_msg("\"%s\": status %d, and not \"%s\" but: %s", line, status, words, text);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Runs the options with a file of this text. */
static json_t *with(const char *text, const char *options)
{
	char line[1024];

	put(file, text);
	snprintf(line, sizeof(line), "--system %s --out o %s", file, options);
	return good(line);
}

static json_t *system_of(json_t *json)
{
	return json_object_get(json_object_get(json, "settings"), "system");
}

/* The JSON at a path such as "hosts.0.nics.1.mps". */
static json_t *at(json_t *json, const char *path)
{
	char words[128], *save = NULL;

	snprintf(words, sizeof(words), "%s", path);
	for (char *w = strtok_r(words, ".", &save); w && json; w = strtok_r(NULL, ".", &save))
		json = json_is_array(json) ? json_array_get(json, strtoul(w, NULL, 10))
					   : json_object_get(json, w);
	return json;
}

/* value: as JSON */
static void has(json_t *json, const char *path, const char *value)
{
	json_t *found = at(system_of(json), path), *want;

	want = json_loads(value, JSON_DECODE_ANY, NULL);
	assert_non_null(want);
	if (!found || !json_equal(found, want)) {
		char *text = json_dumps(system_of(json), URDMA_OPTIONS_DUMP);

		fail_msg("%s is not %s in: %s", path, value, text);
	}
	json_decref(want);
}

static void simulates(json_t *json, unsigned int nic, const char *what)
{
	json_t *nics = json_object_get(json, "simulation");

	assert_string_equal(json_string_value(json_array_get(nics, nic)), what);
}

/* ---- good files ------------------------------------------------------------------------------ */

static void defaults(void **state)
{
	json_t *with_file = with("{ \"hosts\": [ { \"nics\": [ {}, {} ] } ] }", "");
	json_t *without = good("--socket a --socket b --out o");

	(void)state;
	if (!json_equal(json_object_get(with_file, "settings"),
			json_object_get(without, "settings")))
		fail_msg("a file without settings changes the defaults");
	has(without, "wires.0", "{ \"wire\": \"urdma0-urdma1\", \"rate\": 100, \"delay\": 250 }");
	has(without, "switches", "[]");
	has(without, "hosts.0.nics.1",
	    "{ \"pcie-gen\": 3, \"pcie-lanes\": 16, \"pcie-latency\": 500, \"mps\": 256,"
	    "\"mrrs\": 4096, \"rcb\": 64, \"pcie-stall\": 0 }");
	simulates(without, 1, "gen3x16 100000 Mb/s");
	json_decref(with_file);
	json_decref(without);
}

static const char levels_file[] =
	"{ \"hosts\": [ { \"nics\": [ { \"pcie-gen\": 4, \"mps\": 512 }, {} ] },"
	"               { \"nics\": [ { \"pcie-gbps\": 50.5 }, { \"pcie\": \"gen2x4\" } ] } ],"
	"  \"wires\": [ { \"wire\": \"0-2\", \"rate\": 25 }, { \"wire\": \"urdma1-3\" } ],"
	"  \"pcie-lanes\": 8, \"pcie-latency\": 700, \"rate\": 40, \"delay\": 1000 }";

/* Settings of one object override those of all, wherever they stand in the file. */
static void levels(void **state)
{
	json_t *json = with(levels_file, "");

	(void)state;
	has(json, "hosts.0.nics.0.pcie-gen", "4");
	has(json, "hosts.0.nics.0.pcie-lanes", "8");
	has(json, "hosts.0.nics.0.mps", "512");
	has(json, "hosts.0.nics.0.pcie-latency", "700");
	has(json, "hosts.0.nics.1.pcie-gen", "3");
	has(json, "hosts.0.nics.1.mps", "256");
	has(json, "hosts.1.nics.0.pcie-gbps", "50.5");
	has(json, "hosts.1.nics.1.pcie-gen", "2");
	has(json, "hosts.1.nics.1.pcie-lanes", "4");
	has(json, "wires.0", "{ \"wire\": \"urdma0-urdma2\", \"rate\": 25, \"delay\": 1000 }");
	has(json, "wires.1", "{ \"wire\": \"urdma1-urdma3\", \"rate\": 40, \"delay\": 1000 }");
	simulates(json, 0, "gen4x8 25000 Mb/s");
	simulates(json, 1, "gen3x8 40000 Mb/s");
	/* A bandwidth does not imply generation and width. */
	simulates(json, 2, "gen3x16 25000 Mb/s");
	simulates(json, 3, "gen2x4 40000 Mb/s");
	json_decref(json);
}

static void command_line_first(void **state)
{
	json_t *json = with(levels_file, "--pcie-gen 5 --rate 10 --delay 4 --seed 7 --mps 128");

	(void)state;
	simulates(json, 0, "gen5x8 10000 Mb/s");
	simulates(json, 1, "gen5x8 10000 Mb/s");
	simulates(json, 2, "gen5x16 10000 Mb/s");
	simulates(json, 3, "gen5x4 10000 Mb/s");
	for (unsigned int i = 0; i < 2; i++) {
		has(json, i ? "wires.1.rate" : "wires.0.rate", "10");
		has(json, i ? "wires.1.delay" : "wires.0.delay", "4");
		has(json, i ? "hosts.1.nics.1.mps" : "hosts.0.nics.0.mps", "128");
	}
	has(json, "hosts.0.nics.0.pcie-latency", "700");
	has(json, "seed", "7");
	json_decref(json);
	/* The position before or after --system makes no difference. */
	put(file, levels_file);
	{
		char line[256];

		snprintf(line, sizeof(line), "--pcie-gbps 20 --rate=50 --out o --sys %s", file);
		json = good(line);
	}
	for (unsigned int i = 0; i < 4; i++)
		simulates(json, i, "gen3x16 50000 Mb/s");
	has(json, "hosts.1.nics.1.pcie-gbps", "20");
	json_decref(json);
}

static const char lists_file[] =
	"{ \"hosts\": [ { \"nics\": [ {}, {}, {} ] } ],"
	"  \"ports\": [ \"a=tap:x\", \"b=tap:y\" ],"
	"  \"wires\": [ \"0-a\" ],"
	"  \"switches\": [ { \"switch\": \"1,2,b\", \"delay\": 40, \"switch-latency\": 900,"
	"                    \"wires\": { \"urdma2\": { \"rate\": 10 }, \"b\": { \"delay\": 80 } } "
	"} ],"
	"  \"faults\": [ \"drop,side=1,nth=2\" ], \"dup\": 0.5, \"seed\": 18446744073709551615 }";

static void lists(void **state)
{
	char text[1024];
	json_t *json;

	(void)state;
	/* JSON's integers are smaller than the largest seeds; strings are not. */
	put(file, lists_file);
	snprintf(text, sizeof(text), "--system %s --out o", file);
	bad(text, "too big integer");
	snprintf(text, sizeof(text), "%s", lists_file);
	memcpy(strstr(text, "18446744073709551615 }"), "\"9446744073709551615\"}", 22);
	json = with(text, "");
	has(json, "seed", "\"9446744073709551615\"");
	has(json, "ports", "[ \"a=tap:x\", \"b=tap:y\" ]");
	has(json, "wires", "[ { \"wire\": \"urdma0-a\", \"rate\": 100, \"delay\": 250 } ]");
	has(json, "switches",
	    "[ { \"switch\": \"urdma1,urdma2,b\", \"switch-queue\": 524288,"
	    "\"switch-latency\": 900, \"switch-age\": 300, \"wires\": {"
	    "\"urdma1\": { \"rate\": 100, \"delay\": 40 },"
	    "\"urdma2\": { \"rate\": 10, \"delay\": 40 },"
	    "\"b\": { \"rate\": 100, \"delay\": 80 } } } ]");
	has(json, "faults", "[ \"dup,p=0.5\", \"drop,side=1,nth=2\" ]");
	json_decref(json);
	/* Wires and switches of the command line replace the file's, and so do faults. */
	json = with(text, "--port b=tap:z --port c=tap:w --wire 1-2 --wire a-b --switch 0,c "
			  "--switch-age 5 --loss 1");
	has(json, "ports", "[ \"a=tap:x\", \"b=tap:z\", \"c=tap:w\" ]");
	has(json, "wires.1.wire", "\"a-b\"");
	has(json, "switches.0.switch", "\"urdma0,c\"");
	has(json, "switches.0.switch-age", "5");
	has(json, "switches.0.switch-latency", "500");
	has(json, "switches.0.wires.urdma0", "{ \"rate\": 100, \"delay\": 250 }");
	has(json, "faults", "[ \"drop,p=1\" ]");
	json_decref(json);
	/* Settings of all switches and their wires. */
	json = with(text, "--switch-latency 100 --rate 50");
	has(json, "switches.0.switch-latency", "100");
	has(json, "switches.0.wires.urdma2.rate", "50");
	has(json, "switches.0.wires.b.delay", "80");
	json_decref(json);
	/* An empty list: there is no wire. */
	json = with("{ \"hosts\": [ { \"nics\": [ {}, {} ] } ], \"wires\": [] }", "");
	has(json, "wires", "[]");
	json_decref(json);
}

/* The effective file of a run reproduces the run. */
static void repeats(const char *line)
{
	char repeat[256], *text;
	json_t *first = good(line), *second;

	text = json_dumps(system_of(first), URDMA_OPTIONS_DUMP);
	put(again, text);
	free(text);
	snprintf(repeat, sizeof(repeat), "--system %s --out o", again);
	second = good(repeat);
	if (!json_equal(json_object_get(first, "settings"), json_object_get(second, "settings")) ||
	    !json_equal(json_object_get(first, "simulation"),
			json_object_get(second, "simulation")))
		fail_msg("\"%s\": the run is another one from %s", line, again);
	json_decref(first);
	json_decref(second);
}

static void effective_file(void **state)
{
	static const char *const example[] = { "two-hosts", "slow-slot", "four-hosts" };
	char line[1024];

	(void)state;
	for (unsigned int i = 0; i < sizeof(example) / sizeof(example[0]); i++) {
		snprintf(line, sizeof(line), "--system %s/%s.json --out o", examples, example[i]);
		repeats(line);
	}
	put(file, levels_file);
	snprintf(line, sizeof(line), "--system %s --out o", file);
	repeats(line);
	repeats("--socket urdma0 --out o --pcie-gbps 0.125 --rate 99.999 --seed "
		"18446744073709551615");
	repeats("--socket a --socket b --socket c --out o --switch 0,1 --switch-age 7 --wire none "
		"--reorder-completions 18446744073709551615 --completion 128 --rcb 128 "
		"--pcie-stall 9 "
		"--mps 512 --mrrs 128 --loss 0.25% --reorder 100 --fault delay,ns=77,psn=5-9 "
		"--pcie gen5x1 --switch-queue 16384 --delay 5 --port p=tap:x --switch 2,p");
}

/* It contains each setting of PCIe. */
static void effective_pcie(void **state)
{
	json_t *json =
		good("--socket a --out o --pcie gen4x2 --pcie-latency 600 --mps 512 --mrrs 1024 "
		     "--rcb 128 --completion 256 --reorder-completions 9 --pcie-stall 3");

	(void)state;
	has(json, "hosts.0.nics.0",
	    "{ \"pcie-gen\": 4, \"pcie-lanes\": 2, \"pcie-latency\": 600, \"mps\": 512,"
	    "\"mrrs\": 1024, \"rcb\": 128, \"completion\": 256, \"reorder-completions\": 9,"
	    "\"pcie-stall\": 3 }");
	json_decref(json);
}

static void presets(void **state)
{
	static const char *const slot[][2] = {
		{ "gen1x1", "gen1x1" },	    { "gen3x8", "gen3x8" },    { "gen3x16", "gen3x16" },
		{ "gen4x16", "gen4x16" },   { "gen5x2", "gen5x2" },    { "vcu118", "gen3x16" },
		{ "alveo-u280", "gen4x8" }, { "alveo-u50", "gen4x8" },
	};
	static const char *const none[] = { "gen0x8", "gen6x8",	 "gen3x3",  "gen3x32", "gen3",
					    "gen3x",  "gen3x8 ", "gen03x8", "x8",      "u50" };

	(void)state;
	for (unsigned int i = 0; i < sizeof(slot) / sizeof(slot[0]); i++) {
		char text[128], want[64];
		json_t *json;

		snprintf(text, sizeof(text),
			 "{ \"hosts\": [ { \"nics\": [ {}, { \"pcie\": \"%s\" } ] } ] }",
			 slot[i][0]);
		json = with(text, "");
		simulates(json, 0, "gen3x16 100000 Mb/s");
		snprintf(want, sizeof(want), "%s 100000 Mb/s", slot[i][1]);
		simulates(json, 1, want);
		json_decref(json);
	}
	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		char text[128], line[128];

		snprintf(text, sizeof(text),
			 "{ \"hosts\": [ { \"nics\": [ { \"pcie\": \"%s\" } ] } ] }", none[i]);
		put(file, text);
		snprintf(line, sizeof(line), "--system %s --out o", file);
		bad(line, "neither a slot, from gen1x1 to gen5x16, nor a card: vcu118");
	}
}

static void rates(void **state)
{
	static const char *const rate[][2] = {
		{ "10", "gen3x16 10000 Mb/s" },	  { "25", "gen3x16 25000 Mb/s" },
		{ "40", "gen3x16 40000 Mb/s" },	  { "50", "gen3x16 50000 Mb/s" },
		{ "100", "gen3x16 100000 Mb/s" }, { "0.1", "gen3x16 100 Mb/s" },
		{ "1e1", "gen3x16 10000 Mb/s" },  { "128", "gen3x16 128000 Mb/s" },
	};
	static const char *const fast[] = { "128.001", "200", "400" };
	char text[256], line[128];

	(void)state;
	for (unsigned int i = 0; i < sizeof(rate) / sizeof(rate[0]); i++) {
		json_t *json;

		snprintf(text, sizeof(text),
			 "{ \"hosts\": [ { \"nics\": [ {}, {} ] } ],"
			 "\"wires\": [ { \"wire\": \"0-1\", \"rate\": %s } ] }",
			 rate[i][0]);
		json = with(text, "");
		simulates(json, 1, rate[i][1]);
		json_decref(json);
	}
	for (unsigned int i = 0; i < sizeof(fast) / sizeof(fast[0]); i++) {
		snprintf(text, sizeof(text), "--socket a --out o --rate %s", fast[i]);
		snprintf(line, sizeof(line),
			 "--rate '%s': a NIC takes at most 128 Gb/s, 512 bits in each cycle",
			 fast[i]);
		bad(text, line);
		snprintf(text, sizeof(text),
			 "{ \"hosts\": [ { \"nics\": [ {}, {} ] } ],"
			 "\"wires\": [ { \"wire\": \"0-1\", \"rate\": %s } ] }",
			 fast[i]);
		put(file, text);
		snprintf(line, sizeof(line), "wires[0].rate '%s': a NIC takes at most 128 Gb/s",
			 fast[i]);
		snprintf(text, sizeof(text), "--system %s --out o", file);
		bad(text, line);
	}
}

/* ---- bad files ------------------------------------------------------------------------------- */

#define NICS "\"hosts\": [ { \"nics\": [ {}, {} ] } ]"

static void errors(void **state)
{
	static const struct {
		const char *text, *words; /* after the name of the file */
	} wrong[] = {
		{ "", ":1:0: '[' or '{' expected" },
		{ "{\n  \"hosts\": ,\n}", ":2:12: unexpected token" },
		{ "{ \"rate\": 1, \"rate\": 2 }", ":1:19: duplicate object key" },
		{ "[]", ": has to be an object, and is a list" },
		{ "{}", ": there are no hosts" },
		{ "{ \"hosts\": {} }", ".hosts: has to be a list, and is an object" },
		{ "{ \"hosts\": [] }", ": no host has a NIC: nothing to simulate" },
		{ "{ \"hosts\": [ {} ] }", ": hosts[0]: there are no nics" },
		{ "{ \"hosts\": [ 7 ] }", ": hosts[0]: has to be an object, and is a number" },
		{ "{ \"hosts\": [ { \"nics\": 1 } ] }",
		  ": hosts[0].nics: has to be a list, and is a number" },
		{ "{ \"hosts\": [ { \"nics\": [] }, { \"nics\": [ {}, null ] } ] }",
		  ": hosts[1].nics[1]: has to be an object, and is null" },
		{ "{ \"hosts\": [ { \"nics\": [ {} ], \"mps\": 128 } ] }",
		  ": hosts[0] 'mps': no such key; here are known: comment nics\n" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"pcie-gne\": 4 } ] } ] }",
		  ": hosts[0].nics[0] 'pcie-gne': no such key; here are known: comment pcie "
		  "pcie-gen "
		  "pcie-lanes pcie-gbps pcie-latency mps" },
		{ "{ \"hosts\": [ { \"nics\": [ {}, { \"pcie-gen\": \"4\" } ] } ] }",
		  ": hosts[0].nics[1].pcie-gen: has to be a number, and is a string" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"pcie\": 4 } ] } ] }",
		  ": hosts[0].nics[0].pcie: has to be a string, and is a number" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"pcie-gen\": 6 } ] } ] }",
		  ": hosts[0].nics[0].pcie-gen '6': not a number from 1 to 5" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"pcie-gen\": 3.5 } ] } ] }",
		  ": hosts[0].nics[0].pcie-gen '3.5': not a number from 1 to 5" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"mps\": true } ] } ] }",
		  ": hosts[0].nics[0].mps: has to be a number, and is true or false" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"mps\": 300 } ] } ] }",
		  ": hosts[0].nics[0].mps '300': not a power of two" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"mps\": -1 } ] } ] }",
		  ": hosts[0].nics[0].mps '-1': not a number" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"pcie-gbps\": 9, \"pcie-gen\": 4 } ] } ] }",
		  ": hosts[0].nics[0].pcie-gbps: excludes pcie, pcie-gen and pcie-lanes" },
		{ "{ \"hosts\": [ { \"nics\": [ { \"rcb\": 128, \"completion\": 64 } ] } ] }",
		  ": hosts[0].nics[0].completion: 64 is below the read completion boundary" },
		{ "{ " NICS ", \"wire\": [] }", " 'wire': no such key; here are known: comment "
						"hosts ports wires switches faults" },
		{ "{ " NICS ", \"no-skip\": true }", " 'no-skip': no such key" },
		{ "{ " NICS ", \"rate\": null }", ".rate: has to be a number, and is null" },
		{ "{ " NICS ", \"rate\": 25.1234 }",
		  ".rate '25.1234': more than three digits behind the point" },
		{ "{ " NICS ", \"seed\": \"x\" }", ".seed 'x': not a number" },
		{ "{ " NICS ", \"wires\": \"0-1\" }", ".wires: has to be a list, and is a string" },
		{ "{ " NICS ", \"wires\": [ [ 0, 1 ] ] }",
		  ": wires[0]: has to be a string or an object, and is a list" },
		{ "{ " NICS ", \"wires\": [ { \"rate\": 10 } ] }", ": wires[0]: wire is missing" },
		{ "{ " NICS ", \"wires\": [ { \"wire\": 1 } ] }",
		  ": wires[0].wire: has to be a string, and is a number" },
		{ "{ " NICS ", \"wires\": [ { \"wire\": \"0-1\", \"switch-age\": 1 } ] }",
		  ": wires[0] 'switch-age': no such key; here are known: comment wire rate "
		  "delay\n" },
		{ "{ " NICS ", \"wires\": [ \"0:1\" ] }",
		  ": wires[0].wire '0:1': not of the form A-B" },
		{ "{ " NICS ", \"wires\": [ \"0-7\" ] }",
		  ": wires[0].wire '0-7': there are 2 NICs, counted from 0; '7' is none of them" },
		{ "{ " NICS ", \"wires\": [ \"0-urdma2\" ] }",
		  ": wires[0].wire '0-urdma2': there are 2 NICs, counted from 0; 'urdma2' is "
		  "none" },
		{ "{ " NICS ", \"wires\": [ \"0-1\", \"1-0\" ] }",
		  ": wires[1].wire '1-0': NIC 1 has a wire already" },
		{ "{ " NICS ", \"wires\": [ \"0-vm\" ] }",
		  ": wires[0].wire '0-vm': 'vm' is no NIC, and no port has this name" },
		{ "{ " NICS ", \"wires\": [ \"0-1\" ], \"switches\": [ \"urdma1\" ] }",
		  ": switches[0].switch 'urdma1': NIC urdma1 has a wire already" },
		{ "{ " NICS ", \"wires\": [ { \"wire\": \"0-1\", \"delay\": 3 } ] }",
		  ": wires[0].delay '3': not a number from 4" },
		{ "{ " NICS ", \"switches\": [ {} ] }", ": switches[0]: switch is missing" },
		{ "{ " NICS ", \"switches\": [ { \"switch\": \"0\", \"wires\": [] } ] }",
		  ": switches[0].wires: has to be an object: settings for each port, and is a "
		  "list" },
		{ "{ " NICS ", \"switches\": [ { \"switch\": \"0\", \"wires\": { \"1\": {} } } ] }",
		  ": switches[0].wires '1': it is not on this switch" },
		{ "{ " NICS ", \"switches\": [ { \"switch\": \"0\", \"wires\": { \"x\": {} } } ] }",
		  ": switches[0].wires 'x': 'x' is no NIC, and no port has this name" },
		{ "{ " NICS ", \"switches\": [ { \"switch\": \"0\", \"wires\":"
		  "{ \"0\": { \"rate\": 0 } } } ] }",
		  ": switches[0].wires.0.rate '0': not a rate" },
		{ "{ " NICS ", \"ports\": [ 1 ] }",
		  ": ports[0]: has to be a string, and is a number" },
		{ "{ " NICS ", \"ports\": [ \"vm\" ] }",
		  ": ports[0].port 'vm': not of the form NAME=KIND" },
		{ "{ " NICS ", \"ports\": [ \"a=tap:x\", \"a=tap:y\" ] }",
		  ": ports[1].port 'a=tap:y': there is one of this name already" },
		{ "{ " NICS ", \"ports\": [ \"a=tap:x\" ] }",
		  ".port 'a': no wire and no switch has it" },
		{ "{ " NICS ", \"faults\": [ \"lose\" ] }", ": faults[0].fault 'lose': " },
		{ "{ " NICS ", \"loss\": 101 }", ".loss '101': not a number of percent" },
	};
	char line[128], words[512];

	(void)state;
	snprintf(line, sizeof(line), "--system %s --out o", file);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put(file, wrong[i].text);
		snprintf(words, sizeof(words), "urdma-cosim: %s%s", file, wrong[i].words);
		bad(line, words);
	}
}

static void errors_of_both(void **state)
{
	char line[256];

	(void)state;
	put(file, "{ " NICS ", \"ports\": [ \"a=tap:x\" ], \"wires\": [ \"0-a\" ] }");
	snprintf(line, sizeof(line), "--system %s --system x --out o", file);
	bad(line, "--system 'x': there is one already: ");
	bad("--system /nowhere/at/all --out o",
	    "--system: unable to open /nowhere/at/all: No such file");
	snprintf(line, sizeof(line), "--system %s --out o --socket 0 --socket 1 --socket 2", file);
	bad(line, "--socket '2': more than 2 NICs, which is what there are in ");
	snprintf(line, sizeof(line), "--system %s", file);
	bad(line, "--out is missing");
	/* Mistakes on the command line have no position in the file. */
	snprintf(line, sizeof(line), "--system %s --out o --mps 300", file);
	bad(line, "urdma-cosim: --mps '300': not a power of two");
	snprintf(line, sizeof(line), "--system %s --out o --wire 0-9", file);
	bad(line, "urdma-cosim: --wire '0-9': there are 2 NICs");
	/* The command line's wire has replaced that of the file's port. */
	snprintf(line, sizeof(line), "--system %s --out o --wire 0-1", file);
	bad(line, ".port 'a': no wire and no switch has it");
}

/* Each NIC has a socket, from the command line or in the directory of results. */
static void sockets(void **state)
{
	json_t *json;

	(void)state;
	json = with("{ " NICS " }", "--socket s");
	assert_string_equal(json_string_value(at(json, "sockets.0")), "s");
	assert_string_equal(json_string_value(at(json, "sockets.1")), "o/urdma1.sock");
	json_decref(json);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/f.json", dir);
	snprintf(again, sizeof(again), "%s/again.json", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(file);
	unlink(again);
	return rmdir(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(levels),
		cmocka_unit_test(command_line_first),
		cmocka_unit_test(lists),
		cmocka_unit_test(effective_file),
		cmocka_unit_test(presets),
		cmocka_unit_test(rates),
		cmocka_unit_test(errors),
		cmocka_unit_test(errors_of_both),
		cmocka_unit_test(effective_pcie),
		cmocka_unit_test(sockets),
	};

	examples = argc > 1 ? argv[1] : "examples/systems";
	return cmocka_run_group_tests_name("cosim/system", tests, make_dir, remove_dir);
}
