# The sizes of both packages. The Makefile includes this file.

.PHONY: size
size: deb service-deb ## list the components of both packages, each with its size and the reason for it
	@$(PACKAGE_PYTHON) packaging/deb/size.py dist/venue-agent_*.deb $(ONEDIR)
	@$(PACKAGE_PYTHON) packaging/deb/size.py dist/service/venue-control_*.deb $(SERVICE_ONEDIR)
