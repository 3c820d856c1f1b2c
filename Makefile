# make run: start the app.  make test: run every test.  make test-fast: those without browser and training.
# Each installs what it needs, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV := .venv
BIN := $(VENV)/bin
# A stamp is newer than the list it stands for as long as that list is installed.
STAMPS := $(VENV)/.stamps
# One worker more than processors, since tests in a browser wait half of their time; each needs 3 GB of memory.
WORKERS := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? n + 1 : 4)))
PIP := $(BIN)/python -m pip install --disable-pip-version-check --requirement

.PHONY: run base test test-fast flaky lint format benchmark docs wheel lock clean

# The base-size encoder without the hub: 400 MB.
base: $(STAMPS)/venv
	$(PIP) requirements-base.txt

run: $(STAMPS)/app
	$(BIN)/python app.py

test: $(STAMPS)/dev $(STAMPS)/browser
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --durations=10

test-fast: $(STAMPS)/dev
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --hypothesis-profile=fast --durations=10 \
		--ignore=tests/e2e -m "not browser and not training and not slow"

# Each browser test RUNS times beside a busy process, and a table of those that failed.
flaky: $(STAMPS)/dev $(STAMPS)/browser
	$(BIN)/python -m tests.flaky --runs $(or $(RUNS),20)

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(STAMPS)/dev
	$(BIN)/python -m benchmarks

# The site of the documents, into build/site; its notebooks are executed. DOCS_EXECUTE=false leaves that out.
docs: $(STAMPS)/docs
	$(BIN)/python -m mkdocs build --strict

# The package as one file, with one trained model, into dist/.
wheel: $(STAMPS)/dev
	$(BIN)/python -m hatchling build -t wheel -d dist

# Every package that requirements.txt brings with it, with its version.
lock: $(STAMPS)/dev
	$(BIN)/uv pip compile requirements.txt --python-version 3.11 --no-emit-index-url --no-annotate --no-header \
		--output-file requirements.lock

clean:
	rm -rf $(VENV) .cache .pytest_cache .ruff_cache .hypothesis

# The clone is on the path of its environment: what the page hands out as Python runs in any folder.
$(STAMPS)/venv:
	$(PYTHON) -m venv $(VENV)
	echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/condviz.pth"
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/app: requirements.txt $(STAMPS)/venv
	$(PIP) requirements.txt
	touch $@

$(STAMPS)/dev: requirements-dev.txt $(STAMPS)/app
	$(PIP) requirements-dev.txt
	touch $@

$(STAMPS)/docs: requirements-docs.txt $(STAMPS)/dev
	$(PIP) requirements-docs.txt
	touch $@

# The tests drive a real browser: one that is there, else Debian's (as root), else playwright's own.
$(STAMPS)/browser: $(STAMPS)/dev
	if command -v chromium chromium-browser google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update && apt-get install --yes --no-install-recommends chromium; \
	else $(BIN)/python -m playwright install chromium; fi
	touch $@
