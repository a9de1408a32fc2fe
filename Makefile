# Everything starts here: each verb makes its own .venv from nothing but Python and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ACME := examples/acme
# Hundreds of tests start Nexus; what is compiled once is not compiled by each of them.
unexport PYTHONDONTWRITEBYTECODE
LONG ?=
# What is tried is drawn anew each time; the seed that is printed tries the same again.
SEED ?=
DRAWN := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
EFFORT := --hypothesis-profile=$(if $(LONG),long,searching) --hypothesis-seed=$(DRAWN)

.PHONY: help run test quick faults hostile fuzz lint types architecture format generate goldens docs bench bench-quick clean

help:  ## what each verb does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.run  ## show the labelled prompt of the example company
	@$(BIN)/nexus --home $(ACME)/home/.nexus3 -C $(ACME)/company/backend/auth-service show

test: lint types architecture  ## lint, types, architecture, every test, and the quick benchmarks
	$(BIN)/pytest -n auto --dist loadgroup
	@$(MAKE) --no-print-directory bench-quick

quick: lint types architecture  ## as test, without the slow tests, and with fewer random examples
	$(BIN)/pytest -n auto --dist loadgroup -m "not slow" --hypothesis-profile=quick

faults: $(VENV)/.dev  ## kill, crowd out and damage, and count what was tried and what failed; LONG=1: more of it
	$(BIN)/pytest -n auto --dist loadgroup --table faults $(EFFORT)

hostile: $(VENV)/.dev  ## the same for files, servers and texts that mean harm; LONG=1: more, and watched by the kernel
	$(BIN)/pytest -n auto --dist loadgroup --table hostile $(EFFORT)

fuzz: $(VENV)/.dev  ## the same for random input; LONG=1: twenty times as much; SEED=N: the same as in that run
	$(BIN)/pytest -n auto --dist loadgroup --table fuzz $(EFFORT)

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy -n 2
	$(BIN)/mypy -n 2 tests scripts benchmarks
	MYPYPATH=examples/hello-plugin $(BIN)/mypy -p nexus_hello

architecture: $(VENV)/.dev  ## import-linter: who may import whom
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(VENV)/.dev  ## rewrite the generated files (plugin manifest, pages of the reference)
	$(BIN)/python scripts/generate.py

goldens: $(VENV)/.dev  ## write tests/golden/net anew: what commands print, in full; review the difference
	rm -rf tests/golden/net/*/
	NEXUS_GOLDENS=write $(BIN)/pytest -n auto -q tests/golden --ignore tests/golden/test_net.py

docs: $(VENV)/.dev  ## the documentation as a site, in build/site
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.dev  ## measure everything beside the peers and write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.dev  ## a short form without peers that fails on order-of-magnitude regressions only
	$(BIN)/python benchmarks/run.py --quick

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
