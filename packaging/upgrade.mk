# Upgrades of the agent's package. The Makefile includes this file.

.PHONY: test-upgrade
test-upgrade: $(STAMP) test-deb ## interrupt upgrades at each step under a real systemd (root; 40 minutes)
	@unshare --net -- $(BIN)/python -I tests/lab/loopback.py $(BIN)/python -m tests.packaging.upgrade $(ARGS)
