# The agent's package for arm64, built and tested in an emulated Debian. The Makefile includes this file.

# It takes some minutes to create the root directories of the emulated Debian, so they are kept outside the
# checkout, where `make clean` does not delete them.
export ARM64_CACHE ?= /var/cache/venue-agent-arm64
ARM64_TREE := build/arm64/tree

# --old-file: the root directory `builder` already contains the packaging environment, so make does not create it.
.PHONY: deb-arm64 test-arm64
deb-arm64: $(STAMP) ## build the agent's package for arm64 in dist/arm64, in an emulated Debian (root; four minutes, the first time ten more)
	@rm -rf build/arm64 dist/arm64 && mkdir -p $(ARM64_TREE) dist/arm64
	@tar --create $(patsubst %,--exclude=./%,build dist .venv .git .demo) . | tar --extract --directory=$(ARM64_TREE)
	@$(BIN)/python packaging/arm64/roots.py builder --bind=$(CURDIR)/$(ARM64_TREE):/checkout --chdir=/checkout --setenv=SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) -- make --old-file=/opt/package-venv/.installed PACKAGE_VENV=/opt/package-venv deb </dev/null
	@cp $(ARM64_TREE)/dist/* dist/arm64

test-arm64: $(STAMP) ## install dist/arm64 in an emulated Debian, take both reports, test its confinement on an arm64 kernel (root; five minutes)
	@$(BIN)/python -m tests.packaging.arm64.verify_arm64
	@$(BIN)/python -m tests.packaging.arm64.verify_confinement
