// SPDX-License-Identifier: Apache-2.0
#include "crc_model.h"

#include <cstring>
#include <memory>

#include "Vcrc_test_top.h"
#include "rtl/bench.h"
#include "verilated.h"

struct crc_model {
	VerilatedContext ctx;
	Vcrc_test_top top{ &ctx };
};

double sc_time_stamp()
{
	return 0;
}

static void edge(crc_model *m)
{
	bench_clock(m->top);
}

crc_model *crc_model_new(void)
{
	auto m = std::make_unique<crc_model>();

	m->top.rst = 1;
	m->top.in_valid = 0;
	edge(m.get());
	edge(m.get());
	m->top.rst = 0;
	return m.release();
}

void crc_model_free(crc_model *m)
{
	delete m;
}

bool crc_model_cycle(crc_model *m, const struct crc_beat *beat, uint32_t *crc)
{
	m->top.in_valid = beat != nullptr;
	if (beat) {
		std::memcpy(&m->top.in_data[0], beat->data, sizeof(beat->data));
		m->top.in_len = beat->len;
		m->top.in_first = beat->first;
		m->top.in_last = beat->last;
		m->top.in_init_sel = beat->init_sel;
		m->top.in_init = beat->init;
	}
	edge(m);
	*crc = m->top.out_crc;
	return m->top.out_valid;
}
