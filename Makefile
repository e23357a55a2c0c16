# The same commands at home and in CI. Needs python3 (3.11 or newer, with venv), git and make; `uv` is used where found.
# Writes only inside this folder and the system's temporary folder.

PYTHON ?= python3
JOBS ?= 3
export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
export UV_CACHE_DIR ?= $(CURDIR)/.cache/uv
export PYTHON

BIN := .venv/bin
SOURCES := $(wildcard wfcelery workers tests bench)
INSTALL_FROM := pyproject.toml constraints.txt .ci/install

.DEFAULT_GOAL := help
.PHONY: help demo test screenshots check format bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done

demo: .venv/.core ## run the sample flows to their end
	@.ci/demo

test: .venv/.everything ## run every test, on real servers that the suite starts itself (PYTEST_ARGS=... to choose)
	@.ci/browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(PYTEST_ARGS)

screenshots: .venv/.everything ## take the pictures of the documentation anew
	@.ci/browser
	mkdir -p docs/images
	WFCELERY_TEST_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q tests/browser/test_pages.py

check: .venv/.everything ## formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict $(SOURCES)
	$(BIN)/lint-imports

format: .venv/.everything ## rewrite the files as `make check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.everything ## measure; one JSON line per figure
	$(BIN)/python -m bench $(BENCH_ARGS)

clean: ## remove what make built
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.core: $(INSTALL_FROM)
	@.ci/install '.[embedded,web]'
	@touch $@

.venv/.everything: $(INSTALL_FROM)
	@.ci/install '.[test,dev]'
	@touch .venv/.core $@
