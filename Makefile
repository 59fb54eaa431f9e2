# make demo: set up what the demo needs and run it. make test: the quick suite, some minutes. make test-all: the rest, which needs
# compilers, TensorFlow, a browser, other Pythons, time. make docs: the pages.
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
DOCS := .venv-docs
ASSISTANT := .venv-assistant
SERVERS := .venv-servers
ORACLE := .venv-oracle
MUTANTS := .venv-mutants
TORCH := .venv-torch
LOCKS := host_tools/locks
SETUP := pyproject.toml host_tools/setup.sh

# where no temporary file can be put, one folder here takes them
ifneq ($(shell test -w "$${TMPDIR:-/tmp}" && echo yes),yes)
export TMPDIR := $(CURDIR)/.tmp
$(shell mkdir -p $(TMPDIR))
endif

# The tests start hundreds of interpreters: where bytecode may not be kept, each of them would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# Three processes for two cores run the tests: a third of their time they wait for a network, a board or a clock.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))

.PHONY: demo test quick test-all environments version release native c units whole mutations mutants mutants-sample evidence fast measured coverage pythons assistant oracle test-train test-oracle test-torch pytorch fuzz lint setup system \
	system-whole docs lock pages walkthrough case presets pictures recording times clean

# a full environment serves the demo as well; without one, only what the demo needs is installed
demo: $(if $(wildcard $(VENV)/.done),$(VENV)/.done,$(VENV)/.demo)
	$(BIN)/h2t2 demo

# side by side what waits for the network and what computes
test: setup
	$(MAKE) -j3 system lint compiled
	$(MAKE) units

# every part, also after one that fails, and a table of what came of each. make PART runs one alone
test-all: setup
	$(BIN)/python host_tools/test_all.py $(PARTS)

# what the other parts of test-all need: programs, emulated boards, environments
environments: setup
	$(MAKE) -k -j2 system-whole $(TRAIN)/.done $(DOCS)/.done $(SERVERS)/.done oracle; status=$$?; $(MAKE) assistant && exit $$status

# after system-whole, which installs the compiler that some of its packages need; without root nobody may install one
assistant: setup
	$(MAKE) $(ASSISTANT)/.done || { [ "$$(id -u)" != 0 ] && \
		echo "h2t2 test-all: left out: Home Assistant's own parser; run: sudo apt-get install gcc python3-dev"; }

PYTEST := pytest -n auto --dist worksteal --quick
MINOR = $$($(BIN)/python -c 'import sys; print("3.%d" % sys.version_info[1])')
units: setup
	$(BIN)/$(PYTEST) -m "not whole" --junitxml=results/suites/quick-$(MINOR).xml

# What several tests need is compiled once, while the system's packages are fetched: the lab's adaptive policies, and the integer
# interpreter's kernels. Otherwise each test process would compile it. numba keeps it in ~/.cache/h2t2
compiled: setup
	for trace in breast_cancer ten_digits; do \
		$(BIN)/h2t2 replay $$trace --policy adaptive --bits 4 --runs 1 --beta 0.2 > /dev/null || exit 1; done
	$(BIN)/pytest -q tests/checks/test_ldl_check.py -k reference_kernels

# Every Python process of a measured suite records the branches that it runs, also the commands that tests start: coverage.py's .pth
# file reads COVERAGE_PROCESS_START. $(1): the folder of the records
COVERAGE := $(CURDIR)/results/coverage
define measured
	rm -rf $(COVERAGE)/$(1)
	mkdir -p $(COVERAGE)/$(1)
	COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FILE=$(COVERAGE)/$(1)/data $(BIN)/$(PYTEST)
endef

# the tests of less than a second for what has changed since a commit: make quick SINCE=main
SINCE := HEAD
quick: setup
	tests=$$($(BIN)/python host_tools/changed_tests.py $(SINCE)); [ -z "$$tests" ] && echo "h2t2 quick: nothing has changed that has tests" || \
		$(BIN)/pytest -q -n auto --dist worksteal -m "not slow and not whole" $$tests

# two processes for a core: these tests wait longer for boards, browsers and watchdogs
whole: export PYTEST_XDIST_AUTO_NUM_WORKERS = $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))
whole: setup
	$(BIN)/$(PYTEST) -m "whole and not evidence" --junitxml=results/suites/whole-$(MINOR).xml

# what proves figures: benchmarks, chaos, experiments, releases, what takes minutes of a core
evidence: setup
	$(BIN)/$(PYTEST) -m evidence --junitxml=results/suites/evidence-$(MINOR).xml

# all damaged .tflite files through whatever reads them
mutations: setup
	$(BIN)/pytest -n auto tests/checks/test_mutations.py --mutations 2000

# Changed lines of core, link, node and fleet: do the tests notice? docs/testing.md: the report. test-all: a sample of 40
mutants: $(MUTANTS)/.done
	$(MUTANTS)/bin/python host_tools/mutants --page

mutants-sample: $(MUTANTS)/.done
	if git rev-parse -q --verify HEAD > /dev/null 2>&1; then $(MUTANTS)/bin/python host_tools/mutants --count 40 --goal 70 --known; \
	else echo "h2t2 test-all: left out: the sample of mutants, which takes the last commit of a clone"; fi

