# One command each, on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all lint contracts recipes docs clean

demo: $(READY)                ## train, translate and draw, in about a minute
	$(BIN)/sixjars demo

test: lint                    ## what every change must pass, under ten minutes on two cores
	$(BIN)/python -m pytest -q

test-all: lint                ## also train every sample recipe to its floor
	$(BIN)/python -m pytest -q -m 'slow or not slow' --timeout 900

lint: $(READY)                ## style, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

contracts: $(READY)           ## the promises that every part keeps
	$(BIN)/python -m pytest -q tests/contracts

recipes: $(READY)             ## every recipe, a few steps each
	$(BIN)/python -m pytest -q tests/recipes

docs: $(READY)                ## the pages that the code itself can tell: settings, recipes
	$(BIN)/python docs/generate.py

# With no torch in the environment, the CPU build is installed first: the newest one brings gigabytes of CUDA.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
