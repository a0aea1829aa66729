// SPDX-License-Identifier: Apache-2.0
// The Verilated model behind urdma_sim.h. The only C++ of the simulator.
#include "urdma_sim.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "Vurdma_top.h"
#include "Vurdma_top___024root.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

/*
 * Finds out whether clocks change any register.
 *
 * The registers are members of the model's root object, scattered among wires and memories. A line
 * is a piece of that object as large as a cache line; its mask has the bytes that belong to
 * registers. A memory needs no look: what is written into it comes from registers. But a clock that
 * changes no register may still be the first one that writes a word, and one that reads the word
 * then changes. So two clocks in a row have to change none: both write the same words, and nothing
 * is left that could differ in the next one.
 *
 * To compare all lines, and to copy them for that, costs a third of a clock. So at first only the
 * few lines are looked at in which changes were seen last. When these hold, all lines are copied,
 * and compared after the next two clocks.
 */
class Registers
{
      public:
	explicit Registers(const Vurdma_top *top)
	    : root(reinterpret_cast<const unsigned char *>(top->rootp)), line(lines(*top->rootp)),
	      old(line.size())
	{
	}

	bool still()
	{
		const size_t n = line.size();
		bool changed = false;

		for (size_t i : hot) {
			if (differs(line[i], old[i])) {
				copy(line[i], old[i]);
				changed = true;
			}
		}
		if (changed) {
			armed = false;
			held = false;
			return false;
		}
		if (armed) {
			size_t i;

			for (i = 0; i < n && !differs(line[i], old[i]); i++)
				;
			if (i == n) {
				bool twice = held;

				held = true;
				return twice;
			}
			hot[next++ % HOT] = i;
		}
		for (size_t i = 0; i < n; i++)
			copy(line[i], old[i]);
		armed = true;
		held = false;
		return false;
	}

      private:
	static constexpr size_t LINE = 64;
	static constexpr size_t HOT = 4;

	struct Bytes {
		uint64_t w[LINE / 8];
	};
	struct Line {
		size_t offset;
		Bytes mask;
	};

	/* The same of every model. */
	static const std::vector<Line> &lines(const Vurdma_top___024root &root)
	{
		using Root = Vurdma_top___024root;
		static const std::vector<Line> all = [&root] {
			const char *const base = reinterpret_cast<const char *>(&root);
			const struct {
				const void *at;
				size_t size;
			} registers[] = {
#define URDMA_REGISTER(name) { &root.name, sizeof(root.name) },
#include "urdma_registers.h"
#undef URDMA_REGISTER
			};
			std::vector<unsigned char> mask((sizeof(Root) + LINE - 1) / LINE * LINE);
			std::vector<Line> result;

			for (const auto &r : registers)
				memset(&mask[static_cast<const char *>(r.at) - base], 0xff, r.size);
			for (size_t at = 0; at < mask.size(); at += LINE) {
				Line l = { at, {} };
				uint64_t any = 0;

				memcpy(&l.mask, &mask[at], LINE);
				for (uint64_t w : l.mask.w)
					any |= w;
				if (!any)
					continue;
				/* The end of the object belongs to its last line. */
				if (at + LINE > sizeof(Root)) {
					l.offset = sizeof(Root) - LINE;
					memcpy(&l.mask, &mask[l.offset], LINE);
				}
				result.push_back(l);
			}
			return result;
		}();

		return all;
	}

	bool differs(const Line &l, const Bytes &before) const
	{
		uint64_t diff = 0;
		Bytes b;

		memcpy(&b, root + l.offset, LINE);
		for (size_t i = 0; i < LINE / 8; i++)
			diff |= (b.w[i] ^ before.w[i]) & l.mask.w[i];
		return diff != 0;
	}

	void copy(const Line &l, Bytes &to) const
	{
		memcpy(&to, root + l.offset, LINE);
	}

	const unsigned char *const root;
	const std::vector<Line> &line;
	std::vector<Bytes> old; /* of each line */
	bool armed = false;	/* old is of the cycle before, in all lines */
	bool held = false;	/* the clock before has changed no register */
	size_t hot[HOT] = {}, next = 0;
};

struct urdma_sim {
	VerilatedContext context;
	std::unique_ptr<Vurdma_top> top;
	std::unique_ptr<Registers> registers;
	uint64_t cycles = 0;
#if VM_TRACE
	std::unique_ptr<VerilatedFstC> wave;
#endif
};

