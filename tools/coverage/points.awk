# SPDX-License-Identifier: Apache-2.0
# The coverage points of a Verilated model, from the calls in its C++ that register them. A line for
# each counter:
#
#	INDEX KIND FILE LINES NAME
#
# KIND is line, branch, toggle or user; LINES is what the counter covers, as 3 or 3-5,8.
function text(s) {
	sub(/^ *"/, "", s)
	sub(/"[);]*$/, "", s)
	return s
}
/->__vlCover(Toggle)?Insert\(/ {
	match($0, /__Vcoverage\[[0-9]+/)
	index0 = substr($0, RSTART + 12, RLENGTH - 12)
	toggle = /ToggleInsert\(/
	range = $0
	sub(/.*Insert\(/, "", range)
	split(range, bits, /, */)
	rest = $0
	sub(/.*__Vcoverage\[[0-9]+\]\), first, /, "", rest)
	n = split(rest, part, /, /)
	file = text(part[1])
	kind = text(part[5])
	sub(/^v_/, "", kind)
	sub(/\/.*/, "", kind)
	if (!toggle) {
		print index0, kind, file, text(part[7]) ? text(part[7]) : part[2], text(part[6])
		next
	}
	# Two counters for each bit: it rose, it fell.
	step = bits[1] + 0 <= bits[2] + 0 ? 1 : -1
	for (bit = bits[1] + 0;; bit += step) {
		name = text(part[6]) (bits[3] + 0 ? "[" bit "]" : "")
		print index0++, kind, file, part[2], name ":0"
		print index0++, kind, file, part[2], name ":1"
		if (bit == bits[2] + 0)
			break
	}
}
