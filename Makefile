# `make run` starts a broker, `make test` proves it. Both set up what they need.

CARGO ?= cargo
SEEDS ?= 3000
STALL_CAUSES ?= 44
FUZZ_SECONDS ?= 20
KILLS ?= 30
CUTS ?= 40
FLIPS ?= 400
MESSAGES ?= 10000000
EXECUTIONS ?= 1000
PAUSES ?= 200
DATA ?= .data

# The web console, as the admin listener embeds it. Without npm the broker is built without it, and says so to browsers.
CONSOLE := console/dist/index.html
CONSOLE_SOURCES := $(shell find console -type f -not -path '*/node_modules/*' -not -path '*/dist/*' \
	-not -path '*/build/*' -not -name schema.d.ts) docs/reference/openapi.json

# What `imori version` tells; a build by cargo alone tells of none.
COMMIT = IMORI_COMMIT=$$(git rev-parse --short=12 HEAD) IMORI_COMMIT_DATE=$$(git log -1 --format=%cs)

# Packages hold a program for this system's glibc, and with `STATIC=$$(ci/static.sh)`, after `make static`, one on musl.
STATIC ?=
PACKED = target/$(addsuffix /,$(STATIC))dist/imori

# Nothing is compiled twice there, and what would speed that up takes time and disk.
ifdef CI
export CARGO_INCREMENTAL = 0
endif

.PHONY: help run test quick console check check-rust check-python check-console check-tree setup-check instructions counts deny advisories build unit unit-rust unit-console sim fuzz interop gateway amqp alone automation stalls durability automation-kills long-queue docs docs-tests site packages packages-quick static bench peers mutants packs soak system setup fmt clean without-nats

help: ## Shows this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: console ## Builds the broker, quickly, and runs it with every listener on loopback.
	$(COMMIT) $(CARGO) build --release --bin imori
	IMORI__GATEWAY__ROUTES=examples/gateway/routes.toml exec target/release/imori serve --data-dir $(DATA)

test: system ## Installs what the tests need and runs everything.
	python3 ci/stages.py
	@echo "everything passed"

# Debian packages: the rest of what tests need is installed while they are built.
system:
	ci/setup.sh system

setup:
	ci/setup.sh test

setup-check:
	ci/setup.sh check

quick: ## Five minutes for a change: what it touches is linted and tested, what is above is linted, 200 seeds, conversations.
	python3 ci/quick.py $(BASE)

console: ## Builds the web console, which the broker embeds.
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(CONSOLE); \
	else echo "the broker is built without its web console, which needs npm; install Node 20 or later" >&2; fi

$(CONSOLE): $(CONSOLE_SOURCES)
	ci/npm.sh console
	npm --prefix console run --silent build -- --logLevel warn

check: check-rust check-python check-console check-tree ## Formatting, lints, the shape of the tree, dependencies.

check-rust: setup-check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

check-python: setup-check
	.venv/bin/ruff check --quiet ci tests bench
	.venv/bin/ruff format --check --quiet ci tests bench
	.venv/bin/mypy --strict ci/tree.py ci/stages.py ci/quick.py ci/sbom.py ci/site.py
	cd tests && ../.venv/bin/mypy .

check-console: setup-check
	npm --prefix console run --silent check

check-tree: setup-check
	@sha256sum --check --status ci/deny.sha256 || \
	{ echo "Cargo.lock or deny.toml was changed since \`make deny\` passed: run it, and commit ci/deny.sha256" >&2; exit 1; }
	.venv/bin/python ci/tree.py
	python3 bench/instructions.py --check-record

instructions: setup-check ## Counts the instructions of a message; fails where one costs 2 % more than is recorded.
	command -v valgrind >/dev/null || ci/setup.sh test
	python3 bench/instructions.py --check

counts: setup-check ## The instructions of a message through the core and NATS, which take the fewest programs to count.
	python3 bench/instructions.py --check core: nats:

# Building cargo-deny takes as long as building the broker, so `make check` only compares what it passed for.
deny: ## Licences and sources of dependencies, and which crates may use them.
	ci/setup.sh deny
	.tools/bin/cargo-deny --log-level error check bans licenses sources
	sha256sum Cargo.lock deny.toml >ci/deny.sha256

advisories: ## Known faults of dependencies; asks the advisory database over the network.
	ci/setup.sh deny
	.tools/bin/cargo-deny --log-level error check advisories

build: console ## Everything that is tested, once: tests, programs, the simulator.
	$(CARGO) test --workspace --locked --quiet --no-run

unit: unit-rust unit-console ## Unit tests, conversations, the command line, the console's logic and size.

# All but the simulator's seeds, which are a stage of their own. The features of what is built are those of the whole
# workspace, so nothing may be left out by package.
unit-rust: build
	$(CARGO) test --workspace --tests --locked --quiet --no-fail-fast -- --skip seeds::

unit-console: console
	NODE_OPTIONS=--test-reporter=dot npm --prefix console run --silent test
	npm --prefix console run --silent size

sim: build ## The simulator: SEEDS seeds and every planted bug.
	IMORI_SIM_SEEDS=$(SEEDS) $(CARGO) test --workspace --locked --quiet --test simulation -- seeds:: --nocapture

without-nats: setup-check ## Server and admin build without NATS, in a copy of the tree.
	.venv/bin/python ci/without_nats.py

fuzz: ## Every fuzz target for FUZZ_SECONDS seconds each, and the fault that is planted in each.
	ci/fuzz.sh $(FUZZ_SECONDS)

