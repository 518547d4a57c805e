# Every target works alone on a fresh machine with Python >= 3.11, make and a C compiler:
# it creates .venv, or brings it up to date after pyproject.toml has changed, and then does its work.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?= -n auto --dist worksteal
SECONDS ?= 3
ROUNDS ?= 7
RUNTIME_WORKERS ?= 2
ORACLE_ARGS ?= --quick
TABLE ?= stalls

.PHONY: help demo live test ci-long test-firmware test-runtime test-browser lint format docs abi language wasm pictures gallery try-gallery bench hand bench-against oracle campaign reliability wheel everything clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22

demo: $(VENV)/.installed-run  ## compile and run the shopping cart, write its pictures to ./out
	$(BIN)/fsm-dyn demo --out out

test: $(VENV)/.installed-test  ## run the tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

ci-long: $(VENV)/.installed-long  ## run the long tests
	bash .ci/get_compiler avr
	bash .ci/get_compiler wasm || true  # its test is skipped then
	bash .ci/get_compiler arm || true
	bash .ci/get_compiler fuzz || true
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m long
	PYTHONPATH=. $(BIN)/python -m tests.exports.random_starts --sanitize --jobs 2

test-firmware: $(VENV)/.installed-test  ## run the firmware on a simulated board; its compiler and simulator are got if missing
	bash .ci/get_compiler avr
	$(BIN)/python -m pytest -m "firmware and not long" -n 0 tests/firmware

test-runtime: $(VENV)/.installed-test  ## build the runtime with warnings as errors, sanitizers and for a small processor, and try it
	bash .ci/get_compiler arm || true  # its test is skipped then
	$(BIN)/python -m pytest -m "runtime and not long" -n $(RUNTIME_WORKERS) --dist worksteal tests/runtime

# On a machine that is full a page may be late: what fails is run once more.
test-browser: $(VENV)/.installed-browser  ## run the tests of the page in a browser, which is got if there is none
	bash .ci/get_browser $(BIN)/python
	$(BIN)/python -m pytest -m browser -n 0 tests/browser || $(BIN)/python -m pytest -m browser -n 0 --last-failed tests/browser

lint: $(VENV)/.installed-dev  ## check style, types and repeated code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pylint --score=no fsm_dyn mechanisms tests

format: $(VENV)/.installed-dev  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## build the documentation into ./site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

abi: $(VENV)/.installed-run  ## write abi.py, layouts.py and abi.js again from the headers of the runtime
	$(BIN)/python -m fsm_dyn.runtime.abi_build

language: $(VENV)/.installed-run  ## write the methods of Model and the tables of docs/language.md again from the keys
	$(BIN)/python -m fsm_dyn.language.describe_keys docs/language.md

wasm: $(VENV)/.installed-run  ## build the shipped runtime for pages again, as WebAssembly, by clang 14
	bash .ci/get_compiler wasm
	$(BIN)/python -m fsm_dyn.exports.html

pictures: $(VENV)/.installed-browser  ## draw the pictures of the documentation and count the gallery's modes again
	$(BIN)/fsm-dyn run shopping_cart --figure --motion --out docs/pictures
	$(BIN)/fsm-dyn graph shopping_cart --out docs/pictures/shopping_cart_modes.svg
	$(BIN)/fsm-dyn run latch_door --plot score --out docs/pictures
	$(BIN)/fsm-dyn run gripper --until 2.5 --motion --out docs/pictures
	$(BIN)/python mechanisms/piano_action.py docs/pictures
	$(BIN)/python mechanisms/escapements.py docs/pictures
	$(BIN)/python mechanisms/seat_belt_reel.py docs/pictures
	$(BIN)/python mechanisms/latches_and_switches.py docs/pictures
	$(BIN)/python mechanisms/will_it_latch.py docs/pictures
	$(BIN)/fsm-dyn study docs/how_to/chute.yaml --sample sobol --runs 256 --seed 1 --until 2.5 --out docs/pictures
	rm docs/pictures/chute_sample.csv docs/pictures/chute_yield.png docs/pictures/chute_shares.svg
	$(BIN)/fsm-dyn study piano_action --scenario forte --vary let_off=0.5..3mm:6 --until 0.3 --out docs/pictures
	rm docs/pictures/piano_action_study.csv docs/pictures/piano_action_shares.svg
	$(BIN)/python mechanisms/mode_tables.py docs/gallery
	$(BIN)/python mechanisms/feasibility.py docs
	$(BIN)/python mechanisms/wall_chatter.py docs/pictures
	$(BIN)/python mechanisms/unit_in_fmpy.py docs/pictures
	$(BIN)/fsm-dyn passivity virtual_wall --damping 1 --friction 0.1 --resolution 2e-5 --delay 1e-4 \
	  --figure docs/pictures/z_width.png
	$(BIN)/fsm-dyn run geneva_drive --until 1 --motion --out docs/pictures
	$(BIN)/fsm-dyn run cart_on_ramp --until 1.9 --motion --out docs/pictures
	$(BIN)/python mechanisms/piano_animation.py docs/pictures/piano_action.gif
	$(BIN)/python mechanisms/cookbook.py docs/pictures/cookbook
	$(BIN)/python mechanisms/page_pictures.py docs/pictures
	$(BIN)/python mechanisms/gallery.py docs

