# A menu over bin/. Each target says what it does: `make help`.
.DEFAULT_GOAL := help
.PHONY: help setup fmt lint check test test-integration faults cover bench bench-short demo docs ci
BIN := $(or $(VENV),.venv)/bin

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: ## the virtual environment with everything that checks and tests need
	@bin/setup --dev

fmt: setup ## lay out all Python files and sort imports
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

lint: ## style and likely mistakes, in Python and Lua
	@bin/check format lint lua

check: ## everything that can be checked without running: style, types, layers, migrations, Lua
	@bin/check

test: ## the whole suite
	@bin/test

test-integration: ## only what runs real processes: workers, commands, browser
	@bin/test -m "acceptance or browser or faults"

faults: setup ## kill workers and servers for a long time and check that nothing is lost
	@$(BIN)/python -m tests.faults

cover: setup ## the suite with branch coverage, child processes included
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: setup ## benchmarks beside a bare probe of the server
	@$(BIN)/python -m benchmarks engine

bench-short: setup ## the same in a minute, for a first impression
	@$(BIN)/python -m benchmarks engine --short

demo: ## the product with sample jobs (bin/dev)
	@bin/dev

docs: setup ## write docs/reference/ again from the code
	@$(BIN)/python docs/generate.py

ci: ## what continuous integration does, on a Debian machine
	@.ci/run
