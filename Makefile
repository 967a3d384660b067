# `make` lists the targets; each has its line after `##`.

CARGO ?= cargo
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BIN := $(TARGET)/release/plimsoll
SHIPPED := $(TARGET)/shipped/plimsoll
# Measured (973) plus less than a hundredth. A change that makes a decision dearer moves this line, with its reason in the commit. It
# was 941 before streams and exempt requests had bounds of their own, and classes with a delay counted their service times, and 964
# before work was kept by site where sites take turns.
DECISION_INSTRUCTIONS := 975
# A control step of a hundred sites: measured (2,011,248) plus less than a hundredth, half a thousandth of a core. It was 1,710,343 before a
# changed cost was told by the gamma deviance and over all classes of a plant, and service times were counted by class,
# 1,897,551 before the load of each group was followed that shares a plant, 1,901,479 before what contracts take was summed
# before any of it is granted, 1,935,976 before chance was judged by how many requests arrive, and 1,951,898 before a sample far
# beyond its run began another, each pair of levels had a ratio, what waits unseen was a load of its own,
# 1,996,672 before a cost's step was carried over to levels that were not served, and 2,014,906 before the error of a small count was
# followed and not that of its logarithm.
STEP_INSTRUCTIONS := 2013000

# What is built once is built sooner without what an incremental build would keep.
export CARGO_INCREMENTAL ?= 0

# A first build takes minutes, of which a person wants to see that they pass.
BUILD := $(CARGO) build $(shell test -t 2 || echo --quiet)

.DEFAULT_GOAL := help
.PHONY: help run test deps check built unit model-check instructions e2e live fuzz-smoke fuzz bench attacks soak frameworks dashboard generate fmt module release shipped deb deb-test static static-test book

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: release ## build, and show what Plimsoll does: `plimsoll demo`
	$(BIN) demo

# Tests judge time only by bounds of many seconds, so the parts share the machine: the end-to-end tests, which mostly wait, run beside
# those that compute, and what compiles into a folder of its own beside both.
test: deps ## everything, from a fresh Debian machine with a Rust toolchain
	@$(MAKE) --jobs=3 --output-sync=target check unit e2e model-check instructions
	@echo "make test: all passed"

deps: ## install the Debian packages that the tests and the benchmark need, without starting their daemons
	@.ci/deps

# What all parts of `check` look at. They compile what others wrote with the same features, and so only once.
FEATURES := --features plimsoll/wire,plimsoll-e2e/wire,plimsoll-fuzz/program
LINTS := $(CARGO) clippy --quiet --workspace --all-targets --locked

# Naming an example lets cargo choose features as it does for tests.
DOCUMENTS := $(CARGO) doc --quiet --workspace --no-deps --locked --document-private-items --lib --bins --example watch $(FEATURES)

check: ## format, lints, licences, sources and advisories, documentation, purity and layers of the core, the dashboard
	$(CARGO) fmt --all --check
	.ci/purity
	.ci/layers
	.ci/book
	cd dashboard && node_modules/.bin/tsc && node build.mjs --check
	python3 -m unittest discover --quiet -s bench
	$(LINTS) $(FEATURES) -- -D warnings
	$(CARGO) clippy --quiet --workspace --test end_to_end --locked $(FEATURES) -- -D warnings
	$(LINTS) --no-default-features --features plimsoll-e2e/wire,plimsoll-fuzz/program -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(DOCUMENTS)
	$(CARGO) deny --log-level error check bans licenses sources
	.ci/advisories

# Built once, with the binary that the end-to-end tests run: another selection of packages would build most of it again.
TESTS := $(CARGO) test --quiet --workspace --features plimsoll/wire,plimsoll-e2e/wire --locked

# `--test header` is here so that cargo builds the crates of macros as it does for `unit`: its cbindgen needs them too. Without it all
# that uses a macro, the core and tokio among it, would be built twice.
END_TO_END := $(TESTS) --test end_to_end --test header

built:
	$(TESTS) --no-run
	$(END_TO_END) --no-run

unit: built ## unit, property and scenario tests, and the files generated from code
	$(TESTS) --no-fail-fast

e2e: built ## the binary against a real nginx, a real Apache and a real browser
	$(END_TO_END) --no-fail-fast -- --test-threads=4

live: shipped module ## the scenes' figures in real time beside those in virtual time: a table, which fails nothing
	PLIMSOLL_BIN=$(SHIPPED) PLIMSOLL_MODULE=$(TARGET)/module $(CARGO) test --quiet --locked -p plimsoll-e2e --bench live
	$(SHIPPED) demo --seconds 30

