# make run: install, materialize the bundled suite, print its results.  make test: all checks.
# make bench: speed against other libraries, at full scale or with SCALE=small.
# Needs Python 3.11 or later, make and a package index.

PYTHON ?= python3
SCALE ?= full
VENV := .venv
BIN := $(VENV)/bin
# Relative paths only: the folder's name may hold spaces.
export DAGSTER_HOME = $(CURDIR)/dagster_home

.PHONY: run ui test bench lint clean

run: $(VENV)/installed
	$(BIN)/rag-assets run toy
	$(BIN)/rag-assets run handbook

ui: $(VENV)/installed-dev
	@# dg warns, twice, unless it is told that its environment is the active one.
	VIRTUAL_ENV="$$PWD/$(VENV)" $(BIN)/dg dev

test: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto -m 'slow or not slow'

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks $(SCALE)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) data/warehouse
	find dagster_home -mindepth 1 ! -name dagster.yaml -delete

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $(VENV)/installed

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing the development tools into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ui,dev]'
	@touch $(VENV)/installed $(VENV)/installed-dev

$(VENV)/installed-bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing the libraries to compare with into $(VENV) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $(VENV)/installed $(VENV)/installed-bench
