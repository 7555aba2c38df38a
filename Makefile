# Everything from a fresh clone: `make demo` runs the main job, `make test` the whole suite. Both make .venv first if it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check docs clean
.DEFAULT_GOAL := demo

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python: found %d.%d, wanted 3.11 or newer (set PYTHON=...)" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cluster,decoder,dev,docs]'
	touch $@

demo: .venv/installed
	$(BIN)/gumiho demo -o runs/demo

# What needs no torch is first run where torch cannot be imported.
test: check
	$(BIN)/python tests/without_torch.py tests/theory tests/simulator
	$(BIN)/python -m pytest -q -n 2 tests/decoder tests/project

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, into docs/_build; notebooks are shown, not executed.
docs: .venv/installed
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf .venv runs docs/_build docs/generated docs/notebooks
