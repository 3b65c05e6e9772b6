# make demo    crawl a miniature web on this machine; make demo URL=https://… CONTACT=you@… crawls a real site
# make test    everything but bench and long simulations     make check   the quick part: lint, types, rooms, manual
# make man     write man/ from the command line's own words  make sim SEED=7, make bench
# make crash KILLS=1000 kills crawls at random moments       make bench-frontier URLS=1M,10M
# make fuzz MINUTES=60 throws mutated answers at fetch
#
# Needs Python >= 3.11 and a package index. All that is installed goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
URL ?=
CONTACT ?=
SEED ?=
SEEDS ?= 200
JOBS ?= 2
KILLS ?= 100
MINUTES ?= 60
URLS ?= 1M

.PHONY: demo test check man check-man bench bench-frontier realsites sim crash fuzz clean
.DEFAULT_GOAL = test

# One stamp for each set of packages: a changed pyproject.toml installs again.
$(VENV)/.run: pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	@touch $@

# pywb pins other versions of our dependencies, so it gets a place of its own. Without it, its test skips.
.venv-pywb/.done:
	@test -x .venv-pywb/bin/pip || $(PYTHON) -m venv .venv-pywb
	@.venv-pywb/bin/python -m pip install --quiet --disable-pip-version-check 'pywb>=2.8' 'setuptools<81' \
	    || echo "make: pywb cannot be installed here: its test will skip"
	@touch $@

demo: $(VENV)/.run
	$(BIN)/python examples/demo.py $(if $(URL),'$(URL)' '$(CONTACT)')
	@echo "(crawltool is $(BIN)/crawltool here)"

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_rooms.py
	$(MAKE) --no-print-directory check-man

test: check .venv-pywb/.done
	$(BIN)/pytest -n $(JOBS) --dist loadfile

man: $(VENV)/.run
	$(BIN)/python -m crawltool.cli.manpages man

check-man: $(VENV)/.run
	$(BIN)/python -m crawltool.cli.manpages --check man

sim: $(VENV)/.test
	$(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

crash: $(VENV)/.test
	$(BIN)/python -m tests.crash --kills $(KILLS) $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz.responses --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

realsites: $(VENV)/.test
	$(BIN)/python -m tests.e2e.realsites $(if $(TRUTH),--truth '$(TRUTH)')

bench: $(VENV)/.bench
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.fetch
	$(BIN)/python -m tests.bench.fetch --kb 40 --tls
	$(BIN)/python -m tests.bench.fetch --kb 100 --in-flight 5000 --peers ''

bench-frontier: $(VENV)/.test
	$(BIN)/python -m tests.bench.frontier --urls $(URLS) --pin --progress

clean:
	rm -rf $(VENV) .venv-pywb demo.crawl .mypy_cache .ruff_cache .pytest_cache
