# make demo: set up what the demo needs and run it. make test: set up everything and run every check. make docs: the pages.
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
DOCS := .venv-docs
ASSISTANT := .venv-assistant
SERVERS := .venv-servers
LOCKS := host_tools/locks
SETUP := pyproject.toml host_tools/setup.sh

# The tests start hundreds of interpreters: where bytecode may not be kept, each of them would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test units test-train fuzz lint setup system docs lock pages walkthrough pictures clean

# a full environment serves the demo as well; without one, only what the demo needs is installed
demo: $(if $(wildcard $(VENV)/.done),$(VENV)/.done,$(VENV)/.demo)
	$(BIN)/h2t2 demo

# side by side what waits for the network and what computes
test: setup lint
	$(MAKE) -j2 system $(TRAIN)/.done $(DOCS)/.done $(ASSISTANT)/.done $(SERVERS)/.done
	$(MAKE) -j2 units test-train
	$(MAKE) -j2 fuzz docs

units: setup
	$(BIN)/pytest -n auto --dist worksteal --quick

# Keras sources and the training recipes: TensorFlow lives in an environment of its own
test-train: $(TRAIN)/.done
	$(TRAIN)/bin/pytest tests/train

# under coverage, each target so many seconds, where atheris installs: it has wheels for few systems
FUZZ_S := 8
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

system: setup
	sh host_tools/system.sh $(BIN)/h2t2

# the lock files: every version and hash, for Python 3.10 to 3.14; no address of any index. Needs uv (pip install uv)
LOCKED := --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate
COMPILE := uv pip compile pyproject.toml $(LOCKED)
lock:
	echo uv | uv pip compile - $(LOCKED) -o host_tools/locks/uv.txt
	$(COMPILE) --extra demo --group build -o host_tools/locks/demo.txt
	$(COMPILE) --extra all --group dev -o host_tools/locks/dev.txt
	$(COMPILE) --extra train --extra convert --extra boards --group test -o host_tools/locks/train.txt
	$(COMPILE) --group build --group docs -o host_tools/locks/docs.txt
	$(COMPILE) --group build --group assistant -o host_tools/locks/assistant.txt
	$(COMPILE) --group build --group servers -o host_tools/locks/servers.txt

# what is written by a command and committed: package.json of every board, the command reference, the operators
pages: setup
	$(BIN)/python -m h2t2_tools.boards.packages
	$(BIN)/python -m h2t2_tools.cli.reference > docs/commands.md
	$(BIN)/python -m h2t2_tools.model.operators_page > docs/operators.md

# the page of five commands, with what they say: needs a broker and MicroPython's unix port
walkthrough: setup
	$(BIN)/python -m h2t2_tools.proof.walkthrough > five-commands.md
	mv five-commands.md docs

# the dashboard's pictures in the docs, which its test takes
pictures: setup
	H2T2_IMAGES=$(CURDIR)/docs/images $(BIN)/pytest -q tests/proof/test_fleet_demo.py

clean:
	rm -rf $(VENV) $(TRAIN) $(DOCS) $(ASSISTANT) $(SERVERS) results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
