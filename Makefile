# SPDX-License-Identifier: Apache-2.0
# A thin front: what to type. The build proper is CMake's, the set-up tools/setup.sh.

.PHONY: run build test test-full bench bench-update speed lint clean

# The launcher builds what it needs, which is less than `build`.
run:
	./urdma run --nics 2 --timeout 900 -- bash /opt/urdma/tests/pingpong.sh
	@tools/report.sh out/latest

build:
	@tools/setup.sh run
	@tools/guest-build.sh
	@tools/host-build.sh

test: build
	@tools/setup.sh test
	ctest --test-dir build --output-on-failure -j 2 -LE full

# With what became of rdma-core's own tests, by file.
test-full: build
	@tools/setup.sh test
	status=0; ctest --test-dir build --output-on-failure -j 2 || status=$$?; \
	grep -E '^(file|all|test_[a-z_]*) ' build/guest/tests/rdma-core/output.log; exit $$status

bench: build
	cmake --build build --target bench

# The committed table, and README's, with the figures of now.
bench-update: build
	cmake --build build --target bench-update

# The simulator's speed against that of another commit: make speed COMMIT=... ROUNDS=...
speed:
	@tools/speed.sh $(if $(ROUNDS),--rounds $(ROUNDS)) $(COMMIT)

lint:
	@tools/setup.sh lint
	@tools/lint.sh

clean:
	rm -rf build out
