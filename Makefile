# Everything starts here: each verb makes its own .venv from nothing but Python and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ACME := examples/acme

.PHONY: help run test quick lint types architecture format generate bench clean

help:  ## what each verb does
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.run  ## show the labelled prompt of the example company
	@$(BIN)/nexus --home $(ACME)/home/.nexus3 -C $(ACME)/company/backend/auth-service show

test: lint types architecture  ## lint, types, architecture and every test
	$(BIN)/pytest -n auto --dist loadgroup

quick: lint types architecture  ## as test, without the tests that build wheels and environments
	$(BIN)/pytest -n auto --dist loadgroup -m "not slow"

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy
	$(BIN)/mypy tests scripts benchmarks
	MYPYPATH=examples/hello-plugin $(BIN)/mypy -p nexus_hello

architecture: $(VENV)/.dev  ## import-linter: who may import whom
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/.dev  ## rewrite the generated files (plugin manifest, hook reference)
	$(BIN)/python scripts/generate.py

bench: $(VENV)/.run  ## measure start-up beside the peers, and loading beside bare reading
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/servers.py
	$(BIN)/python benchmarks/tokens.py
	$(BIN)/python benchmarks/transcripts.py
	$(BIN)/python benchmarks/history.py
	$(BIN)/python benchmarks/writing.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/assembly.py
	$(BIN)/python benchmarks/caching.py

clean:  ## remove what the other verbs made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Nexus needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.run
