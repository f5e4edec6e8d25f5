# One virtual environment for every target; each stamp file says which group of tools it holds.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := app,cli,dask,excel,h5ad,persist,plot

.PHONY: help demo test coverage test-oldest test-wheel build lint format bench bench-scale paper docs clean

help:
	@echo "make demo         set up, select 16 of 64 pixels of the digits, draw the result"
	@echo "make test         set up and run every check: lint, types, contracts, docstrings, doctests, tests"
	@echo "make coverage     run the tests and count the branches that they reach"
	@echo "make test-oldest  run the tests with the lowest versions that pyproject.toml promises"
	@echo "make build        make wheel and source archive in dist, and check what is in them"
	@echo "make test-wheel   run the tests of the source archive against the wheel, in a new environment"
	@echo "make paper        set up and reproduce the paper, resumable (hours; ARGS=--quick: minutes)"
	@echo "make docs         set up, run the gallery and build the documentation into docs/_build/html"
	@echo "make bench        set up and measure speed and memory against other libraries (minutes)"
	@echo "make bench-scale  set up and measure large data, resumable (an hour; ARGS=--quick: minutes)"
	@echo "make format       rewrite the sources in the house style"
	@echo "make clean        remove the virtual environment and everything generated"

# Groups of tools need pip 25.1 or newer.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed-%: pyproject.toml paper/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]" --editable ./paper --group $*
	@touch $@

# The paper is a distribution of its own, beside the library.
$(VENV)/.installed-paper: pyproject.toml paper/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --editable ./paper
	@touch $@

$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/python examples/demo_digits.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files | xargs $(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_docstrings.py

# Small matrices gain nothing from threads, and on a busy machine they wait for each other.
test coverage: export OPENBLAS_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest -n auto --maxprocesses 4

# Apart, since counting branches makes the tests half as slow again.
coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --cov --cov-report=term

# The oldest Python has wheels of the oldest versions. That old packages use what newer ones
# deprecate, or clear up noisily after an error, is no fault of the library.
OLDEST_PYTHON ?= python3.11
OLDEST := .venv-oldest
$(OLDEST)/.installed: pyproject.toml tools/lowest_versions.py
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python tools/lowest_versions.py > $(OLDEST)/lowest.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/lowest.txt \
		--editable ".[$(EXTRAS)]" --editable ./paper --group test-oldest
	@touch $@

test-oldest: export OPENBLAS_NUM_THREADS = 1
# Without it the checks of scikit-learn 1.6 cannot be imported beside array-api-compat.
test-oldest: export SCIPY_ARRAY_API = 1
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n auto --maxprocesses 4 --ignore tests/solvers/test_w_steps.py \
		-W default::DeprecationWarning -W default::pytest.PytestUnraisableExceptionWarning $(ARGS)

build: $(VENV)/.installed-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tools/check_distribution.py dist

# Without src beside the tests, what they import is what was installed.
WHEEL := .venv-wheel
test-wheel: export OPENBLAS_NUM_THREADS = 1
test-wheel: build
	$(PYTHON) -m venv --clear $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --upgrade pip
	$(WHEEL)/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$(EXTRAS)]" ./paper --group test
	mkdir $(WHEEL)/source
	tar -xzf dist/*.tar.gz -C $(WHEEL)/source --strip-components 1
	rm -r $(WHEEL)/source/src $(WHEEL)/source/paper/src
	cd $(WHEEL)/source && ../bin/python -m pytest tests -n auto --maxprocesses 4 $(ARGS)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# Each measurement limits its threads itself. ARGS goes to the command.
bench-scale: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.scale --out scale-output/results.jsonl --plot scale-output/scale.png $(ARGS)

# Needs the datasets: in the folder BSUFS_DATA, or downloaded. ARGS goes to the command.
paper: $(VENV)/.installed-paper
	$(BIN)/bsufs-paper reproduce --out paper-output $(ARGS)

# Warnings are errors, and so would be pages of names that are gone; then every link within the site
# is followed, and nothing may need a network.
docs: export OPENBLAS_NUM_THREADS = 1
docs: export OMP_NUM_THREADS = 1
docs: $(VENV)/.installed-docs
	rm -rf docs/api/generated docs/_build/html
	$(BIN)/python -m sphinx -E -W --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) $(WHEEL) dist demo-output paper-output scale-output docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
