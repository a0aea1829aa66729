# SPDX-License-Identifier: Apache-2.0
# Plant the faults of tests/mutate/faults into a copy of the RTL.
#
#	awk -f plant.awk -v rtl=DIR -v out=DIR faults
#
# Each file of the list is written to OUT/file. Where fault N has to stand, its expression becomes a
# choice: the changed one if urdma_mutate_pkg::fault is N, else the original.
# OUT/list gets a line for each fault: number, file, text, and why it survives, parted by tabs.
BEGIN {
	RS = ""
	FS = "\n"
}
function fail(text) {
	printf "%s: fault %d: %s\n", FILENAME, n, text >"/dev/stderr"
	failed = 1
	exit 1
}
function slurp(path, line, all, got) {
	RS = "\n"
	while ((got = (getline line <path)) > 0)
		all = all line "\n"
	close(path)
	RS = ""
	if (got < 0)
		fail("there is no " path)
	return all
}
/^#/ { next }
{
	n++
	if (NF < 5 || NF > 6)
		fail("an entry has five lines, or six")
	file = $1
	if (!(file in text))
		text[file] = original[file] = slurp(rtl "/" file)
	at = index(original[file], $3)
	if (!at)
		fail("not in " file ": " $3)
	if (index(substr(original[file], at + 1), $3))
		fail("more than once in " file ": " $3)
	inside = index($3, $4)
	if (!inside)
		fail("not in its line: " $4)
	if (index(substr($3, inside + 1), $4))
		fail("more than once in its line: " $4)
	at = index(text[file], $3)
	if (!at)
		fail("another fault changes the same line: " $3)
	choice = "((urdma_mutate_pkg::fault == " n ") ? (" $5 ") : (" $4 "))"
	text[file] = substr(text[file], 1, at + inside - 2) choice substr(text[file], at + inside - 1 + length($4))
	survives = ""
	if (NF == 6) {
		survives = $6
		if (!sub(/^survives: /, "", survives))
			fail("the sixth line begins with \"survives: \"")
	}
	printf "%d\t%s\t%s\t%s\n", n, file, $2, survives >(out "/list")
}
END {
	if (failed)
		exit 1
	for (file in text)
		printf "%s", text[file] >(out "/" file)
}
