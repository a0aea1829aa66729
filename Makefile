# SPDX-License-Identifier: Apache-2.0
# A thin front: what to type. The build proper is CMake's, the set-up tools/setup.sh.

.PHONY: run build test test-full test-debug mutate coverage waves bench bench-update speed lint clean

# The launcher builds what it needs, which is less than `build`. The directory is made here, because out/latest may be
# another run's by the time of the report.
run:
	@out=$$(bash -c '. tools/results.sh && new_results out') && \
	./urdma run --nics 2 --timeout 900 --out "$$out" -- bash /opt/urdma/tests/pingpong.sh && \
	tools/report.sh "$$out"

build:
	@tools/setup.sh run
	@tools/guest-build.sh
	@tools/host-build.sh

# As many as there are cores; two at least, for guests wait a good part of their time.
JOBS ?= $(shell n=$$(nproc); echo $$((n > 2 ? n : 2)))

test: build
	@tools/setup.sh test
	ctest --test-dir build --output-on-failure -j $(JOBS) -LE "full|debug"

# With what became of rdma-core's own tests, by file. Random tests get other seeds in each run. Tests with the label short
# have a longer form here.
test-full: build
	@tools/setup.sh full
	@export SEED=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "[test-full] SEED=$$SEED"; \
	status=0; ctest --test-dir build --output-on-failure -j $(JOBS) -LE "short|debug" || status=$$?; \
	echo "[test-full] make test-full SEED=$$SEED repeats it"; \
	grep -E '^(file|all|test_[a-z_]*) ' build/guest/tests/rdma-core/output.log; exit $$status

# The guest suites with the debug kernel, which the first run compiles.
test-debug: build
	@tools/setup.sh test
	@tools/setup.sh debug
	@tools/guest-build.sh debug
	ctest --test-dir build --output-on-failure -j 1 -L debug

# Which tests notice the faults of tests/mutate, planted one after the other into the RTL.
mutate:
	@tools/setup.sh test
	@tools/mutate.sh

# What the tests of blocks, engine, simulator and provider reach.
coverage:
	@tools/setup.sh coverage
	@tools/coverage.sh

# Repeats a failed block or engine test, with waves: make waves TEST=engine.loss [ARGS=...] [BEFORE=NS] [WINDOW=N:FROM] [SEED=n]
waves:
	@tools/waves.sh $(if $(BEFORE),--before $(BEFORE)) $(if $(WINDOW),--window $(WINDOW)) $(TEST) $(ARGS)

bench: build
	cmake --build build --target bench

# The committed table, and README's, with the figures of now.
bench-update: build
	cmake --build build --target bench-update

# The simulator's speed against that of another commit: make speed COMMIT=... ROUNDS=... With EVENTS=1 against its own while
# it records events.
speed:
	@tools/speed.sh $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(EVENTS),--events) $(COMMIT)

lint:
	@tools/setup.sh lint
	@tools/lint.sh

clean:
	rm -rf build out
