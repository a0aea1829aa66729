#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# rdma_core.sh [FILE...]: rdma-core's own test suite on urdma0, one file at a time, because a crash would end all
# later tests. Prints passed, failed and skipped tests per file. Ends with 1 if a test failed, a file did not run to
# its end, or a test was skipped that must not be. The tests of rdma-core connect a device to itself.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected: $(rdma link show 2>&1)"
# The suite's source, of the version that is installed: tools/guest-build.sh leaves it there for --share.
suite=/tmp/rdma-core-tests
[ -e /share/run_tests.py ] || fail "/share does not have rdma-core's tests: run with --share build/guest/rdma-core-tests"
mkdir -p $suite
cp -r /share $suite/tests
gid=$(gid_index urdma0) || fail "urdma0 has no RoCEv2 GID"
# A parent domain's allocator allocates rings from huge pages.
huge_pages 8

files=("$@")
if [ ${#files[@]} = 0 ]; then
	# Those of other devices cannot run here.
	mapfile -t files < <(find $suite/tests -name 'test_*.py' -printf '%f\n' | sed 's/\.py$//' | sort |
		grep -vE '^test_(mlx5|efa|cuda|irdma|hns)')
fi

# Tests that may be skipped, as "file.test: reason"; docs/driver.md explains them. Any other skip is a defect.
may_skip=(
	# raw packet QPs
	"test_[a-z_]*\..*: 'Create QP type 8 is"
	"test_qp\..*: 'Create Raw Packet QP"
	# dmabuf
	"test_mr\.test_dmabuf_.*: 'Device /dev/dri"
	# on-demand paging
	"test_odp\..*: 'ODP is not"
	# resizing an SRQ, tag matching
	"test_srq\.test_resize_srq: 'SRQ resize is not"
	"test_tag_matching\..*: 'Extended CQ"
)

# skip_is_right SKIP
skip_is_right() {
	local pattern
	for pattern in "${may_skip[@]}"; do
		[[ ! $1 =~ ^$pattern ]] || return 0
	done
	return 1
}

bad=0
total=(0 0 0)
printf '%-26s %7s %7s %7s\n' file passed failed skipped
for file in "${files[@]}"; do
	log=$suite/$file.log
	(cd $suite/tests && timeout -k 5 "$limit" \
		python3 run_tests.py --dev urdma0 --gid "$gid" -v -k "tests.$file.*") >"$log" 2>&1
	status=$?
	ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' "$log")
	failed=$(grep -cE '\.\.\. (FAIL|ERROR)$' "$log")
	# An error in a class's set-up is not reported for a test.
	failed=$((failed + $(grep -c '^ERROR: setUpClass' "$log")))
	skipped=$(grep -cE "\.\.\. skipped" "$log")
	passed=$((${ran:-0} - failed - skipped))
	printf '%-26s %7s %7s %7s\n' "$file" "$passed" "$failed" "$skipped"
	total=($((total[0] + passed)) $((total[1] + failed)) $((total[2] + skipped)))
	if [ "$failed" != 0 ] || [ -z "$ran" ] || { [ $status != 0 ] && [ "$ran" != 0 ]; }; then
		bad=1
		echo "--- $file: status $status (124: it hung)"
		grep -E '\.\.\. (FAIL|ERROR)' "$log"
		tail -n 60 "$log"
	fi
	# A test's documentation, if any, is on a separate line between its name and its verdict.
	mapfile -t skips < <(awk -v file="$file" '/^test_[a-z0-9_]* \(/ { name = $1 }
		/\.\.\. skipped / { sub(/.*\.\.\. skipped /, ""); print file "." name ": " $0 }' "$log")
	for skip in ${skips[@]+"${skips[@]}"}; do
		if skip_is_right "$skip"; then
			echo "    skipped ${skip#*.}"
		else
			echo "    NOT TO BE SKIPPED: $skip"
			bad=1
		fi
	done
done
printf '%-26s %7s %7s %7s\n' "all" "${total[@]}"
# The list may grow, but the number of passed tests must not decrease (docs/driver.md).
if [ "${#files[@]}" -gt 1 ] && [ "${total[0]}" -lt 138 ]; then
	echo "less than 138 have passed"
	bad=1
fi
exit $bad