gallery: $(VENV)/.installed-run  ## draw every shipped model and its mode graph again, and the page of all models
	$(BIN)/python mechanisms/gallery.py docs

try-gallery: $(VENV)/.installed-run  ## draw every shipped model into an empty folder: each comes to its picture
	$(BIN)/python mechanisms/gallery.py "$$(mktemp -d)"

live: $(VENV)/.installed-live  ## hold four models at 1 kHz for SECONDS each and tell how punctual that was
	for model in shopping_cart latch bouncing_ball virtual_wall; do \
	  $(BIN)/fsm-dyn live $$model --duration $(SECONDS) || exit 1; echo; done

bench: $(VENV)/.installed-bench  ## run the benchmarks, on a quiet machine, and write docs/benchmarks.md
	bash .ci/get_browser $(BIN)/python
	$(BIN)/python -m pytest -m benchmark -n 0 --page docs/benchmarks.md \
	  --ignore-glob='*/test_*_in_the_hand.py' --ignore-glob='*/test_false_trips.py' tests/benchmarks

hand: $(VENV)/.installed-bench  ## measure again, on a quiet machine: TABLE=stalls (5 minutes), faults or ticks_while_pinning
	REPEATS=1 $(BIN)/python -m pytest -m benchmark -n 0 -s tests/benchmarks/test_$(TABLE)*.py

bench-against: $(VENV)/.installed-bench  ## compare step, transition and start with revision REV; MODELS, ROUNDS
	@test -n "$(REV)" || { echo "error: say with what to compare: make bench-against REV=main" >&2; exit 2; }
	PYTHONPATH=. $(BIN)/python tests/benchmarks/against/compare.py $(REV) --rounds $(ROUNDS) --models $(MODELS)

oracle: $(VENV)/.installed-test  ## say what users see differently since revision BASE; ORACLE_ARGS= of all models
	@test -n "$(BASE)" || { echo "error: say with what to compare: make oracle BASE=main" >&2; exit 2; }
	$(BIN)/python -m tests.oracle.against $(BASE) $(ORACLE_ARGS)

campaign: $(VENV)/.installed-test  ## try to make runs fail, for hours; goes on where it was left; SECONDS, CASES, ONLY, SEEDS
	PYTHONPATH=. $(BIN)/python -m tests.campaigns.run --only "$(ONLY)" $(if $(CASES),--cases $(CASES)) \
	  $(if $(SEEDS),--seeds "$(SEEDS)") $(if $(filter-out file,$(origin SECONDS)),--seconds $(SECONDS))

reliability: $(VENV)/.installed-test  ## write what the campaigns found to docs/reliability.md
	PYTHONPATH=. $(BIN)/python -m tests.campaigns.report

wheel: $(VENV)/.installed-dev  ## build the wheel and try it without the checkout
	bash .ci/try_wheel

# Every installation builds the runtime, so one for all targets of the main job saves four builds.
everything:  ## install the needs of demo, live, test, test-browser, lint and docs at once
	@$(MAKE) --no-print-directory "EXTRA_test=[dev,docs,browser,live,test]" $(VENV)/.installed-test
	@touch $(foreach target,run live browser docs dev,$(VENV)/.installed-$(target))

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist out site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The extras each target needs; `run` is the package alone.
EXTRA_run :=
EXTRA_live := [live]
EXTRA_test := [test]
EXTRA_long := [long]
EXTRA_browser := [browser]
EXTRA_bench := [bench]
EXTRA_docs := [docs]
EXTRA_dev := [dev]

RUNTIME := $(wildcard fsm_dyn/runtime/*.c fsm_dyn/runtime/*.h) fsm_dyn/runtime/CMakeLists.txt

$(VENV)/.installed-%: pyproject.toml $(RUNTIME) .ci/make_venv
	@echo "installing the package and what it needs into $(VENV): a minute or two, the first time only"
	@PYTHON="$(PYTHON)" bash .ci/make_venv $(VENV)
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --editable ".$(EXTRA_$*)" | \
	  while read -r line; do case "$$line" in \
	    Collecting*|Building*started|Installing*started|"Installing collected"*) echo "  $${line%%[(:;<>=~]*}";; esac; done
	@touch $@
