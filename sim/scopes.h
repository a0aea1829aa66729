// SPDX-License-Identifier: Apache-2.0
/*
 * The instances whose waves can be written alone. Verilator ignores a scope that the model does not
 * have, and then fails at the first dump; so a scope is looked up here before. scopes.inc has the
 * instances (tools/waves/scopes.sh).
 */
#ifndef URDMA_SIM_SCOPES_H
#define URDMA_SIM_SCOPES_H

#include <set>
#include <string>

class Scopes
{
	static const std::set<std::string> &all()
	{
		static const std::set<std::string> names = {
#define URDMA_SCOPE(name) name,
#include "scopes.inc"
#undef URDMA_SCOPE
		};
		return names;
	}

	/* The instances directly in `outer`, or at the top if it is empty: "a, b, c". */
	static std::string inside(const std::string &outer)
	{
		const std::string prefix = outer.empty() ? "" : outer + ".";
		std::string list;

		for (const std::string &name : all())
			if (!name.compare(0, prefix.size(), prefix) &&
			    name.find('.', prefix.size()) == std::string::npos)
				list += (list.empty() ? "" : ", ") + name.substr(prefix.size());
		return list;
	}

      public:
	/* Empty if the instance `scope` exists, as "nic.tx"; otherwise lists the existing ones. */
	static std::string refuse(const std::string &scope)
	{
		std::string outer = scope, list;
		size_t dot;

		if (all().count(scope))
			return "";
		do {
			dot = outer.rfind('.');
			outer.resize(dot == std::string::npos ? 0 : dot);
		} while (!outer.empty() && !all().count(outer));
		list = inside(outer);
		if (outer.empty())
			return "there is no such instance; names begin with " + list;
		if (list.empty())
			return "there is no such instance; " + outer + " has none inside";
		return "there is no such instance; " + outer + " has " + list;
	}
};

#endif
