# Repositories for apt and dnf, RPM packages, and their tests. The Makefile includes this file.

RPM = packaging/rpm/build_rpm.py
AGENT_RPM = $(REPRODUCIBLE) $(PACKAGE_PYTHON) $(RPM) --onedir $(ONEDIR) --manual build/manual
SERVICE_RPM = $(REPRODUCIBLE) $(SERVICE_PYTHON) $(RPM) --program venue-control --onedir $(SERVICE_ONEDIR) --manual build/service-manual
.PHONY: rpm
rpm: onedir service-onedir ## build the RPM packages in dist/rpm (packages rpm checkpolicy semodule-utils)
	@$(AGENT_RPM) --output dist/rpm
	@$(SERVICE_RPM) --output dist/rpm
	@cp dist/venue-agent.cdx.json dist/service/venue-control.cdx.json dist/rpm
	@cd dist/rpm && sha256sum *.rpm > SHA256SUMS && cat SHA256SUMS

# The repositories grow: packages of earlier releases stay in them.
URL ?= https://packages.example.com
DEBS = $(wildcard dist/*.deb dist/service/*.deb)
RPMS = $(wildcard dist/rpm/*.rpm)
.PHONY: apt-repository dnf-repository
apt-repository: ## add the packages in dist to dist/apt (KEY=FINGERPRINT URL=https://…; package apt-utils)
	@test -n "$(KEY)" || { echo "Set KEY to the fingerprint of the signing key."; exit 2; }
	@test -n "$(DEBS)" || { echo "There are no packages: run make deb service-deb."; exit 2; }
	@$(PYTHON) packaging/apt/publish.py --key "$(KEY)" --url "$(URL)/apt" --output dist/apt $(if $(VALID_DAYS),--valid-days $(VALID_DAYS)) $(DEBS)

dnf-repository: ## add the packages in dist/rpm to dist/dnf (KEY=… URL=…; packages rpm createrepo-c)
	@test -n "$(KEY)" || { echo "Set KEY to the fingerprint of the signing key."; exit 2; }
	@test -n "$(RPMS)" || { echo "There are no packages: run make rpm."; exit 2; }
	@$(PYTHON) packaging/rpm/publish.py --key "$(KEY)" --url "$(URL)/dnf" --output dist/dnf $(RPMS)

.PHONY: test-apt test-rpm
test-apt: $(STAMP) test-deb ## install and upgrade from a signed apt repository, as README.md describes (root, network)
	@$(BIN)/python -m tests.packaging.linux.verify_apt $(ARGS)

test-rpm: $(STAMP) onedir service-onedir ## install, upgrade and erase the RPM packages, alone and by dnf (root, network)
	@$(RELEASE_ENVIRONMENT) $(BIN)/python -m tests.packaging.linux.verify_rpm $(ARGS)
