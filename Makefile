# One verb per job; CI runs the same verbs. `make run` and `make test` set up everything they need.
.PHONY: run test test-all test-viewer prove soak lint style types clients e2e fuzz-private bench bench-hook bench-compare eval eval-sessions month clean help
SHELL := /bin/bash
# Tests start hundreds of workers: without bytecode each compiles the package, 2.5 s of a core instead of 0.7.
unexport PYTHONDONTWRITEBYTECODE

# The first interpreter that is new enough; PYTHON=... chooses another.
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$each >/dev/null 2>&1 && $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$each && break; done)
BIN := .venv/bin
# Twice as many as cores: most tests wait for processes that they started. One that has no tests left takes some from the
# busiest, so that all end together.
PYTEST = $(BIN)/python -m pytest -n $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN)))) --dist worksteal

help:  ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: .venv/ready  ## fill a scratch memory with a made-up project, and print what an agent is given there
	@$(BIN)/foreword demo

test: .venv/ready-to-test style  ## everything that must be true of a commit, in a few minutes (ARGS="-k forget -x")
	@$(BIN)/python tests/viewer/install.py
	@$(PYTEST) -m "not long and not prove" $(ARGS)

test-all: .venv/ready-to-test style  ## that, what takes long, and the real agents
	@$(BIN)/python tests/viewer/install.py
	@failed=0; $(BIN)/python tests/e2e/run.py || failed=1; $(PYTEST) -m "not prove" --hypothesis-profile=fuzz $(ARGS) || failed=1; exit $$failed

prove: .venv/ready-to-test style  ## every promise of docs/guarantees.md, without a network, in under an hour (ARGS="-m prove")
	@$(BIN)/python tests/prove/offline.py $(PYTEST) --hypothesis-profile=fuzz $(ARGS)

test-viewer: .venv/ready-to-test  ## the viewer alone, in a real browser; pictures of its pages in artefacts/viewer
	@$(BIN)/python tests/viewer/install.py
	@$(PYTEST) tests/viewer $(ARGS)

soak: .venv/python  ## `make test` N times in fresh clones, while both cores have other work (N=4)
	@tests/soak.sh $(or $(N),4) "$(ARGS)"

e2e: .venv/ready-to-test  ## real agents from npm against a fake model: install, remember, recall, uninstall (ARGS=codex ...)
	@$(BIN)/python tests/e2e/run.py $(ARGS)

clients: .venv/python  ## install the pinned agents that `make e2e` runs, once, outside of this folder
	@$(BIN)/python tests/clients/install.py $(ARGS)

lint: style types  ## style, types and layers

style: .venv/ready-to-test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/python tests/clients/biome.py

types: .venv/ready-to-test
	@$(BIN)/mypy && $(BIN)/lint-imports

fuzz-private: .venv/ready-to-test  ## 50,000 ways to write <private>, none of which may leave a byte
	@FOREWORD_FORMS=50000 $(BIN)/python -m pytest -q tests/unit/test_private.py

eval: .venv/ready-to-test  ## how well it finds, keeps silent and spends tokens, on ../shared/bench (ARGS="DIR --compare FILE")
	@$(BIN)/python -m bench.eval $(ARGS)

eval-sessions: .venv/ready-to-test  ## what agents are told in real sessions, and whether it helped (ARGS="--blocks 20 --worst")
	@$(BIN)/python -m bench.eval.replay $(ARGS)

bench: .venv/ready-to-test  ## every figure a user would feel, beside its baseline (ARGS="--full --json FILE", ARGS="store --sizes 1000")
	@$(BIN)/python bench/table.py $(ARGS)

bench-compare: .venv/ready-to-test  ## the same for another revision beside this one (REV=main~20)
	@$(BIN)/python bench/table.py --compare $(REV) $(ARGS)

bench-hook: .venv/ready-to-test  ## what a hook costs, as multiples of a bare interpreter
	@$(BIN)/python bench/hook.py $(ARGS)

month: .venv/ready-to-test  ## a simulated month with one project: its figures (ARGS=--page shows day 30)
	@$(BIN)/python -m tests.month $(ARGS)

clean:  ## what the verbs above have made
	rm -rf .venv artefacts .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/python:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; make run PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "error: venv is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@ln -sf bin/python .venv/python

.venv/ready: .venv/python pyproject.toml constraints.txt
	@echo "installing into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/ready-to-test: .venv/ready
	@echo "installing what the tests need ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
