# Everything a developer, a new user and CI run. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help environment demo test check lint types imports format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "Creating the environment in $(VENV) (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

environment: $(STAMP) ## create the environment

demo: $(STAMP) ## run the whole loop on loopback: service, agent, two reports
	@$(BIN)/venue-agent demo $(ARGS)

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest $(ARGS)

lint: $(STAMP) ## ruff: lint and format check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

imports: $(STAMP) ## the floors of the house: who may import whom
	@$(BIN)/lint-imports --quiet

check: lint types imports test ## what CI runs

format: $(STAMP) ## rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove what the targets made
	rm -rf $(VENV) .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

test-crash: $(STAMP) ## kill the agent at every moment it names, for both kinds (some minutes)
	@CRASH_MATRIX=full $(BIN)/python -m pytest tests/scenario/test_crash.py $(ARGS)