# docs/testing.md: the last run of each suite
times: setup
	$(BIN)/python host_tools/suite_times.py

# the tests of less than a second; FAST: other ones, as a marker expression of pytest
FAST := not slow and not whole
fast: setup
	$(BIN)/$(PYTEST) -q -m "$(FAST)"

# Both suites with their branches recorded, which takes a third more of their computing: not part of `make test-all`
measured: setup
	$(call measured,whole) -m whole
	$(call measured,fast) -q -m "$(FAST)"

# The branches that `make measured` last ran. Fails below the limits, in per cent; pyproject.toml lists what is left out of the account
HOST := 90
RUNTIME := 95
RECORDS = $(wildcard $(COVERAGE)/whole $(COVERAGE)/fast)
coverage: setup
	@[ -n "$(RECORDS)" ] || { echo "h2t2 coverage: no suite has been measured here; run: make measured"; exit 1; }
	export COVERAGE_FILE=$(COVERAGE)/data; \
	$(BIN)/coverage combine -q --keep $(RECORDS) && \
	host=$(HOST) runtime=$(RUNTIME) && \
	{ $(BIN)/python -c 'import sys; from h2t2_tools.fleet import broker; sys.exit(not broker.mosquitto())' || { host=0 runtime=0; \
		echo "h2t2 coverage: left out: the limits, because the tests that need a broker were; run: sudo apt-get install mosquitto"; }; } && \
	$(BIN)/coverage report --skip-covered --sort=cover --include='host_tools/h2t2_tools/*,host_tools/h2t2_lab/*' --fail-under=$$host && \
	$(BIN)/coverage report --skip-covered --sort=cover --include='firmware/h2t2/*' --fail-under=$$runtime

# The other Pythons of this machine run the tests of less than a second: the newest all of them, the others those of
# the core and the models. make pythons OTHERS="not whole": those of the quick suite
OTHERS := not whole and not slow
pythons:
	sh host_tools/pythons.sh $(BIN)/python $(LOCKS)/dev.txt "$(OTHERS)"

# tflite-runtime 2.14, which has wheels for Python 3.10 and 3.11, beside the integer interpreter, byte for byte
oracle:
	if $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then $(MAKE) $(ORACLE)/.done; fi

test-oracle: oracle
	if [ -e $(ORACLE)/.done ]; then $(ORACLE)/bin/pytest -q tests/ldl tests/checks/test_ldl_check.py tests/node/test_memory.py \
		tests/model/test_inspect.py tests/model/test_convert.py; \
	else echo "h2t2 oracle: left out: tflite-runtime 2.14 has no wheel for $$($(BIN)/python --version)"; fi

# Keras sources and the training recipes: TensorFlow lives in an environment of its own
test-train: $(TRAIN)/.done
	$(TRAIN)/bin/pytest tests/train

# exported programs and both exporters of PyTorch, where it installs
test-torch: setup
	if $(MAKE) $(TORCH)/.done; then \
		$(TORCH)/bin/pytest -q tests/torch && \
		$(TORCH)/bin/python tests/material/pytorch/export.py && \
		$(BIN)/pytest -q tests/model/test_pytorch.py -k public; \
	else echo "h2t2 test-all: left out: PyTorch does not install here"; fi

# the tables of docs/from-pytorch.md; it trains the networks of tests/material/pytorch that are not there
pytorch: setup $(TORCH)/.done
	$(TORCH)/bin/python tests/material/pytorch/export.py
	$(BIN)/python tests/pytorch_page.py docs/from-pytorch.md

# under coverage, each target so many seconds, where atheris installs: it has wheels for few systems
FUZZ_S := 5
fuzz: setup
	sh host_tools/fuzz.sh $(BIN) $(FUZZ_S)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# strict: a dead link or a reference to nothing fails
docs: $(DOCS)/.done
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict -f .mkdocs.yml

setup: $(VENV)/.done

$(VENV)/.demo: $(LOCKS)/demo.txt $(SETUP)
	sh host_tools/setup.sh $(VENV) $<
	touch $@

$(VENV)/.done: $(LOCKS)/dev.txt $(SETUP)
	sh host_tools/setup.sh $(VENV) $<
	touch $@

$(TRAIN)/.done: $(LOCKS)/train.txt $(SETUP)
	sh host_tools/setup.sh $(TRAIN) $<
	touch $@

$(DOCS)/.done: $(LOCKS)/docs.txt $(SETUP)
	sh host_tools/setup.sh $(DOCS) $<
	touch $@

# Home Assistant's own parser, which tests hold our discovery messages against
$(ASSISTANT)/.done: $(LOCKS)/assistant.txt $(SETUP)
	sh host_tools/setup.sh $(ASSISTANT) $<
	touch $@

# servers of models, and other people's clients of them, which tests hold ours against
$(SERVERS)/.done: $(LOCKS)/servers.txt $(SETUP)
	sh host_tools/setup.sh $(SERVERS) $<
	touch $@

