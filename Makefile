# make demo: set up and run the main job. make test: set up and run every check.
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train

.PHONY: demo test test-train lint setup system lock packages clean

demo: setup
	$(BIN)/h2t2 demo

test: setup system lint
	$(BIN)/pytest
	$(MAKE) test-train

# Keras sources and the training recipes: TensorFlow lives in an environment of its own
test-train: $(TRAIN)/.done
	$(TRAIN)/bin/pytest tests/train

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

setup: $(VENV)/.done

$(VENV)/.done: host_tools/requirements.lock pyproject.toml host_tools/setup.sh
	sh host_tools/setup.sh $(VENV) host_tools/requirements.lock
	touch $@

$(TRAIN)/.done: host_tools/requirements-train.lock pyproject.toml host_tools/setup.sh
	sh host_tools/setup.sh $(TRAIN) host_tools/requirements-train.lock
	touch $@

system: setup
	sh host_tools/system.sh $(BIN)/h2t2

# the lock files: every version and hash, for Python 3.10 to 3.13; no address of any index
COMPILE := uv pip compile pyproject.toml --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
    --no-emit-find-links --no-header --no-annotate
lock:
	$(COMPILE) --group dev -o host_tools/requirements.lock
	$(COMPILE) --extra train --group test -o host_tools/requirements-train.lock

# package.json of every board, from firmware/boards/modules.txt
packages: setup
	$(BIN)/python -m h2t2_tools.boards.packages

clean:
	rm -rf $(VENV) $(TRAIN) results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
