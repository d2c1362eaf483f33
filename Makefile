# Needs GNU make and Python 3.11 or newer; everything else goes into .venv, which belongs to this file.
PYTHON ?= python3
INSTALL_FLAGS ?= --quiet
VENV := .venv

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
CONSTRAINTS := .ci/constraints.txt
STAMP := $(VENV)/.installed
INCOMPLETE := $(VENV)/.incomplete

# Nothing of the caller's Python setup may leak into the environment made here.
unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX

.DEFAULT_GOAL := help
.PHONY: help demo dist docs versions test fuzz format clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-14s%s\n", $$1, $$2 }'
	@echo 'PYTHON=... chooses the interpreter that makes $(VENV); INSTALL_FLAGS= shows what pip does.'

demo: $(STAMP) ## run the first example, a forecast with sktime
	OMP_WAIT_POLICY=PASSIVE $(PY) examples/first_forecast_sktime.py

test: $(STAMP) ## ruff, mypy and the whole test suite, stopping at the first that fails
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	OMP_WAIT_POLICY=PASSIVE $(PY) -m pytest -n auto --maxprocesses 4 --dist worksteal

fuzz: $(STAMP) ## try N random cases that follow from SEED on all estimators (make fuzz SEED=7 N=20000)
	OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 $(PY) -W ignore tests/fuzz/fuzz_run.py --seed $(or $(SEED),0) --n $(or $(N),1000)

dist: ## build the packages, check them, and try the wheel in three fresh environments
	PYTHON=$(PYTHON) .ci/packages

versions: ## try the lowest and the newest versions of what the package needs (gigabytes: PyTorch twice)
	PYTHON=$(PYTHON) .ci/versions lowest
	PYTHON=$(PYTHON) .ci/versions newest

docs: $(STAMP) ## build the site into build/docs; its pages are executed, and warnings are errors
	$(PY) -m sphinx --fail-on-warning --keep-going docs build/docs

format: $(STAMP) ## apply ruff's fixes and formatting
	$(PY) -m ruff check --fix --exit-zero .
	$(PY) -m ruff format .

clean: ## remove .venv, build outputs and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .coverage
	@find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# A checkout that was moved or copied, or whose interpreter has gone, is installed again.
ifneq ($(shell [ -x $(PY) ] && [ "$$(cat $(STAMP) 2>/dev/null)" = "$$(pwd -P)" ] && echo installed),installed)
.PHONY: $(STAMP)
endif

# One environment for every target: what the tests need on top of the demo is small next to PyTorch.
# .incomplete stands in it while it is being made or changed. Found by a later run it means that this one
# was interrupted, so that the environment is made anew: pip takes a half-installed package for a whole one.
# PyTorch comes first and by itself, which fixes its build before anything else is resolved; the build backend
# comes next, so that the package is built with the pinned one and not in an environment of its own.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@rm -f $(STAMP)
	@if [ -e $(INCOMPLETE) ] || ! $(PY) -m pip --version >/dev/null 2>&1; then \
	    $(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: set PYTHON" if sys.version_info < (3, 11) else 0)' && \
	    echo '==> making $(VENV)' && \
	    rm -rf $(VENV) && mkdir -p $(VENV) && touch $(INCOMPLETE) && $(PYTHON) -m venv $(VENV); \
	fi
	@touch $(INCOMPLETE)
	@echo '==> installing PyTorch into $(VENV) (the large part)'
	@$(PIP) install $(INSTALL_FLAGS) -c $(CONSTRAINTS) torch
	@echo '==> installing taylorformer_forecast and what its tests need'
	@$(PIP) install $(INSTALL_FLAGS) -c $(CONSTRAINTS) hatchling editables
	@$(PIP) install $(INSTALL_FLAGS) -c $(CONSTRAINTS) --no-build-isolation -e '.[test]'
	@pwd -P > $(INCOMPLETE) && mv $(INCOMPLETE) $(STAMP)
