// SPDX-License-Identifier: Apache-2.0
// The Verilated model behind urdma_sim.h. The only C++ of the simulator.
#include "urdma_sim.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "clocks.h"
#include "parts.h"
#include "urdma_hw.h"
#include "verilated.h"
#include "waves.h"
#if VM_TRACE
#include "scopes.h"
#include "view.h"
#endif

struct urdma_sim {
	VerilatedContext context;
	std::unique_ptr<Vurdma_sim_top> top;
	std::unique_ptr<Clocks> clocks;
	std::unique_ptr<Parts> parts;
	uint64_t cycles = 0;
	Waves waves;
};

struct urdma_sim *urdma_sim_create(const char *name)
{
	try {
		std::unique_ptr<urdma_sim> sim(new urdma_sim);

#if VM_TRACE
		sim->context.traceEverOn(true);
#endif
		sim->top.reset(new Vurdma_sim_top(&sim->context, name));
		sim->top->clk = 0;
		/* The first evaluation sees no edges. */
		sim->top->eval();
		sim->clocks.reset(new Clocks(*sim->top));
		sim->parts.reset(new Parts(*sim->top->rootp));
		return sim.release();
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
}

void urdma_sim_destroy(struct urdma_sim *sim)
{
	if (!sim)
		return;
	sim->waves.close();
	sim->top->final();
	delete sim;
}

uint64_t urdma_sim_cycles(const struct urdma_sim *sim)
{
	return sim->cycles;
}

void urdma_sim_counters(const struct urdma_sim *sim, uint64_t *values)
{
	const auto &counters =
		sim->top->rootp->urdma_sim_top__DOT__nic__DOT__ctl__DOT__regs__DOT__cnt_reg;

	static_assert(sizeof(counters) == URDMA_CNT_N * sizeof(*values), "counters");
	std::memcpy(values, &counters, sizeof(counters));
}

bool urdma_sim_has_waves(void)
{
#if VM_TRACE
	return true;
#else
	return false;
#endif
}

int urdma_sim_check_scope(const char *scope, char *why, size_t size)
{
#if VM_TRACE
	const std::string text = Scopes::refuse(scope);

	snprintf(why, size, "%s", text.c_str());
	return text.empty() ? 0 : -ENOENT;
#else
	(void)scope;
	if (size)
		*why = '\0';
	return -ENOTSUP;
#endif
}

int urdma_sim_waves(struct urdma_sim *sim, const char *path, const char *scope, uint64_t cycle)
{
	int ret = 0;

	sim->waves.dump(cycle * URDMA_SIM_CYCLE_NS);
	if (path)
		ret = sim->waves.open(*sim->top, path, scope);
	else
		ret = sim->waves.close();
	sim->waves.dump(cycle * URDMA_SIM_CYCLE_NS);
#if VM_TRACE
	if (path && !ret)
		ret = View::write(path, std::string(sim->top->name()) + ".urdma_sim_top", scope);
#endif
	return ret;
}

void urdma_sim_pause_waves(struct urdma_sim *sim, bool pause)
{
	sim->waves.pause(pause);
}

/* The groups of inputs in urdma_sim_top.sv: bits of in_clk. */
enum { IN_CQ, IN_RC, IN_CC, IN_RQ, IN_IRQ, IN_TX, IN_RX, IN_SKIP, IN_REST };

// A beat is copied only where its valid is set: what the NIC sees without valid has no meaning.
#define DRIVE_PCIE(name, beat, group)                                                           \
	do {                                                                                    \
		if ((beat).valid | t->s_axis_##name##_tvalid)                                   \
			in_clk |= 1u << (group);                                                \
		t->s_axis_##name##_tvalid = (beat).valid;                                       \
		if ((beat).valid) {                                                             \
			static_assert(sizeof(t->s_axis_##name##_tdata) == sizeof((beat).data),  \
				      "width of data");                                         \
			static_assert(sizeof(t->s_axis_##name##_tuser) <= sizeof((beat).user),  \
				      "width of user");                                         \
			memcpy(&t->s_axis_##name##_tdata[0], (beat).data, sizeof((beat).data)); \
			memcpy(&t->s_axis_##name##_tuser[0], (beat).user,                       \
			       sizeof(t->s_axis_##name##_tuser));                               \
			t->s_axis_##name##_tkeep = (beat).keep;                                 \
			t->s_axis_##name##_tlast = (beat).last;                                 \
		}                                                                               \
	} while (0)

#define DRIVE(port, value, group)                \
	do {                                     \
		if (t->port != (value)) {        \
			t->port = (value);       \
			in_clk |= 1u << (group); \
		}                                \
	} while (0)

/* Sets the inputs: the groups that differ from those of the cycle before. */
static uint32_t drive(Vurdma_sim_top *t, const struct urdma_sim_in *in)
{
	uint32_t in_clk = 0;

	DRIVE_PCIE(cq, in->cq, IN_CQ);
	DRIVE_PCIE(rc, in->rc, IN_RC);
	DRIVE(m_axis_cc_tready, in->cc_ready, IN_CC);
	DRIVE(m_axis_rq_tready, in->rq_ready, IN_RQ);
	DRIVE(irq_ready, in->irq_ready, IN_IRQ);
	DRIVE(m_axis_tx_tready, in->tx_ready, IN_TX);
	if (in->rx.valid | t->s_axis_rx_tvalid)
		in_clk |= 1u << IN_RX;
	t->s_axis_rx_tvalid = in->rx.valid;
	if (in->rx.valid) {
		memcpy(&t->s_axis_rx_tdata[0], in->rx.data, sizeof(in->rx.data));
		t->s_axis_rx_tkeep = in->rx.keep;
		t->s_axis_rx_tlast = in->rx.last;
		t->s_axis_rx_tuser = in->rx.error;
	}
	DRIVE(skip_valid, in->skip_valid, IN_SKIP);
	if (in->skip_valid)
		DRIVE(skip_cycles, in->skip_cycles, IN_SKIP);
	DRIVE(rst, in->rst, IN_REST);
	DRIVE(cfg_max_payload, in->cfg_max_payload, IN_REST);
	DRIVE(cfg_max_read_req, in->cfg_max_read_req, IN_REST);
	DRIVE(cfg_bus_master_en, in->cfg_bus_master_en, IN_REST);
	DRIVE(mac_default, in->mac_default, IN_REST);
	DRIVE(link_up, in->link_up, IN_REST);
	return in_clk;
}

#define SAMPLE_PCIE(name, beat)                                                                 \
	do {                                                                                    \
		(beat).valid = t->m_axis_##name##_tvalid;                                       \
		if ((beat).valid) {                                                             \
			static_assert(sizeof(t->m_axis_##name##_tdata) == sizeof((beat).data),  \
				      "width of data");                                         \
			static_assert(sizeof(t->m_axis_##name##_tuser) <= sizeof((beat).user),  \
				      "width of user");                                         \
			memcpy((beat).data, &t->m_axis_##name##_tdata[0], sizeof((beat).data)); \
			memcpy((beat).user, &t->m_axis_##name##_tuser[0],                       \
			       sizeof(t->m_axis_##name##_tuser));                               \
			(beat).keep = t->m_axis_##name##_tkeep;                                 \
			(beat).last = t->m_axis_##name##_tlast;                                 \
		}                                                                               \
	} while (0)

static void sample_lanes(const Vurdma_sim_top *t, struct urdma_sim_out *out)
{
	static_assert(sizeof(t->trace_lane[0]) == sizeof(out->lane[0]), "width of a lane");
	static_assert(sizeof(t->trace_lane) == sizeof(out->lane), "number of lanes");
	for (uint32_t m = out->traced; m; m &= m - 1) {
		const int i = __builtin_ctz(m);

		memcpy(&out->lane[i], &t->trace_lane[i], sizeof(out->lane[i]));
	}
}

void urdma_sim_cycle(struct urdma_sim *sim, const struct urdma_sim_in *in,
		     struct urdma_sim_out *out)
{
	Vurdma_sim_top *const t = sim->top.get();

	sim->clocks->raise_inputs(sim->cycles ? drive(t, in) : drive(t, in) | 0x1ff);
	sim->waves.dump(in->cycle * URDMA_SIM_CYCLE_NS + 1);

	out->cq_ready = t->s_axis_cq_tready;
	out->rc_ready = t->s_axis_rc_tready;
	SAMPLE_PCIE(cc, out->cc);
	SAMPLE_PCIE(rq, out->rq);
	out->irq_valid = t->irq_valid;
	out->irq_vec = t->irq_vec;
	out->tx.valid = t->m_axis_tx_tvalid;
	if (out->tx.valid) {
		memcpy(out->tx.data, &t->m_axis_tx_tdata[0], sizeof(out->tx.data));
		out->tx.keep = t->m_axis_tx_tkeep;
		out->tx.last = t->m_axis_tx_tlast;
		out->tx.error = t->m_axis_tx_tuser;
	}
	out->idle = t->idle;
	out->timer_armed = t->timer_armed;
	out->timer_cycles = t->timer_cycles;
	out->traced = t->trace_valid;
	if (out->traced)
		sample_lanes(t, out);

	const uint64_t due = sim->parts->due();

	sim->clocks->raise_parts(in->all_parts ? sim->parts->all() : due);
	sim->waves.dump((in->cycle + 1) * URDMA_SIM_CYCLE_NS);
	out->surprise = in->all_parts ? sim->parts->surprise(due) : nullptr;
	out->still = sim->parts->clocked(due);
	out->mover = sim->parts->mover();
	sim->cycles++;
}