interop: build ## Third-party clients, and hostile ones, against the real broker.
	tests/interop/nats/build.sh
	bench/brokerless/build.sh .tools/peers
	.venv/bin/pytest -q -n 4 tests/interop tests/security tests/console --ignore tests/interop/amqp --ignore tests/interop/amqp10

gateway: build ## The HTTP gateway: its routes and scripts, and hostile clients and servers.
	.venv/bin/pytest -q -n 4 tests/gateway

automation: build ## The automation: rules, packs, sensors and workflows in the real broker, and its API by StackStorm's clients.
	.venv/bin/pytest -q -n 3 tests/automation

packs: build ## Packs as published, from the checkouts in the folder PACKS: their environments, their own tests, their actions.
	PACKS="$(abspath $(or $(PACKS),packs))" .venv/bin/pytest -q -rs tests/automation/test_published_packs.py

amqp: build ## Third-party clients of AMQP 0-9-1 and 1.0, and the suites that their authors wrote.
	tests/interop/amqp/install.sh
	tests/interop/amqp10/install.sh
	.venv/bin/pytest -q -n 4 -m "not alone" tests/interop/amqp tests/interop/amqp10

alone: build ## What has short time limits of its own, beside nothing else.
	tests/interop/amqp/install.sh
	.venv/bin/pytest -q -m alone tests/interop/amqp

stalls: build ## STALL_CAUSES stalls of known cause, against what imori-bench says of them.
	STALL_CAUSES=$(STALL_CAUSES) .venv/bin/pytest -q tests/stalls

durability: build ## KILLS kills, CUTS power cuts, FLIPS damaged places; failing, full and frozen disks.
	KILLS=$(KILLS) CUTS=$(CUTS) FLIPS=$(FLIPS) .venv/bin/pytest -q -n 2 tests/durability

automation-kills: build ## EXECUTIONS executions of the automation among kills, and PAUSES workflows that are paused.
	EXECUTIONS=$(EXECUTIONS) PAUSES=$(PAUSES) .venv/bin/pytest -q -s tests/automation/test_kills.py tests/automation/test_pauses.py

long-queue: ## A queue of MESSAGES messages of 1 KB on disk: filled, drained, and restored after a kill.
	$(CARGO) build --profile dist --bin imori
	IMORI_BIN=$(CURDIR)/target/dist/imori MESSAGES=$(MESSAGES) .venv/bin/pytest -q tests/soak

docs: docs-tests site ## The commands, links and keys in the documents; the site in target/site.

docs-tests: build
	.venv/bin/pytest -q tests/docs

site: setup-check
	.venv/bin/python ci/site.py target/site

packages: console ## Debian package, archive, wheel, npm package and bill of materials in target/packages; a test installs them.
	ci/setup.sh packages
	$(COMMIT) $(if $(STATIC),CC_$(subst -,_,$(STATIC))=musl-gcc) \
	$(CARGO) build --profile dist --locked --bin imori $(addprefix --target ,$(STATIC))
	.venv/bin/python ci/packages.py $(PACKED) target/packages $(addprefix --url-base ,$(URL_BASE))
	IMORI_BIN=$(CURDIR)/$(PACKED) .venv/bin/pytest -q tests/packages

packages-quick: build ## The same packages without compression, and an image's content; with helm (`make packages`), the chart.
	.venv/bin/pytest -q -n 2 --dist loadfile tests/packages

static: ## Installs what `make packages` links a static program with.
	ci/setup.sh static

bench: ## A short benchmark of this broker alone.
	$(CARGO) build --profile dist --bin imori --bin imori-bench
	target/dist/imori-bench versus brokers imori --rounds 1 --time 2s --warmup 1s

peers: ## Installs what this broker is compared with into .tools/peers, and says what is here.
	$(CARGO) build --profile dist --bin imori --bin imori-bench --bin imori-brokerless
	bench/brokerless/build.sh .tools/peers
	$(CARGO) build --profile dist -p imori-versus --example relay
	ci/peers.sh; code=$$?; target/dist/imori-bench peers; exit $$code

# docs/reference/mutants.md has what came of it.
mutants: ## Changes what keeps messages, line by line: the tests have to notice each.
	ci/setup.sh mutants
	.tools/mutants/bin/python ci/mutants.py store
	.tools/mutants/bin/python ci/mutants.py core
	.tools/mutants/bin/python ci/mutants.py amqp10

soak: ## Rights and selectors at random, a million Ruby scripts, the simulator, the fuzzers, the stalls and the ends of brokers for long, and the mutants.
	IMORI_RIGHTS_CASES=1000000 $(CARGO) test -p imori-core --locked --quiet --test it rights_at_random
	ci/ruby_soak.sh
	IMORI_SELECTOR_CASES=20000000 $(CARGO) test -p imori-core --locked --quiet --lib naive
	$(MAKE) sim SEEDS=1000000
	$(MAKE) fuzz FUZZ_SECONDS=600
	$(MAKE) stalls STALL_CAUSES=200
	$(MAKE) durability KILLS=1000 CUTS=400 FLIPS=20000
	$(MAKE) automation-kills
	$(MAKE) long-queue
	$(MAKE) mutants

fmt: ## Formats everything.
	$(CARGO) fmt --all
	.venv/bin/ruff format --quiet ci tests bench

clean: ## Removes what was built.
	$(CARGO) clean
	rm -rf .venv .tools .data tests/interop/js/node_modules tests/interop/nats/js/node_modules tests/interop/amqp/js/node_modules tests/interop/amqp10/rhea/node_modules
