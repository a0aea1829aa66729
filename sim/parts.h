/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parts of the NIC that need a clock.
 *
 * A part is an instance in the RTL with its own clock (rtl/lib/urdma_clk.sv). The effect of a clock
 * on it depends only on its registers, its memories and its inputs. A part is *still* when two
 * clocks in a row changed no register, with the same inputs: a third clock with these inputs
 * changes nothing either. (One clock is not enough: it may be the first that writes a word of a
 * memory, and the next clock may then read the word. After two, both have written the same words.)
 * A still part gets no clock until an input changes, or until shortly before its timer.
 *
 * A part may contain others. Their outputs are inputs of the outer part, but are not compared: they
 * change only while the inner part is not still, or with inputs that are compared anyway.
 *
 * Registers and ports are members of the model's root object, scattered among wires and memories
 * (tools/model-parts.sh). A line is a piece of that object as large as a cache line; its mask has
 * the bytes to compare. Under load most parts change the same few lines in each clock. These lines
 * are compared first. All lines are copied and compared only when the first ones have not changed.
 */
#ifndef URDMA_PARTS_H
#define URDMA_PARTS_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "Vurdma_sim_top.h"
#include "Vurdma_sim_top___024root.h"

class Parts
{
      public:
	using Root = Vurdma_sim_top___024root;

	explicit Parts(const Root &root) : root(reinterpret_cast<const unsigned char *>(&root))
	{
		read();
		moves = moving = all();
		for (size_t i = 0; i < part.size(); i++) {
			outer |= part[i].inner ? UINT64_C(1) << i : 0;
			qualified |= part[i].qualified.empty() ? 0 : UINT64_C(1) << i;
			timers |= part[i].timer ? UINT64_C(1) << i : 0;
		}
	}

	/* Raises the clocks of all parts. */
	uint64_t all() const
	{
		return (UINT64_C(1) << part.size()) - 1;
	}

	/*
	 * To be called with the clock low and all inputs settled. Returns the parts that need the
	 * next clock, one bit each.
	 */
	uint64_t due()
	{
		/* A part in `holds` has not yet copied its inputs. */
		uint64_t changed = (inputs_changed() & ~moves) | holds;

		for (uint64_t m = outer & ~moves & ~changed; m; m &= m - 1)
			if (part[first(m)].inner & moving)
				changed |= m & -m;
		for (uint64_t m = active & ~moves & ~changed; m; m &= m - 1)
			if (data_differ(part[first(m)]))
				changed |= m & -m;
		for (uint64_t m = qualified & changed; m; m &= m - 1)
			copy_data(part[first(m)], m & -m);
		same = ~changed;

		uint64_t mask = moving | changed;

		for (uint64_t m = timers & ~mask; m; m &= m - 1)
			if (timer_near(part[first(m)]))
				mask |= m & -m;
		return mask;
	}

	/* To be called after that clock: true if all parts are still. */
	bool clocked(uint64_t mask)
	{
		uint64_t look = mask;

		/*
		 * A part that has moved for some time will probably move on. An extra clock changes
		 * nothing.
		 */
		clock = (clock + 1) % STEADY_CLOCKS;
		if (clock)
			look &= ~steady;
		for (uint64_t m = look; m; m &= m - 1)
			clocked(part[first(m)], m & -m);
		steady = (steady & ~look) | (look & moves & moved_twice);
		moved_twice = (moved_twice & ~look) | (look & moves & moved);
		moved = (moved & ~look) | (look & moves);
		/* So the next decisions do not depend on how long all parts were still. */
		if (!moving)
			clock = 0;
		return !moving;
	}

	/* The name of a part that is not still, or nullptr. */
	const char *mover() const
	{
		return moving ? part[first(moving)].name : nullptr;
	}

	/*
	 * For tests that clock all parts; to be called before clocked(). Returns the name of a part
	 * that changed although it was not due, or nullptr. A full comparison takes longer than the
	 * clocks. So each call compares the lines of all parts that changed last, and all lines of
	 * one part in turn. A missed change stays visible for a while.
	 */
	const char *surprise(uint64_t due)
	{
		uint64_t quiet = all() & ~due;

		turn = (turn + 1) % part.size();
		if ((quiet >> turn & 1) && differ(part[turn].regs))
			return part[turn].name;
		for (uint64_t m = quiet; m; m &= m - 1) {
			const Part &p = part[first(m)];

			for (uint16_t i : p.hot)
				if (differs(p.regs[i]))
					return p.name;
		}
		return nullptr;
	}

      private:
	static constexpr size_t LINE = 64;
	static constexpr size_t HOT = 2;
	static constexpr uint32_t TIMER_MARGIN = 8;
	/*
	 * A steady part is compared in one of this many clocks. The number is odd, because many
	 * registers have the same value again after 2 or 4 clocks.
	 */
	static constexpr unsigned int STEADY_CLOCKS = 3;

