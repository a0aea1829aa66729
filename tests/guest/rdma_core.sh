#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# rdma-core's own test suite on urdma0, one file at a time, because one crash would end all that follow. Prints
# passed, failed and skipped by file. Ends with 1 when a test failed or a file did not come to its end. The tests of
# rdma-core connect a device to itself.
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

files=("$@")
if [ ${#files[@]} = 0 ]; then
	# Those of other devices cannot run here.
	mapfile -t files < <(find $suite/tests -name 'test_*.py' -printf '%f\n' | sed 's/\.py$//' | sort |
		grep -vE '^test_(mlx5|efa|cuda|irdma|hns)')
fi

# The connection manager needs QP 1, which the device does not offer yet: these tests do not skip, they fail.
no_cm="test_rdmacm"

bad=0
printf '%-26s %7s %7s %7s\n' file passed failed skipped
for file in "${files[@]}"; do
	if [[ " $no_cm " = *" $file "* ]]; then
		echo "$file: left out, there is no connection manager on urdma0 (no QP 1)"
		continue
	fi
	log=$suite/$file.log
	(cd $suite/tests && timeout -k 5 "${URDMA_SUITE_LIMIT:-240}" \
		python3 run_tests.py --dev urdma0 --gid "$gid" -v -k "tests.$file.*") >"$log" 2>&1
	status=$?
	ran=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' "$log")
	failed=$(grep -cE '\.\.\. (FAIL|ERROR)$' "$log")
	# An error in a class's set-up is not told by a test.
	failed=$((failed + $(grep -c '^ERROR: setUpClass' "$log")))
	skipped=$(grep -cE "\.\.\. skipped" "$log")
	printf '%-26s %7s %7s %7s\n' "$file" $((${ran:-0} - failed - skipped)) "$failed" "$skipped"
	if [ "$failed" != 0 ] || [ -z "$ran" ] || { [ $status != 0 ] && [ "$ran" != 0 ]; }; then
		bad=1
		echo "--- $file: status $status (124: it hung)"
		grep -E '\.\.\. (FAIL|ERROR)' "$log"
		tail -n 60 "$log"
	fi
	# A test's documentation, if it has some, stands on a line of its own between its name and its verdict.
	awk '/^test_[a-z0-9_]* \(/ { name = $1 }
		/\.\.\. skipped / { sub(/.*\.\.\. skipped /, ""); print "    skipped " name ": " $0 }' "$log"
done
exit $bad
