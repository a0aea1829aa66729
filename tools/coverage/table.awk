# SPDX-License-Identifier: Apache-2.0
# The table of tools/coverage.sh, from lines "KIND FILE LINES NAME COUNT". A file may be in several
# models, and a module may have several instances: a line counts as reached if any of them reached
# it.
function percent(hit, all) {
	return all ? sprintf("%7d %6.1f%%", all, 100 * hit / all) : sprintf("%7s %7s", "-", "")
}
function row(name, i) {
	printf "%-38s", name
	for (i = 1; i <= 4; i++)
		printf "%s", percent(hit[name, i], all[name, i])
	print ""
}
function add(file, i, reached, folder) {
	folder = file
	sub(/\/?[^\/]*$/, "/", folder)
	all[file, i]++
	all[folder, i]++
	all["rtl/ in all", i]++
	hit[file, i] += reached
	hit[folder, i] += reached
	hit["rtl/ in all", i] += reached
	files[file] = folders[folder] = 1
}
index($2, rtl) == 1 {
	file = "rtl/" substr($2, length(rtl) + 1)
	if ($1 == "line" || $1 == "branch") {
		n = split($3, range, ",")
		for (i = 1; i <= n; i++) {
			split(range[i], ends, "-")
			if (ends[2] == "")
				ends[2] = ends[1]
			for (line = ends[1] + 0; line <= ends[2] + 0; line++)
				lines[file " " line] += $5
		}
	}
	if ($1 == "branch")
		branches[file " " $3 " " $4] += $5
	else if ($1 == "toggle")
		toggles[file " " $3 " " $4] += $5
	else if ($1 == "user")
		covers[file " " $3] += $5
}
END {
	for (k in lines) {
		split(k, part, " ")
		add(part[1], 1, lines[k] > 0)
		if (!lines[k])
			print part[1], part[2] | "sort -k1,1 -k2,2n >" holes
	}
	for (k in branches) {
		split(k, part, " ")
		add(part[1], 2, branches[k] > 0)
	}
	for (k in toggles) {
		split(k, part, " ")
		add(part[1], 3, toggles[k] > 0)
	}
	for (k in covers) {
		split(k, part, " ")
		add(part[1], 4, covers[k] > 0)
	}
	printf "%-38s%15s%15s%15s%15s\n", "", "lines", "branches", "toggles", "covers"
	n = 0
	for (f in files)
		name[++n] = f
	for (f in folders)
		name[++n] = f
	for (i = 2; i <= n; i++) {
		f = name[i]
		for (j = i - 1; j >= 1 && name[j] > f; j--)
			name[j + 1] = name[j]
		name[j + 1] = f
	}
	for (i = 1; i <= n; i++)
		row(name[i])
	row("rtl/ in all")
	if (100 * hit["rtl/ in all", 1] < limit * all["rtl/ in all", 1]) {
		printf "less than %d %% of the lines of rtl/ are reached\n", limit
		exit 1
	}
}
