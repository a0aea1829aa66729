# SPDX-License-Identifier: Apache-2.0
# A thin front: what to type. The build proper is CMake's, the set-up tools/setup.sh.

.PHONY: run build test test-full bench lint clean

# The launcher builds what it needs, which is less than `build`.
run:
	./urdma run --nics 2 --timeout 300 -- bash /opt/urdma/tests/pingpong.sh
	@tools/report.sh out/latest

build:
	@tools/setup.sh run
	@tools/guest-build.sh
	@tools/host-build.sh

test: build
	@tools/setup.sh test
	ctest --test-dir build --output-on-failure -j 2 -LE full

test-full: build
	@tools/setup.sh test
	ctest --test-dir build --output-on-failure -j 2

bench: build
	cmake --build build --target bench

lint:
	@tools/setup.sh lint
	@tools/lint.sh

clean:
	rm -rf build out
