# Packages for Windows and their tests, and the formula for Homebrew. The Makefile includes this file.

.PHONY: windows-msi test-msi winget homebrew
windows-msi: $(STAMP) ## build dist/*.msi of a Windows program (ONEDIR=…, SIGN_OPTIONS=…; packages wixl msitools)
	@$(REPRODUCIBLE) $(BIN)/python packaging/windows/build_msi.py $(ONEDIR) $(VERSION) dist

test-msi: $(STAMP) ## install and uninstall the MSI under Wine (ARGS=--all: also repair, upgrade, failures, signature)
	@$(BIN)/python -m tests.packaging.wine.verify_msi $(ARGS)

winget: $(STAMP) ## write the winget manifests of an MSI to dist/winget (MSI=… URL=…)
	@$(BIN)/python packaging/windows/winget.py $(VERSION) $(MSI) $(URL) dist/winget

homebrew: $(STAMP) ## write the Homebrew formula of a wheel to dist/homebrew (WHEEL=… URL=…)
	@$(BIN)/python packaging/macos/homebrew.py $(VERSION) $(WHEEL) $(URL) dist/homebrew
