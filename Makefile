# One command for each thing a developer does; CMakePresets.json holds what is behind them.
# Every preset builds in build/PRESET. `make help` lists the commands.
.DEFAULT_GOAL := help
export JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
CUTS ?= 4000
SEED ?=
CRASHES ?= 500
QUICK ?=
EXPERIMENTS ?=
NIGHT ?=
PREFIX ?= /usr/local
DESTDIR ?=

# RocksDB itself is not instrumented, so ThreadSanitizer must not judge the accesses made from within it.
export TSAN_OPTIONS ?= suppressions=$(CURDIR)/tests/thread_sanitizer.supp \
                       ignore_noninstrumented_modules=1 halt_on_error=1 second_deadlock_stack=1
export UBSAN_OPTIONS ?= print_stacktrace=1

configure = cmake --preset $(1) $(if $(VERBOSE),,>/dev/null)
compile = cmake --build --preset $(1) --parallel $(JOBS)

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## Build the library and the command line tool (build/release)
	@scripts/install-dependencies
	@$(call configure,release)
	@$(call compile,release) --target isozone isozone_run isozone_cli

.PHONY: demo
demo: build ## Run the stock db_bench on an emulated zoned SSD and show what happened
	@scripts/demo build/release

.PHONY: check
check: format-check ## Check what most mistakes break: format, the unit tests of the layers, the rules of the house
	@$(call configure,checked)
	@$(call compile,checked) --target unit_tests
	@scripts/run-tests build/checked -L 'unit|house'

.PHONY: test
test: ## Build and run every test
	@scripts/install-dependencies
	@$(call configure,checked)
	@$(call compile,checked)
	@scripts/run-tests build/checked -LE torture

.PHONY: torture
torture: ## Run the long power-cut and random tests; `make guest-torture` has those on a real kernel
	@scripts/install-dependencies
	@$(call configure,checked)
	@$(call compile,checked)
	@scripts/run-tests build/checked -L torture

.PHONY: power-cuts
power-cuts: ## Cut the power CUTS (4000) times, half of them with logs that nobody syncs, and CUTS/20 times below RocksDB, from SEED
	@scripts/install-dependencies
	@$(call configure,checked)
	@$(call compile,checked) --target isozone_torture
	@build/checked/tests/torture/isozone_torture --cuts $(CUTS) $(if $(SEED),--seed $(SEED))
	@build/checked/tests/torture/isozone_torture --cuts $$(($(CUTS) / 20)) --rocksdb $(if $(SEED),--seed $(SEED))

.PHONY: asan
asan: ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-dependencies
	@$(call configure,asan)
	@$(call compile,asan)
	@scripts/run-tests build/asan -LE torture

.PHONY: asan-unit
asan-unit: ## Run the unit tests of the layers under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-dependencies
	@$(call configure,asan)
	@$(call compile,asan) --target unit_tests
	@scripts/run-tests build/asan -L unit

.PHONY: tsan
tsan: ## Run the tests under ThreadSanitizer
	@scripts/install-dependencies
	@$(call configure,tsan)
	@$(call compile,tsan)
	@scripts/run-tests build/tsan -LE torture

.PHONY: newest-rocksdb
newest-rocksdb: ## Run what runs RocksDB on the newest one
	@scripts/install-dependencies newest-rocksdb
	@scripts/fetch-newest-rocksdb build/rocksdb-newest
	@$(call configure,newest-rocksdb)
	@$(call compile,newest-rocksdb) --target rocksdb_tests
	@scripts/run-tests build/newest-rocksdb -L rocksdb

.PHONY: rocksdb-tests
rocksdb-tests: ## Run RocksDB's own tests on POSIX and on Isozone, which takes hours, and write the page of differences
	@scripts/install-dependencies rocksdb-tests
	@scripts/fetch-newest-rocksdb --source build/rocksdb-source
	@scripts/rocksdb-tests

.PHONY: guest-test
guest-test: guest ## Test zoned block devices on real kernels, in virtual machines that need neither root nor KVM
	@$(MAKE) --no-print-directory --jobs=$(JOBS) steps-in-guest steps-in-newest-guest crashes-in-guest

