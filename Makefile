# PYTHON makes the virtual environment in VENV, and makes it anew when pyproject.toml or the version of PYTHON changes.
PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
WHEEL := build/wheel
STAMP := $(VENV)/.made-by-$(shell $(PYTHON) -c "import platform; print(platform.python_version())")

.PHONY: demo test test-wheel sweep sweep-packages fuzz torture lint bench docs test-transports matrix checkpoints clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/pytest -q

# The same tests against the built wheel, installed with all extras into a virtual environment of its own.
test-wheel: $(STAMP)
	rm -rf $(WHEEL)
	$(BIN)/python -m hatchling build --target wheel --directory $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1"
	$(WHEEL)/venv/bin/python -m pip install -qq --group dev $(WHEEL)/keepcause-*.whl
	$(WHEEL)/venv/bin/python -c "import keepcause; assert 'site-packages' in keepcause.__file__, keepcause.__file__"
	$(WHEEL)/venv/bin/pytest -q

# Takes long: repairs copies of the source trees in TREES with every rule, and judges what came out.
sweep: $(STAMP)
	$(BIN)/python tests/codemod/sweep.py $(TREES)

# Takes hours over many: checks the standard library and TREES with and without the screens, and sweeps them.
sweep-packages: $(STAMP)
	PYTHONPATH=tests/codemod $(BIN)/python tests/fuzz/packages.py $(TREES)

# Takes as long as one likes: each of TARGETS for so many MINUTES, from where the last run ended.
fuzz: $(STAMP)
	PYTHONPATH=tests/codemod $(BIN)/python -W ignore tests/fuzz/fuzz.py $(TARGETS) --minutes $(or $(MINUTES),1)

# What takes too long for a test: a huge file, and repairs that are killed.
torture: $(STAMP)
	PYTHONPATH=tests/samples $(BIN)/python tests/fuzz/torture.py

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Times beside ruff, flake8, bugbear and LibCST over the source tree TREE; docs/performance.md has the results.
bench: $(STAMP)
	$(BIN)/python benchmarks/lint.py $(TREE) $(OPTIONS)

# The pages that are made from the code: rules and the picture of the output.
docs: $(STAMP)
	$(BIN)/python docs/write_pages.py

# Every transport, and torch's checkpoint loader, with the real libraries, in a virtual environment of their own.
test-transports:
	$(PYTHON) tests/transports/run.py
	$(PYTHON) tests/checkpoints/start.py

# The same, and the table in the documentation anew.
matrix:
	$(PYTHON) tests/transports/run.py --write docs/transports.md

# What torch and keepcause say of checkpoints that do not load: the texts in the documentation anew.
checkpoints:
	$(PYTHON) tests/checkpoints/start.py --script tests/checkpoints/show.py

clean:
	rm -rf $(VENV) tests/transports/.venv build dist .keepcause_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -r {} +

$(STAMP): pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -qq --editable . --group dev
	touch $@