	struct Bytes {
		uint64_t w[LINE / 8];
	};
	struct alignas(64) Line {
		Bytes mask, old;
		size_t offset;
	};
	using Lines = std::vector<Line>;

	/* Inputs of all parts: each byte belongs to one of them. Small, as all are read in each
	 * cycle. */
	struct alignas(64) Inputs {
		Bytes mask, old;
	};
	struct Owners {
		uint8_t part[LINE];
	};
	/* Inputs that have a meaning only while a valid is set. */
	struct Qualified {
		size_t valid;
		uint16_t mask; /* of the valid, as its width is */
		Lines data;
	};
	struct Part {
		const char *name = "";
		bool timer = false;
		uint8_t next = 0;
		uint16_t hot[HOT] = {};
		uint64_t inner = 0;	      /* parts inside, a bit each */
		size_t armed = 0, cycles = 0; /* for a part with a timer: offsets of its ports */
		Lines regs;
		std::vector<Qualified> qualified;
		uint64_t set = 0; /* those whose valid was set when they were copied */
	};

	const unsigned char *const root;
	std::vector<Part> part;
	std::vector<Inputs> inputs;
	std::vector<uint32_t> input_at; /* in the root object, of each line */
	std::vector<Owners> owner;	/* owners of the bytes of each line */
	size_t turn = 0;		/* of surprise() */
	uint64_t outer = 0, qualified = 0, timers = 0;
	uint64_t active = 0; /* those of qualified with copies */

	/*
	 * States, one bit for each part. At first a part moves: the last clock changed one of its
	 * registers. When the lines that are compared first did not change, all lines are copied,
	 * and the part holds. After a clock that changed no line it no longer moves. After another
	 * such clock with the same inputs it is still: not moving.
	 */
	uint64_t moves, holds = 0, moving;
	uint64_t moved = 0, moved_twice = 0, steady = 0; /* at the last look, two, three */
	unsigned int clock = 0;				 /* of STEADY_CLOCKS */
	uint64_t same = 0; /* the inputs of this clock are those of the one before */

	static size_t first(uint64_t mask)
	{
		return static_cast<size_t>(__builtin_ctzll(mask));
	}

	static bool differs(const unsigned char *at, const Bytes &mask, const Bytes &old)
	{
		uint64_t diff = 0;
		Bytes b;

		memcpy(&b, at, LINE);
		for (size_t i = 0; i < LINE / 8; i++)
			diff |= (b.w[i] ^ old.w[i]) & mask.w[i];
		return diff != 0;
	}

	bool differs(const Line &l) const
	{
		return differs(root + l.offset, l.mask, l.old);
	}

	bool differ(const Lines &lines) const
	{
		for (const Line &l : lines)
			if (differs(l))
				return true;
		return false;
	}

	void copy(Line &l) const
	{
		memcpy(&l.old, root + l.offset, LINE);
	}

	void copy(Lines &lines) const
	{
		for (Line &l : lines)
			copy(l);
	}

	/* The parts whose inputs, except qualified ones, have changed since the cycle before. */
	uint64_t inputs_changed()
	{
		uint64_t changed = 0;

		for (size_t n = 0; n < inputs.size(); n++) {
			const unsigned char *const at = root + input_at[n];
			Inputs &l = inputs[n];

			if (!differs(at, l.mask, l.old))
				continue;
			for (size_t i = 0; i < LINE / 8; i++) {
				uint64_t now, diff;

				memcpy(&now, at + 8 * i, sizeof(now));
				diff = (now ^ l.old.w[i]) & l.mask.w[i];
				while (diff) {
					size_t byte = first(diff) / 8;

					changed |= UINT64_C(1) << owner[n].part[8 * i + byte];
					diff &= ~(UINT64_C(0xff) << 8 * byte);
				}
			}
			memcpy(&l.old, at, LINE);
		}
		return changed;
	}

	/*
	 * Valids are among the inputs. So a valid that was not set at the time of the copy is not
	 * set now.
	 */
	bool data_differ(const Part &p) const
	{
		for (uint64_t m = p.set; m; m &= m - 1)
			if (differ(p.qualified[first(m)].data))
				return true;
		return false;
	}

	void copy_data(Part &p, uint64_t bit)
	{
		uint64_t set = 0;

		for (size_t i = 0; i < p.qualified.size(); i++) {
			Qualified &q = p.qualified[i];
			uint16_t v;

			memcpy(&v, root + q.valid, sizeof(v));
			if (!(v & q.mask))
				continue;
			copy(q.data);
			set |= UINT64_C(1) << i;
		}
		p.set = set;
		active = set ? active | bit : active & ~bit;
	}

	bool timer_near(const Part &p) const
	{
		uint32_t cycles;

		if (!root[p.armed])
			return false;
		memcpy(&cycles, root + p.cycles, sizeof(cycles));
		return cycles <= TIMER_MARGIN;
	}

