# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

# Python for the environments. An empty value means the newest of 3.13, 3.12 and
# 3.11 that is on the path, under whatever name, or that pyenv has.
PYTHON ?=
export PYTHON

# What is added to the environment: any of jax, pretrained, ray, trackers and
# test, as in `make venv EXTRAS="ray trackers"`.
EXTRAS ?=

VENV := .venv
# The lock of the environment; requirements-cuda.txt is for NVIDIA's GPUs.
LOCK ?= requirements.txt
ADDITIONS = $(EXTRAS:%=requirements-%.txt)

SOURCES := tff_adaptive tasks experiments benchmarks tests tools docs/examples
# How many processes test at once, of about 3 GB each.
WORKERS ?= $(shell awk -v cores=$$(nproc) '/^MemAvailable/ { rooms = int($$2 / 3e6); \
  n = cores < rooms ? cores : rooms; print(n > 8 ? 8 : n < 1 ? 1 : n) }' /proc/meminfo)
# In the order of collection: the files that take long come first.
PYTEST = $(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help venv .venv-test demo test test-all test-data coverage check .venv-check format \
  docs docs-serve .venv-docs lock tables peers conformance-peers wheel release results clean

help: ## Lists the targets.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

venv: ## Makes .venv from requirements.txt and EXTRAS, if it is not up to date.
	@tools/make_venv.sh $(VENV) $(LOCK) $(ADDITIONS)
	@[ -z "$(filter $@,$(MAKECMDGOALS))" ] || echo "$(VENV) is up to date: run\
 $(VENV)/bin/python SCRIPT, or $(VENV)/bin/tff-adaptive --help."

.venv-test: EXTRAS += test
.venv-test: venv

demo: venv ## Trains with Delta-SGD on real data; writes runs/demo/.
	@$(VENV)/bin/python -m experiments.train \
	  --flagfile=experiments/presets/demo.flags

test: .venv-test ## Runs all tests except the slow ones.
	@$(PYTEST) -m "not slow" tests

test-all: .venv-test ## Runs all tests.
	@$(PYTEST) tests

test-data: .venv-test ## Runs the tests that need published data; see CONTRIBUTING.md.
	@$(PYTEST) -m published_data tests

# The tests to measure (MARK='not slow': the fast ones), and the settings.
MARK :=
RCFILE := setup.cfg
COVERAGE := .venv-coverage/bin/python -m coverage

coverage: .venv-test ## Runs all tests and says which branches they do not reach.
	@PYTHON=$(VENV)/bin/python \
	  tools/make_venv.sh .venv-coverage requirements-coverage.txt
	@for site in $$PWD/$(VENV)/lib/python3*/site-packages; do \
	  echo "import site; site.addsitedir('$$site')" \
	    > .venv-coverage/$${site#$$PWD/$(VENV)/}/environment.pth; done
	@ln -sf $$PWD/$(VENV)/bin/tff-adaptive .venv-coverage/bin
	@rm -f .coverage .coverage.*
	-@$(COVERAGE) run --rcfile=$(RCFILE) -m pytest -n $(WORKERS) --dist loadfile \
	  --no-loadscope-reorder -m "$(MARK)" tests
	@$(COVERAGE) combine --quiet --rcfile=$(RCFILE)
	@$(COVERAGE) report --rcfile=$(RCFILE)

check: .venv-check ## Checks format, style and types.
	@.venv-check/bin/pyink --check $(SOURCES) || { \
	  echo "The format is not pyink's: run make format." >&2; exit 1; }
	@.venv-check/bin/ruff check --quiet $(SOURCES)
	@.venv-check/bin/mypy $(SOURCES)

format: .venv-check ## Formats the sources and sorts their imports.
	@.venv-check/bin/ruff check --quiet --select I --fix $(SOURCES)
	@.venv-check/bin/pyink --quiet $(SOURCES)

.venv-check:
	@tools/make_venv.sh .venv-check requirements-check.txt

# The variable hides a notice about MkDocs 2. With --quiet, --strict would miss
# the warnings.
MKDOCS := NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs

docs: .venv-docs ## Builds site/, the documentation; any warning is an error.
	@$(MKDOCS) build --strict
	@echo 'The first page is site/index.html.'

docs-serve: .venv-docs ## Shows the documentation, as it is edited.
	@$(MKDOCS) serve

.venv-docs:
	@tools/make_venv.sh .venv-docs requirements-docs.txt

lock: ## Makes requirements*.txt from requirements*.in; needs the network.
	@tools/lock.sh

tables: venv ## Writes the tables of docs/ that follow from the code.
	@$(VENV)/bin/python -m tools.tables

peers: venv ## Measures other frameworks and ours; writes docs/benchmarks.md.
	@$(VENV)/bin/python -m benchmarks.peers --page=docs/benchmarks.md \
	  --json=docs/results/peers.jsonl

# pfl-research and FedJAX need 3.12 or older.
PEERS_PYTHON ?= $(VENV)/bin/python

conformance-peers: venv ## Runs methods of other frameworks; writes docs/conformance.md.
	@$(VENV)/bin/python -m benchmarks.peers.conformance --page=docs/conformance.md \
	  --python=$(PEERS_PYTHON)

wheel: venv ## Makes dist/tff_adaptive-*.whl.
	@rm -rf build
	@$(VENV)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation \
	  --disable-pip-version-check --wheel-dir dist .
	@for wheel in dist/*.whl; do echo "$$wheel, for Python 3.11 to 3.13:\
 docs/install.md says how to install it."; done

release: venv ## Makes and tries out dist/*.whl and *.tar.gz; publishes nothing.
	@tools/release.sh

results: venv ## Writes docs/results/ from the runs that are kept with it.
	@$(VENV)/bin/python -m tools.results unpack
	@$(VENV)/bin/python -m tools.results pages

clean: ## Removes what these commands made, except runs/.
	@rm -rf .venv .venv-* .coverage build dist \
	  site *.egg-info .pytest_cache .mypy_cache .ruff_cache
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} + \
	  2>/dev/null || true
