# Releases: how they are made and verified. docs/release.md describes them. The Makefile includes this file.

# The targets whose packages are part of a release: each writes into dist or a folder of its own below
# dist. `make verify-release` builds the packages of RELEASE_TARGETS again in a clean Debian, and compares
# them. The packages of RELEASE_MACHINE_TARGETS need programs of the machine that makes the release, so
# they are not built again.
RELEASE_TARGETS := deb service-deb wheel containerfile
RELEASE_MACHINE_TARGETS := rpm deb-arm64

RELEASE_CACHE ?= build/release
RELEASE_ENVIRONMENT := PYTHONPATH=packaging PYTHONDONTWRITEBYTECODE=1
SIGNERS ?= packaging/release/allowed_signers

.PHONY: release verify-release wheel containerfile
release: $(STAMP) ## make a signed release of the tagged commit in dist/release (root; KEY=ssh-key)
	@$(RELEASE_ENVIRONMENT) $(BIN)/python -m release.make --key "$(KEY)" --signers "$(SIGNERS)" --cache $(RELEASE_CACHE) --targets "$(RELEASE_TARGETS)" --machine-targets "$(RELEASE_MACHINE_TARGETS)" $(if $(MIRROR),--mirror $(MIRROR)) $(ARGS)

verify-release: ## verify a release, and build it again (DIR=folder, SIGNERS=file; root, or ARGS=--no-rebuild)
	@$(RELEASE_ENVIRONMENT) $(PYTHON) -m release.verify "$(DIR)" --signers "$(SIGNERS)" --cache $(RELEASE_CACHE) $(if $(MIRROR),--mirror $(MIRROR)) $(ARGS)

BUILD_TOOLS := build/wheel-tools
BUILD_REQUIREMENTS := requirements/build.txt
wheel: ## build the wheel and the source package in dist
	@test -d $(BUILD_TOOLS)/hatchling || { $(PYTHON) -m venv build/wheel-venv && build/wheel-venv/bin/python -m pip install $(HASHED) --target $(BUILD_TOOLS) -r $(BUILD_REQUIREMENTS); }
	@mkdir -p dist
	@PYTHONPATH=$(BUILD_TOOLS) $(PYTHON) -m hatchling build --directory dist

containerfile:
	@install -D --mode=644 packaging/container/Containerfile dist/Containerfile

.PHONY: test-reproducible
test-reproducible: $(STAMP) ## build the packages in two directories and compare their bytes (five minutes)
	@$(RELEASE_ENVIRONMENT) $(BIN)/python -m tests.packaging.release.verify_reproducible $(ARGS)

AUDIT_TOOLS := build/audit-tools
AUDIT_REQUIREMENTS := requirements/audit.txt
.PHONY: audit
audit: $(STAMP) ## check the requirements for known vulnerabilities (ADVISORIES=folder: without a network)
	@test -d $(AUDIT_TOOLS)/pip_audit || $(BIN)/python -m pip install $(HASHED) --target $(AUDIT_TOOLS) -r $(AUDIT_REQUIREMENTS)
	@PYTHONPATH=packaging:$(AUDIT_TOOLS) $(BIN)/python -m release.audit $(if $(ADVISORIES),--advisories $(ADVISORIES)) $(ARGS)

# The list is in packaging/release/long_checks.py.
.PHONY: release-checks
release-checks: $(STAMP) ## run the long checks that CI does not run (hours; root; ARGS="CHECK ..." or --list)
	@$(RELEASE_ENVIRONMENT) $(BIN)/python -m release.long_checks $(ARGS)