# Not optimized: the compiler would take ten times as long as the interleavings do.
model-check: ## what threads share, under every interleaving that loom can make
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom \
		$(CARGO) test --quiet --locked -p plimsoll-core --lib --config profile.dev.package.plimsoll-core.opt-level=0 model_check

instructions: ## the cost of a decision and of a control step, in instructions counted by callgrind
	.ci/instructions $(DECISION_INSTRUCTIONS) $(STEP_INSTRUCTIONS)

fuzz-smoke: ## a short, seeded run of every fuzz target over its kept corpus (part of unit)
	$(TESTS) fuzz_smoke

# New inputs are kept in out/corpus; `cargo fuzz cmin` makes a small corpus of them.
fuzz: ## a minute of coverage-guided fuzzing for each target (needs a nightly toolchain and cargo-fuzz)
	for target in $(notdir $(wildcard crates/fuzz/corpus/*)); do \
		mkdir -p out/corpus/$$target; \
		TARGET=$$target $(CARGO) +nightly fuzz run --fuzz-dir crates/fuzz --features libfuzzer any \
			out/corpus/$$target crates/fuzz/corpus/$$target -- -max_total_time=60 -artifact_prefix=out/$$target- || exit 1; \
	done

bench: shipped ## CPU per request beside nginx and HAProxy (KEEP=1 records the run in bench/runs)
	python3 bench/bench.py --plimsoll $(SHIPPED) $(if $(KEEP),--keep) $(BENCH_ARGS)
	$(CARGO) bench --quiet --locked -p plimsoll-core --bench decision

soak: shipped ## ten minutes of everything at once over TLS and HTTP/2: twice the capacity, servers that fail, reloads, upgrades, a full disk (SOAK="--minutes 60")
	python3 bench/soak.py --plimsoll $(SHIPPED) $(SOAK)

attacks: shipped ## hostile clients and failing parts, at Plimsoll and at nginx in the same way: a table, which fails nothing
	python3 bench/attacks.py --plimsoll $(SHIPPED) $(ATTACKS)

# Not part of `test`: it fetches the frameworks from PyPI.
frameworks: release module ## the Python middleware in FastAPI, Django and Flask under uvicorn and gunicorn: each request answered and counted once
	python3 bench/frameworks.py --plimsoll $(BIN) --module $(TARGET)/module

dashboard: ## write the dashboard's page from its sources in dashboard/ (needs Node)
	cd dashboard && npm ci --silent && node_modules/.bin/tsc && node build.mjs

generate: ## write what is generated from code: references of configuration and command line, schemas, metrics, golden diagnostics, the table of pairs
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll-gateway --lib types
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll-config --test generated --test diagnostics --test agent
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll --test command_line
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll-gateway --lib the_reference_of_metrics
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll-sim --test pairs
	PLIMSOLL_BLESS=1 $(CARGO) test --quiet --locked -p plimsoll-e2e --test end_to_end public_api

fmt: ## format the code
	$(CARGO) fmt --all

module: ## build libplimsoll, mod_plimsoll, libplimsoll_preload and a wheel for Python into target/module: a server's own processes decide (docs/module.md)
	$(BUILD) --profile shipped --locked -p plimsoll-ffi -p plimsoll-preload --examples
	@.ci/module $(TARGET)/shipped/examples $(TARGET)/module
	@.ci/wheel $(TARGET)/module

release: ## build the binary, optimized crate by crate
	$(BUILD) --release --locked -p plimsoll

shipped: ## build the binary as it is packaged and measured, optimized as a whole, which takes longer: target/shipped/plimsoll
	$(BUILD) --profile shipped --locked -p plimsoll

deb: ## the Debian package, left in target/; without adapt and impact, which need a library in C
	$(BUILD) --profile shipped --locked -p plimsoll --no-default-features
	packaging/deb $(SHIPPED) $(TARGET)

# Not part of `test`: it needs root and an optimized build.
deb-test: deps deb ## the package in a fresh Debian that boots: installed, started, broken, upgraded, removed, purged
	packaging/test/deb $(TARGET)/plimsoll_*.deb

STATIC := x86_64-unknown-linux-musl

static: ## the program without shared libraries, for containers: target/x86_64-unknown-linux-musl/shipped/plimsoll
	rustup target add $(STATIC)
	$(BUILD) --profile shipped --locked -p plimsoll --no-default-features --target $(STATIC)

# Not part of `test`: it needs root and another optimized build.
static-test: deps static ## what the container claims: the static program in an otherwise empty root, as another user
	packaging/test/container $(TARGET)/$(STATIC)/shipped/plimsoll

book: ## the pages of docs/ as a site in target/book (needs mdbook: cargo install --locked mdbook)
	mdbook build --dest-dir $(TARGET)/book docs
