# make demo: set up and run the main job. make test: set up and run every check.
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint setup system lock clean

demo: setup
	$(BIN)/h2t2 demo

test: setup system lint
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

setup: $(VENV)/.done

$(VENV)/.done: host_tools/requirements.lock pyproject.toml host_tools/setup.sh
	sh host_tools/setup.sh $(VENV)
	touch $@

system: setup
	sh host_tools/system.sh $(BIN)/h2t2

# the lock file: every version and hash, for Python 3.10 to 3.13; no address of any index
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-header --no-annotate -o host_tools/requirements.lock

clean:
	rm -rf $(VENV) results dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
