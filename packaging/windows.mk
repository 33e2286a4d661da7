# Windows packages, and their tests. The Makefile includes this file.

.PHONY: windows-msi test-msi winget homebrew
windows-msi: $(STAMP) ## build dist/*.msi of a Windows program (wixl msitools; ONEDIR=…, SIGN_OPTIONS=…)
	@$(REPRODUCIBLE) $(BIN)/python packaging/windows/build_msi.py $(ONEDIR) $(VERSION) dist

test-msi: $(STAMP) ## install the MSI under Wine until the first report; ARGS=--all: also repair, upgrade, signature
	@$(BIN)/python -m tests.packaging.wine.verify_msi $(ARGS)
