// SPDX-License-Identifier: Apache-2.0
#include "lib_model.h"

#include "Vlib_test_top.h"
#include "rtl/bench.h"
#include "verilated.h"

struct lib_model {
	VerilatedContext ctx;
	Vlib_test_top top{ &ctx };
};

double sc_time_stamp()
{
	return 0;
}

lib_model *lib_model_new(void)
{
	return new lib_model;
}

void lib_model_free(lib_model *m)
{
	m->top.final();
	delete m;
}

void lib_model_eval(lib_model *m, lib_pins *p)
{
	Vlib_test_top &t = m->top;

	t.rst = p->rst;
	t.in_valid = p->in_valid;
	t.out_ready = p->out_ready;
	t.in_data = p->in_data;
	t.req = p->req;
	t.advance = p->advance;
	t.wr_en = p->wr_en;
	t.wr_addr = p->wr_addr;
	t.wr_data = p->wr_data;
	t.rd_en = p->rd_en;
	t.rd_addr = p->rd_addr;
	bench_settle(t);
	p->in_ready = t.in_ready;
	p->out_valid = t.out_valid;
	p->out_data[0] = t.out_data0;
	p->out_data[1] = t.out_data1;
	p->out_data[2] = t.out_data2;
	p->count[0] = t.count0;
	p->count[1] = t.count1;
	p->grant = t.grant;
	p->grant_idx = t.grant_idx;
	p->grant_valid = t.grant_valid;
	p->rd_data = t.rd_data;
}

void lib_model_edge(lib_model *m)
{
	bench_edge(m->top);
}
