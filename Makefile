# One command each, on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
SITE_READY := $(VENV)/site-ready
TORCH ?= torch==2.13.0
WORKERS ?= 2
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder # the long files come first
QUICK := tests/contracts --ignore-glob '*equation*' tests/house/test_structure.py tests/house/test_surface.py tests/unit/test_search.py \
	tests/unit/test_updates.py tests/recipes/test_recipes.py::test_the_first_of_each_task
export OMP_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE # the tests start many processes: what they import is compiled once

.PHONY: demo quick quick-tests test test-all lint contracts recipes docs site wheel scale bench bench-gpu gpu-check clean

demo: $(READY)                ## train, translate and draw, in about a minute
	$(BIN)/sixjars demo

quick: $(READY)               ## for each small step, under a minute on two cores
	$(MAKE) --no-print-directory -j 2 lint quick-tests

quick-tests: $(READY)         # contracts, layering, search, training, and one recipe of each system for two steps
	$(BIN)/python -m pytest -q $(SPREAD) $(QUICK)

test: lint                    ## what every change must pass, under five minutes on two cores
	$(BIN)/python -m pytest -q $(SPREAD)

test-all: lint                ## also every pair of components, and every sample recipe trained to its score
	$(BIN)/python -m pytest -q $(SPREAD) -m 'slow or not slow' --timeout 900

lint: $(READY)                ## style, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

contracts: $(READY)           ## the contract of every field, encoder, bridge and decoder
	$(BIN)/python -m pytest -q $(SPREAD) tests/contracts

recipes: $(READY)             ## every recipe, a few steps each
	$(BIN)/python -m pytest -q $(SPREAD) tests/recipes

docs: $(READY)                ## what is known elsewhere: settings, recipes, measured figures
	$(BIN)/python docs/generate.py

site: $(SITE_READY)           ## the documentation site, in build/site; warnings are errors, links are checked
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env --doctree-dir build/doctrees docs build/site
	$(BIN)/python docs/check_links.py build/site

wheel:                        ## the two wheels, in dist; installed and tried in an environment of its own, first the runtime alone
	rm -rf build/lib build/bdist.* build/wheel runtime/build dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist ./runtime .
	build/wheel/bin/python -m pip install --quiet dist/sixjars_runtime-*.whl
	cd "$$(mktemp -d)" && "$(CURDIR)/build/wheel/bin/python" -c 'import sixjars_runtime; sixjars_runtime.load'
	build/wheel/bin/python -m pip install --quiet '$(TORCH)' dist/sixjars-*.whl
	cd "$$(mktemp -d)" && PATH="$(CURDIR)/build/wheel/bin:$$PATH" && sixjars --help > help && sixjars tasks > tasks && \
	sixjars train transliteration/sample_attention data.sample.size=64 learning.steps=2 --out run

scale:                        ## prediction on Ray with a worker killed, in an environment of its own; rows in SIXJARS_SCALE_ROWS
	test -x build/scale/bin/python || $(PYTHON) -m venv build/scale
	build/scale/bin/python -c 'import torch' 2>/dev/null || build/scale/bin/python -m pip install --quiet '$(TORCH)'
	build/scale/bin/python -m pip install --quiet --editable ./runtime --editable '.[dev,scale]'
	build/scale/bin/python -m pytest -q -m slow tests/unit/test_bulk_ray.py

bench: $(READY)               ## ours against its peers on this CPU: training, decoding, cold start; options in BENCH='…'
	$(BIN)/python -m benchmarks.speed --device cpu $(BENCH)

# With PEERS=FOLDER nothing is installed: $(PYTHON) has what the package needs, and the folder has the peers.
bench-gpu: $(if $(PEERS),,$(READY)) ## the same on a CUDA device
	$(if $(PEERS),$(PYTHON),$(BIN)/python) -m benchmarks.speed --device cuda $(if $(PEERS),--peers $(PEERS)) $(BENCH)

# BEFORE is a revision, or with a folder `build/before` that has its src and runtime, nothing.
gpu-check: $(if $(LIBS),,$(READY)) ## on a CUDA device: all backends, captured steps, this version beside BEFORE; under ten minutes
	$(if $(BEFORE),rm -rf build/before && mkdir -p build/before && git archive $(BEFORE) src runtime/src | tar -x -C build/before)
	$(if $(LIBS),PYTHONPATH=$(LIBS) $(PYTHON),$(BIN)/python) -m benchmarks.speed.gpu_check build/before/src

# With no torch in the environment, the CPU build is installed first: the newest one brings gigabytes of CUDA.
$(READY): pyproject.toml runtime/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable ./runtime --editable '.[dev]'
	touch $@

$(SITE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable ./runtime --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info runtime/build runtime/src/*.egg-info