	void clocked(Part &p, uint64_t bit)
	{
		bool moved = false;

		for (uint16_t i : p.hot) {
			if (differs(p.regs[i])) {
				copy(p.regs[i]);
				moved = true;
			}
		}
		if (moved) {
			moves |= bit;
			moving |= bit;
			holds &= ~bit;
			return;
		}
		if (!(moves & bit)) {
			size_t i;

			for (i = 0; i < p.regs.size() && !differs(p.regs[i]); i++)
				;
			if (i == p.regs.size()) {
				holds &= ~bit;
				moving = same & bit ? moving & ~bit : moving | bit;
				return;
			}
			p.hot[p.next] = static_cast<uint16_t>(i);
			p.next = static_cast<uint8_t>((p.next + 1) % HOT);
		}
		copy(p.regs);
		moves &= ~bit;
		moving |= bit;
		holds |= bit;
	}

	/* Start of the line of a byte. The end of the object belongs to its last line. */
	static size_t line(size_t at)
	{
		at = at / LINE * LINE;
		return at + LINE > sizeof(Root) ? sizeof(Root) - LINE : at;
	}

	static void set(Bytes &mask, size_t byte)
	{
		reinterpret_cast<unsigned char *>(&mask)[byte] = 0xff;
	}

	/* Bytes of the root object to compare. */
	class Mask
	{
	      public:
		void add(size_t at, size_t size)
		{
			for (; size; at++, size--) {
				Line &l = all[line(at)];

				l.offset = line(at);
				set(l.mask, at - l.offset);
			}
		}

		Lines lines() const
		{
			Lines result;

			for (const auto &l : all)
				result.push_back(l.second);
			return result;
		}

	      private:
		std::map<size_t, Line> all;
	};

	/* Result of tools/model-parts.sh: one entry for each line of its list. */
	enum Kind { PART, INNER, REGISTER, INPUT, QUALIFIED, TIMER };
	struct Found {
		Kind kind;
		size_t part;
		size_t at, size; /* of the member */
		size_t other;	 /* the valid, with TIMER the cycles, with INNER the part inside */
		size_t other_size;
		const char *name;
	};

	void read()
	{
		/* A constant, because code with so many lines takes minutes to compile. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define AT(a) offsetof(Root, a), sizeof(Root::a)
		static constexpr Found list[] = {
#define URDMA_PART(i, text)	  { PART, i, 0, 0, 0, 0, text },
#define URDMA_INNER(i, k)	  { INNER, i, 0, 0, k, 0, nullptr },
#define URDMA_REGISTER(i, a)	  { REGISTER, i, AT(a), 0, 0, nullptr },
#define URDMA_INPUT(i, a)	  { INPUT, i, AT(a), 0, 0, nullptr },
#define URDMA_QUALIFIED(i, a, v)  { QUALIFIED, i, AT(a), AT(v), nullptr },
#define URDMA_TIMER(i, a, cycles) { TIMER, i, AT(a), AT(cycles), nullptr },
#include "urdma_parts.h"
#undef URDMA_PART
#undef URDMA_INNER
#undef URDMA_REGISTER
#undef URDMA_INPUT
#undef URDMA_QUALIFIED
#undef URDMA_TIMER
		};
#undef AT
#pragma GCC diagnostic pop
		std::vector<Mask> regs;
		std::map<size_t, std::pair<Inputs, Owners>> lines;
		std::vector<std::map<size_t, std::pair<uint16_t, Mask>>> data; /* by the valid */
		for (const Found &f : list)
			if (f.part >= part.size())
				part.resize(f.part + 1);
		regs.resize(part.size());
		data.resize(part.size());
		for (const Found &f : list) {
			Part &p = part[f.part];

			switch (f.kind) {
			case PART:
				p.name = f.name;
				break;
			case INNER:
				p.inner |= UINT64_C(1) << f.other;
				break;
			case REGISTER:
				regs[f.part].add(f.at, f.size);
				break;
			case INPUT:
				for (size_t byte = f.at; byte < f.at + f.size; byte++) {
					auto &l = lines[line(byte)];

					set(l.first.mask, byte - line(byte));
					l.second.part[byte - line(byte)] =
						static_cast<uint8_t>(f.part);
				}
				break;
			case QUALIFIED:
				data[f.part][f.other].first = f.other_size == 1 ? 0xff : 0xffff;
				data[f.part][f.other].second.add(f.at, f.size);
				break;
			case TIMER:
				p.timer = true;
				p.armed = f.at;
				p.cycles = f.other;
				break;
			}
		}
		for (const auto &l : lines) {
			inputs.push_back(l.second.first);
			input_at.push_back(static_cast<uint32_t>(l.first));
			owner.push_back(l.second.second);
		}
		for (size_t i = 0; i < part.size(); i++) {
			part[i].regs = regs[i].lines();
			for (const auto &d : data[i])
				part[i].qualified.push_back(
					{ d.first, d.second.first, d.second.second.lines() });
		}
	}
};

#endif