# PyTorch itself is in no lock: which build of it suits this machine, its index or PIP_FIND_LINKS says
$(TORCH)/.done: $(LOCKS)/torch.txt $(SETUP)
	sh host_tools/setup.sh $(TORCH) $<
	$(TORCH)/bin/python -m pip install -q torch==2.13.0
	touch $@

$(ORACLE)/.done: $(LOCKS)/oracle.txt $(SETUP)
	sh host_tools/setup.sh $(ORACLE) $<
	touch $@

$(MUTANTS)/.done: $(LOCKS)/mutants.txt $(SETUP)
	sh host_tools/setup.sh $(MUTANTS) $<
	touch $@

system: setup
	sh host_tools/system.sh $(BIN)/h2t2-lab quick

system-whole: setup
	sh host_tools/system.sh $(BIN)/h2t2-lab whole

# the lock files: every version and hash, for Python 3.10 to 3.14; no address of any index. Needs uv (pip install uv)
LOCKED := --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate
COMPILE := uv pip compile pyproject.toml $(LOCKED)
lock:
	printf 'pip\nuv\n' | uv pip compile - $(LOCKED) -o host_tools/locks/uv.txt
	$(COMPILE) --extra demo --group build -o host_tools/locks/demo.txt
	$(COMPILE) --extra all --group dev -o host_tools/locks/dev.txt
	$(COMPILE) --extra train --extra convert --extra boards --group test -o host_tools/locks/train.txt
	$(COMPILE) --group build --group docs --group recording -o host_tools/locks/docs.txt
	uv pip compile $(LOCKED) --no-config --group pyproject.toml:build --group pyproject.toml:assistant -o host_tools/locks/assistant.txt
	$(COMPILE) --group build --group mutants -o host_tools/locks/mutants.txt
	$(COMPILE) --extra convert --extra onnx --group test --group torch -o host_tools/locks/torch.txt
	$(COMPILE) --group build --group servers -o host_tools/locks/servers.txt
	$(COMPILE) --no-config --extra tflite --extra lab --extra convert --extra boards --group test -o host_tools/locks/oracle.txt

# what is written by a command and committed: package.json and the table of boards, the references of commands and of
# configuration, the commented h2t2.toml, the operators, the tables of energy
pages: setup
	$(BIN)/python -m h2t2_lab.pages.mip_packages
	$(BIN)/python -m h2t2_lab.pages.kinds_page
	$(BIN)/python -m h2t2_lab.pages.reference commands > docs/commands.md
	for group in use fleet models policies checks; do \
		$(BIN)/python -m h2t2_lab.pages.reference $$group > docs/commands-$$group.md || exit 1; done
	$(BIN)/python -m h2t2_lab.pages.reference h2t2-lab > docs/lab.md
	$(BIN)/python -m h2t2_lab.pages.reference configuration > docs/configuration.md
	$(BIN)/python -m h2t2_lab.pages.reference h2t2.toml > firmware/boards/h2t2.toml
	$(BIN)/python -m h2t2_lab.pages.entries
	$(BIN)/python -m h2t2_lab.pages.operators_page > docs/operators.md
	$(BIN)/python -m h2t2_lab.pages.energy_page

# the page of five commands, with what they say: needs a broker and MicroPython's unix port
walkthrough: setup
	$(BIN)/python -m h2t2_lab.case docs/five-commands.md

# the page of one case, with what its commands say: needs Mosquitto and MicroPython's unix port
case: setup
	$(BIN)/python -m h2t2_lab.case docs/case.md

# the measured parts of the pages of the gate's presets: needs Mosquitto
presets: setup
	$(BIN)/h2t2-lab bench presets --pages docs

# the dashboard's pictures in the docs, after fifteen minutes of the demo
pictures: setup
	PYTHONPATH=tests $(BIN)/python tests/dashboard_pictures.py docs/images

# the demo as an animated picture of a terminal
recording: setup $(DOCS)/.done
	sh host_tools/recording.sh $(BIN) $(DOCS)/bin docs/images/demo.svg

# the integers of the policies in C: for each compiler, board and policy, how many rounds are Python's
c: setup system-whole
	$(BIN)/pytest -q -s tests/boards/test_c_library.py -k "shared_vectors or continue_each_other or worker_answers"

native: setup
	$(BIN)/python -m h2t2_lab.boards.native_build

# the version of the next release, everywhere: the boards' packages, the add-on, kept formats, the changelog. make version VERSION=1.1.0
version: setup
	$(BIN)/python host_tools/release.py --set $(VERSION)
	$(MAKE) pages
	$(BIN)/python tests/compat/artefacts.py
	$(BIN)/python host_tools/release.py --cut

# dist/VERSION with everything that a release consists of: docs/releasing.md
release: setup $(DOCS)/.done
	$(BIN)/python host_tools/release.py $(DOCS)/bin/mkdocs

clean:
	rm -rf $(VENV) $(VENV)-3.* $(TRAIN) $(DOCS) $(ASSISTANT) $(SERVERS) $(ORACLE) $(MUTANTS) $(TORCH) .tmp results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