struct urdma_sim *urdma_sim_create(const char *name)
{
	try {
		std::unique_ptr<urdma_sim> sim(new urdma_sim);

#if VM_TRACE
		sim->context.traceEverOn(true);
#endif
		sim->top.reset(new Vurdma_top(&sim->context, name));
		sim->top->clk = 0;
		sim->registers.reset(new Registers(sim->top.get()));
		return sim.release();
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
}

void urdma_sim_destroy(struct urdma_sim *sim)
{
	if (!sim)
		return;
#if VM_TRACE
	if (sim->wave)
		sim->wave->close();
#endif
	sim->top->final();
	delete sim;
}

uint64_t urdma_sim_cycles(const struct urdma_sim *sim)
{
	return sim->cycles;
}

int urdma_sim_wave(struct urdma_sim *sim, const char *path)
{
#if VM_TRACE
	if (sim->wave) {
		sim->wave->close();
		sim->wave.reset();
	}
	if (path) {
		sim->wave.reset(new VerilatedFstC);
		sim->top->trace(sim->wave.get(), 99);
		sim->wave->open(path);
		if (!sim->wave->isOpen())
			return -EIO;
	}
	return 0;
#else
	(void)sim;
	return path ? -ENOTSUP : 0;
#endif
}

static inline void dump(struct urdma_sim *sim, unsigned int half)
{
#if VM_TRACE
	if (sim->wave)
		sim->wave->dump(sim->cycles * 2 + half);
#else
	(void)sim;
	(void)half;
#endif
}

// Beats are copied only where their valid is set: what the NIC sees without valid has no meaning.
#define DRIVE_PCIE(name, beat)                                                                  \
	do {                                                                                    \
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

// trace_t: arg in bits 0..15, psn 16..39, qpn 40..63, ev 64..67; taps side by side.
static inline uint64_t bits(const Vurdma_top *t, unsigned int lsb, unsigned int n)
{
	unsigned int word = lsb / 32, shift = lsb % 32;
	uint64_t v = (uint64_t)t->trace_tap[word] >> shift;

	if (shift + n > 32)
		v |= (uint64_t)t->trace_tap[word + 1] << (32 - shift);
	return v & ((UINT64_C(1) << n) - 1);
}

static void sample_trace(const Vurdma_top *t, struct urdma_sim_out *out)
{
	constexpr unsigned int width = 68;

	static_assert(sizeof(t->trace_tap) * 8 >= URDMA_SIM_TRACE_TAPS * width &&
			      sizeof(t->trace_tap) * 8 < URDMA_SIM_TRACE_TAPS * width + 32,
		      "width of trace_t");
	for (unsigned int i = 0; i < URDMA_SIM_TRACE_TAPS; i++) {
		struct urdma_trace *e = &out->trace[i];

		if (!(out->traced >> i & 1))
			continue;
		e->arg = (uint16_t)bits(t, i * width, 16);
		e->psn = (uint32_t)bits(t, i * width + 16, 24);
		e->qpn = (uint32_t)bits(t, i * width + 40, 24);
		e->ev = (uint8_t)bits(t, i * width + 64, 4);
	}
}

void urdma_sim_cycle(struct urdma_sim *sim, const struct urdma_sim_in *in,
		     struct urdma_sim_out *out)
{
	Vurdma_top *const t = sim->top.get();

	t->rst = in->rst;
	DRIVE_PCIE(cq, in->cq);
	DRIVE_PCIE(rc, in->rc);
	t->m_axis_cc_tready = in->cc_ready;
	t->m_axis_rq_tready = in->rq_ready;
	t->irq_ready = in->irq_ready;
	t->cfg_max_payload = in->cfg_max_payload;
	t->cfg_max_read_req = in->cfg_max_read_req;
	t->cfg_bus_master_en = in->cfg_bus_master_en;
	t->m_axis_tx_tready = in->tx_ready;
	t->s_axis_rx_tvalid = in->rx.valid;
	if (in->rx.valid) {
		memcpy(&t->s_axis_rx_tdata[0], in->rx.data, sizeof(in->rx.data));
		t->s_axis_rx_tkeep = in->rx.keep;
		t->s_axis_rx_tlast = in->rx.last;
		t->s_axis_rx_tuser = in->rx.error;
	}
	t->mac_default = in->mac_default;
	t->link_up = in->link_up;
	t->skip_valid = in->skip_valid;
	t->skip_cycles = in->skip_cycles;

	t->clk = 0;
	t->eval();
	dump(sim, 0);

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
		sample_trace(t, out);

	t->clk = 1;
	t->eval();
	dump(sim, 1);
	out->still = sim->registers->still();
	sim->cycles++;
}
