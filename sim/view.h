// SPDX-License-Identifier: Apache-2.0
/*
 * Writes files for the viewers, which show the most important signals of a wave file first: for
 * urdma0.fst a save file of GTKWave, urdma0.gtkw, and a command file of Surfer, urdma0.sucl.
 * view.inc has the signals (tools/waves/view.def). Both viewers find the names of enumerations in
 * the FST file.
 */
#ifndef URDMA_SIM_VIEW_H
#define URDMA_SIM_VIEW_H

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

class View
{
	/* TraceFlags of GTKWave: the number format, to the right. An enumeration is TR_ENUM with
	 * TR_BIN. */
	enum Radix : unsigned long { RADIX_hex = 0x22, RADIX_dec = 0x24, RADIX_enum = 0x100000028 };
	static constexpr unsigned long GROUP_BEGINS = 0x800200, GROUP_ENDS = 0x1000200;

	struct Signal {
		const char *name; /* in urdma_sim_top */
		unsigned int bits;
		Radix radix;
		const char *label;
	};
	struct Group {
		const char *title;
		std::vector<Signal> signals;
	};

	static std::vector<Group> groups()
	{
		std::vector<Group> all;

#define URDMA_VIEW_GROUP(title) all.push_back({ title, {} });
#define URDMA_VIEW_SIGNAL(name, bits, radix, label) \
	all.back().signals.push_back({ name, bits, RADIX_##radix, label });
#include "view.inc"
#undef URDMA_VIEW_SIGNAL
#undef URDMA_VIEW_GROUP
		return all;
	}

      public:
	/*
	 * path: the wave file, which ends in .fst. top: the full name of urdma_sim_top. scope: the
	 * instance in the wave file, or NULL. Only signals of this instance are shown. Returns 0 or
	 * -EIO.
	 */
	static int write(const std::string &path, const std::string &top, const char *scope)
	{
		const std::string stem = path.substr(0, path.rfind(".fst"));
		const std::string file = stem.substr(stem.rfind('/') + 1);
		const std::string within = scope ? std::string(scope) + "." : top + ".";
		std::ofstream gtkw(stem + ".gtkw"), sucl(stem + ".sucl");

		/* GTKWave looks for the dump relative to the save file: beside it. */
		gtkw << "[dumpfile] \"/" << file << ".fst\"\n[savefile] \"/" << file
		     << ".gtkw\"\n"
			"[size] 1400 900\n[signals_width] 240\n*-10.0 -1\n";
		for (const Group &group : groups()) {
			bool begun = false;

			for (const Signal &s : group.signals) {
				const std::string name = top + "." + s.name;

				if (name.compare(0, within.size(), within) != 0)
					continue;
				if (!begun)
					begin(gtkw, sucl, group.title);
				begun = true;
				gtkw << "@" << std::hex << s.radix << std::dec << "\n+{" << s.label
				     << "} " << name;
				/* GTKWave finds a vector only with its range. */
				if (s.bits > 1)
					gtkw << "[" << s.bits - 1 << ":0]";
				gtkw << "\n";
				sucl << "variable_add " << name << "\n";
			}
			if (begun)
				gtkw << "@" << std::hex << GROUP_ENDS << std::dec << "\n-"
				     << group.title << "\n";
		}
		sucl << "zoom_fit\n";
		gtkw.close();
		sucl.close();
		return gtkw && sucl ? 0 : -EIO;
	}

      private:
	static void begin(std::ofstream &gtkw, std::ofstream &sucl, std::string title)
	{
		gtkw << "@" << std::hex << GROUP_BEGINS << std::dec << "\n-" << title << "\n";
		/* To Surfer a divider's name is one word. */
		for (char &c : title)
			if (c == ' ')
				c = '_';
		sucl << "divider_add " << title << "\n";
	}
};

#endif
