# Everything starts here: each verb makes .venv from nothing but Python and a package index, or uses the environment that
# is active.
PYTHON ?= python3
VENV := $(or $(VIRTUAL_ENV),.venv)
BIN := $(VENV)/bin
ACME := examples/acme
# Hundreds of tests start Nexus; what is compiled once is not compiled by each of them.
unexport PYTHONDONTWRITEBYTECODE
# Each file is run by one process, so that its fixtures are made once; tests/scheduling.py has the order.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
LONG ?=
# What is tried is drawn anew each time; the seed that is printed tries the same again.
SEED ?=
DRAWN := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
EFFORT := --hypothesis-profile=$(if $(LONG),long,searching) --hypothesis-seed=$(DRAWN)

.PHONY: help run test quick pythons faults hostile fuzz checks lint types architecture format generate goldens docs bench bench-quick lock clean

help:  ## what each verb does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.run  ## show where the tokens of an example session go, and the prompt of the example company
	@printf '%s\n\n' '$$ nexus context examples/transcripts/login-bug.jsonl'
	@NEXUS_PAGER=cat $(BIN)/nexus context examples/transcripts/login-bug.jsonl
	@printf '\n%s\n\n' '$$ nexus --home $(ACME)/home/.nexus3 -C $(ACME)/company/backend/auth-service show'
	@NEXUS_PAGER=cat $(BIN)/nexus --home $(ACME)/home/.nexus3 -C $(ACME)/company/backend/auth-service show
	@printf '\n%s\n' 'Now with your own conversations: $(BIN)/nexus context'

test: checks  ## lint, types, architecture, every test, some on other Pythons, and the quick benchmarks
	$(BIN)/pytest $(PARALLEL)
	$(BIN)/python scripts/other_pythons.py --brief
	@$(MAKE) --no-print-directory bench-quick

quick: checks  ## as test, without the slow tests, and with fewer cases and random examples of the others
	$(BIN)/pytest $(PARALLEL) -m "not slow" --most-cases=2 --hypothesis-profile=quick

pythons: $(VENV)/.dev  ## more quick tests on the other Pythons that are installed (3.11 to 3.13); skips those that are not
	$(BIN)/python scripts/other_pythons.py

faults: $(VENV)/.dev  ## kill, crowd out and damage, and count what was tried and what failed; LONG=1: more of it
	$(BIN)/pytest $(PARALLEL) --table faults $(EFFORT)

hostile: $(VENV)/.dev  ## the same for files, servers and texts that mean harm; LONG=1: more, and watched by the kernel
	$(BIN)/pytest $(PARALLEL) --table hostile $(EFFORT)

fuzz: $(VENV)/.dev  ## the same for random input; LONG=1: twenty times as much; SEED=N: the same as in that run
	$(BIN)/pytest $(PARALLEL) --table fuzz $(EFFORT)

# Each of them has one process and waits for no other.
checks: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs lint types architecture

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy

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
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev  ## measure everything beside the peers and write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.dev  ## a short form without peers that fails on order-of-magnitude regressions only
	$(BIN)/python benchmarks/run.py --quick

lock:  ## write constraints.txt: the newest releases that the development environment is made of
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet '.[dev]'
	build/lock/bin/python -m pip freeze --exclude nexusctx --exclude pip --exclude setuptools > constraints.txt

clean:  ## remove what the other verbs made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Nexus needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Nexus into $(VENV), once; this takes about half a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Nexus and what its tests need into $(VENV), once; this takes some minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.run
