# One command for each thing a developer does; CMakePresets.json holds what is behind them.
# Every preset builds in build/PRESET. `make help` lists the commands.
.DEFAULT_GOAL := help
export JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
DESTDIR ?=

# Objects are the same in every build directory, so the compiler cache may share them.
export CCACHE_NOHASHDIR = true
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
	@$(call compile,release) --target isozone isozone_cli

.PHONY: demo
demo: build ## Run the stock db_bench on an emulated zoned SSD and show what happened
	@scripts/demo build/release

.PHONY: test
test: ## Build and run every test
	@scripts/install-dependencies
	@$(call configure,release)
	@$(call compile,release)
	@scripts/run-tests build/release -LE torture

.PHONY: torture
torture: ## Run the long power-cut and random tests
	@scripts/install-dependencies
	@$(call configure,release)
	@$(call compile,release)
	@scripts/run-tests build/release -L torture

.PHONY: asan
asan: ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-dependencies
	@$(call configure,asan)
	@$(call compile,asan)
	@scripts/run-tests build/asan -LE torture

.PHONY: tsan
tsan: ## Run the tests under ThreadSanitizer
	@scripts/install-dependencies
	@$(call configure,tsan)
	@$(call compile,tsan)
	@scripts/run-tests build/tsan -LE torture

.PHONY: newest-rocksdb
newest-rocksdb: ## Run the tests on the newest RocksDB
	@scripts/install-dependencies newest-rocksdb
	@scripts/fetch-newest-rocksdb build/rocksdb-newest
	@$(call configure,newest-rocksdb)
	@$(call compile,newest-rocksdb)
	@scripts/run-tests build/newest-rocksdb -LE torture

.PHONY: bench
bench: ## Run the benchmarks
	@scripts/install-dependencies bench
	@$(call configure,bench)
	@$(call compile,bench)
	@scripts/run-benchmarks build/bench
	@bench/instruction_cost --build build/bench
	@bench/rocksdb_ratio --build build/bench
	@bench/parallel_ratio --build build/bench

.PHONY: lab-build
lab-build: ## Build what lab/run needs
	@scripts/install-dependencies bench lab
	@$(call configure,bench)
	@$(call compile,bench)

.PHONY: report
report: lab-build ## Run every experiment in small, in 15 minutes, and write the page of results
	@lab/run --quick

.PHONY: lab
lab: lab-build ## Run every experiment in full, which takes hours, and write the page of results
	@lab/run

.PHONY: fuzz
fuzz: ## Fuzz each parser for FUZZ_SECONDS (60)
	@scripts/install-dependencies developer
	@$(call configure,fuzz)
	@$(call compile,fuzz)
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
lint: ## Compile with clang and its thread-safety analysis, then run clang-tidy
	@scripts/install-dependencies bench developer
	@$(call configure,clang)
	@$(call compile,clang)
	@scripts/lint build/clang

.PHONY: install
install: build ## Install under PREFIX (/usr/local), staged under DESTDIR if set
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf build
