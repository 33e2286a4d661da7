# The sizes of both packages. The Makefile includes this file.

.PHONY: size
size: deb service-deb ## list what is in both packages, its size, and why it is there
	@$(PACKAGE_PYTHON) packaging/deb/size.py dist/venue-agent_*.deb $(ONEDIR)
	@$(PACKAGE_PYTHON) packaging/deb/size.py dist/service/venue-control_*.deb $(SERVICE_ONEDIR)