# Each of these takes about one processor, so they run side by side.
.PHONY: steps-in-guest steps-in-newest-guest crashes-in-guest
steps-in-guest:
	@tests/guest/guest.py build/checked build/guest-kernel
steps-in-newest-guest:
	@tests/guest/guest.py build/checked build/guest-kernel-newest
crashes-in-guest:
	@tests/guest/crash.py build/checked build/guest-kernel

.PHONY: guest-torture
guest-torture: guest ## Crash that machine CRASHES (500) times under RocksDB, and look for every write that was synced
	@tests/guest/crash.py build/checked build/guest-kernel --rounds $(CRASHES)

.PHONY: guest-kernel-newest
guest-kernel-newest:
	@scripts/install-dependencies guest
	@scripts/fetch-guest-kernel --newest build/guest-kernel-newest

.PHONY: databases
databases:
	@scripts/install-dependencies databases

.PHONY: guest
guest: guest-kernel-newest
	@scripts/fetch-guest-kernel build/guest-kernel
	@$(call configure,checked)
	@$(call compile,checked) --target isozone isozone_cli device_conformance_test integration_child \
	  integration_test isozone_model_test page_cache_test

.PHONY: engines
engines: ## Run the programs and languages of docs/engines on Isozone; with QUICK=1 those that need no other packages
	@scripts/install-dependencies $(if $(QUICK),,engines databases)
	@$(call configure,checked)
	@$(call compile,checked) --target isozone isozone_run isozone_cli
	@scripts/run-engines build/checked $(if $(QUICK),--quick)

measuring = rocksdb_ratio put_latency "disk_ratio --directory build" parallel_ratio steering_ratio mount_ratio \
            serve_cost advise_ratio

.PHONY: bench
bench: ## Run the benchmarks; with QUICK=1 in small, to see that they run
	@scripts/install-dependencies bench
	@$(call configure,bench)
	@$(call compile,bench)
	@scripts/run-benchmarks build/release $(if $(QUICK),--benchmark_min_time=0.01 --benchmark_repetitions=1)
	@bench/instruction_cost --build build/release
	@for script in $(measuring); do \
	  bench/$$script --build build/release $(if $(QUICK),--quick) || exit; \
	done

.PHONY: lab-build
lab-build: ## Build what lab/run needs
	@scripts/install-dependencies lab
	@$(call configure,release)
	@$(call compile,release) --target isozone isozone_cli isozone_conventional_library isozone_gc_bench isozone_sim_truth \
	  isozone_ycsb

# Two experiments are made in a guest. The second needs packages that bring services, so it is run only if it is named.
in_guest = $(if $(EXPERIMENTS),$(filter kernel-devices kernel-myrocks,$(EXPERIMENTS)),kernel-devices)
with_databases = $(filter kernel-myrocks,$(EXPERIMENTS))

.PHONY: report
report: lab-build $(if $(in_guest),guest-kernel-newest) $(if $(with_databases),databases) ## Run EXPERIMENTS (all, in 20 minutes) in small, and write the page of results
	@lab/run --quick $(EXPERIMENTS)

.PHONY: lab
lab: lab-build guest-kernel-newest ## Run every experiment in full (33 hours), with NIGHT=1 within 8 hours, and write the page of results
	@lab/run $(if $(NIGHT),--night)

.PHONY: fuzz
fuzz: ## Fuzz each parser for FUZZ_SECONDS (60)
	@scripts/install-dependencies developer
	@$(call configure,fuzz)
	@$(call compile,fuzz) --target fuzzers
	@scripts/run-fuzzers $(FUZZ_SECONDS)

.PHONY: format
format: ## Format every C++ file
	@scripts/install-dependencies developer
	@scripts/format

.PHONY: format-check
format-check: ## Fail if `make format` would change a file
	@scripts/install-dependencies developer
	@scripts/format --check

.PHONY: lint
lint: ## Check Python and shell scripts, compile each C++ file with clang's thread-safety analysis, run clang-tidy
	@scripts/install-dependencies bench developer
	@$(call configure,clang)
	@scripts/lint build/clang

.PHONY: install
install: build ## Install under PREFIX (/usr/local), staged under DESTDIR if set
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

.PHONY: package
package: build ## Build a Debian package (build/package)
	@cpack --config build/release/CPackConfig.cmake -B build/package

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf build
