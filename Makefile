# One virtual environment for every target; each stamp file says which extras it holds.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint format bench bench-scale paper docs clean

help:
	@echo "make demo         set up, select 16 of 64 pixels of the digits, draw the result"
	@echo "make test         set up and run every check: lint, types, contracts, docstrings, doctests, tests"
	@echo "make paper        set up and reproduce the paper, resumable (hours; ARGS=--quick: minutes)"
	@echo "make docs         set up, run the gallery and build the documentation into docs/_build/html"
	@echo "make bench        set up and measure speed and memory against other libraries (minutes)"
	@echo "make bench-scale  set up and measure large data, resumable (an hour; ARGS=--quick: minutes)"
	@echo "make format       rewrite the sources in the house style"
	@echo "make clean        remove the virtual environment and everything generated"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-plot
	$(BIN)/python examples/demo_digits.py

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m numpydoc.hooks.validate_docstrings $$(git ls-files 'src/*.py')

# Small matrices gain nothing from threads, and on a busy machine they wait for each other.
test: export OPENBLAS_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --cov --cov-report=term

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# Each measurement limits its threads itself. ARGS goes to the command.
bench-scale: $(VENV)/.installed-bench,cli,dask
	$(BIN)/python -m benchmarks.scale --out scale-output/results.jsonl --plot scale-output/scale.png $(ARGS)

# Needs the datasets: in the folder BSUFS_DATA, or downloaded. ARGS goes to the command.
paper: $(VENV)/.installed-experiments
	$(BIN)/bsufs paper --out paper-output $(ARGS)

# Warnings are errors; then every link within the site is followed, and nothing may need a network.
docs: export OPENBLAS_NUM_THREADS = 1
docs: export OMP_NUM_THREADS = 1
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -E -W --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo-output paper-output scale-output docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
