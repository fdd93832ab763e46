# One door for work. `make` alone lists what there is; CI calls only these.
# Needs: python3.11 or newer with its venv module, make, git. Everything else goes into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# make PYTHON=python3.12 takes another interpreter, make EXTRAS=dev,bench other extras; both are remembered.
PYTHON ?=
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ifeq ($(MAKECMDGOALS),demo)
# The demo needs no tools: it takes the environment as it is, and makes one without them where there is none.
EXTRAS := $(or $(EXTRAS),$(shell sed -n 2p $(STAMP) 2>/dev/null),none)
endif
ifeq ($(MAKECMDGOALS),room)
# One room needs no servers, containers or contracts: the environment that is there, else the small one.
EXTRAS := $(or $(EXTRAS),$(filter-out none,$(shell sed -n 2p $(STAMP) 2>/dev/null)),test)
endif
# The sources and tests of ROOM: a package of batos, or one that stands beside it.
ROOM_PLACES = $(wildcard src/batos/$(ROOM) src/$(ROOM) tests/$(ROOM))
# Every script of bench/ but what they are made of.
BENCHES = $(filter-out bench/report.py bench/null_%.py bench/wire_%.py bench/%_side.py,$(sort $(wildcard bench/*.py)))

# Tests run side by side, in one process more than there are cores, because a third of their time they wait for other
# processes; a few named ones (make test ARGS=tests/image) run in one, which starts sooner.
# `worksteal` gives each worker its share in one piece, which keeps the tests of a module together, and lets a worker
# that has done take the last of another's. tests/times.json puts long tests first, so that these last are short.
WORKERS ?= $(if $(ARGS),0,$(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1))))
PARALLEL = -n $(WORKERS) --maxprocesses 8 --dist worksteal --durations 10 --durations-min 3

export PYTHONUNBUFFERED := 1
# Hundreds of processes are started by tests and benches: without compiled modules each would compile ours again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: crash help demo test room check lint format docs bench bench-full wheel fuzz flaky times live real clean venv

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(STAMP) ## a real mission about a text, on the emulator (LIVE=1: on your Ollama; REAL=1: with a very small real model; MOTION=1: how the mind changes itself; AGENCY=1: an API that it never saw)
	@scripts/demo.sh

test: $(STAMP) ## the whole test suite, side by side (ARGS="tests/image -k undo": those, in one process; WORKERS=1: all, in order)
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

room: $(STAMP) ## ruff, mypy and the tests of one room, in an environment without servers (ROOM=gate ARGS="-k dates")
	@test -n "$(ROOM)" && test -d "tests/$(ROOM)" || { echo "make room ROOM=NAME, one of: $(patsubst tests/%/,%,$(wildcard tests/[a-z]*/))" >&2; exit 2; }
	$(BIN)/ruff check $(ROOM_PLACES)
	$(BIN)/ruff format --check $(ROOM_PLACES)
	$(BIN)/mypy --follow-imports silent $(ROOM_PLACES)
	$(BIN)/python -m pytest -q tests/$(ROOM) $(ARGS)

check: lint ## ruff, mypy --strict, import-linter, the architecture test
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_packaging.py

lint: $(STAMP) ## check without the tests, which `make test` has too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code into the house's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## write the generated parts of docs/ anew
	@$(BIN)/python tests/test_docs.py

crash: $(STAMP) ## five kills under load, accounted for from outside (KILLS=500: a long run; STORAGE=postgres or zeo; ARGS="--broken ack-first")
	@cd bench && $(abspath $(BIN))/python crash.py --kills $(or $(KILLS),5) --storage $(or $(STORAGE),file) --strict $(ARGS)

wheel: $(STAMP) ## build the wheel, install it in an empty environment, run a mission from it
	@PYTHON=$(BIN)/python scripts/wheel_check.sh

bench: $(STAMP) ## every benchmark, quickly (shape, not speed)
	@for script in $(BENCHES); do echo "== $$script --quick"; $(BIN)/python $$script --quick; done

bench-full: $(STAMP) ## every benchmark, measured (make EXTRAS=dev,bench bench-full: with its peer)
	@for script in $(BENCHES); do echo "== $$script"; $(BIN)/python $$script; done

fuzz: $(STAMP) ## the property tests with 5,000 examples each
	@BATOS_HYPOTHESIS=fuzz $(BIN)/python -m pytest --timeout 1800 $(PARALLEL) $(ARGS)

flaky: $(STAMP) ## chosen tests again and again beside busy loops (N=20 BUSY=4 ARGS="tests/image -k lease")
	@$(BIN)/python scripts/flaky.py --runs $(or $(N),20) --busy $(or $(BUSY),4) $(PARALLEL) $(ARGS)

times: $(STAMP) ## the whole test suite, and from its times tests/times.json anew, which puts long tests first
	@$(BIN)/python -m pytest $(PARALLEL) --write-times

live: $(STAMP) ## genesis, missions and adapters on a real Ollama (BATOS_LIVE_OLLAMA, else OLLAMA_HOST; BATOS_LIVE_MODEL, else its smallest)
	@BATOS_LIVE_OLLAMA=$${BATOS_LIVE_OLLAMA:-$${OLLAMA_HOST:-http://127.0.0.1:11434}} $(BIN)/python -m pytest -m live $(ARGS)

real: $(STAMP) ## llama.cpp, a very small real model and the tests that need them (MODEL=smollm2|qwen-0.5b|qwen-1.5b: that model, no tests)
	@BIN=$(BIN) scripts/real.sh install $(MODEL)
	@$(if $(MODEL),,BIN=$(BIN) scripts/real.sh test $(ARGS))

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) build dist .batos/demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

venv: $(STAMP) ## the environment alone

.PHONY: other-environment
other-environment:

# The stamp holds what was installed: other versions, extras or another interpreter install again, nothing else does.
$(STAMP): pyproject.toml constraints.txt scripts/venv.sh $(shell scripts/venv.sh stale "$(PYTHON)" "$(EXTRAS)" "$(STAMP)")
	@scripts/venv.sh make "$(PYTHON)" "$(EXTRAS)" "$(STAMP)"
