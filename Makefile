# Two commands matter: `make serve` and `make test`. Both need only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
HOST ?= 127.0.0.1
PORT ?= 8000

# Modules and simulations are compiled once, so that neither a start nor the first question waits for it: where
# PYTHONDONTWRITEBYTECODE is set, every start would compile 550 modules.
COMPILE := $(BIN)/python -m compileall -q service && $(BIN)/python -c "from service.engine.time.ready import make_ready; make_ready()"

.DEFAULT_GOAL := help
.PHONY: help serve warm install test lint types imports check accuracy fit-ledger fit-serving bench overload decision image-rehearsal soak seen promises way figures examples openapi lint-openapi sbom audit lock clean

help: ## Show the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-10s %s\n", $$1, $$2}'

# A stamp per environment: installed again only when its lock file changes.
$(VENV)/.runtime: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(COMPILE)
	touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(COMPILE)
	touch $@ $(VENV)/.runtime

install: $(VENV)/.runtime ## Create the virtual environment with locked dependencies

serve: $(VENV)/.runtime ## Migrate, seed and serve on 127.0.0.1:8000 (SQLite)
	$(BIN)/sizer migrate
	$(BIN)/sizer seed
	$(BIN)/sizer serve --host $(HOST) --port $(PORT)

test: check ## Lint, type check, import rules, then every test, on all cores
	$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 15

check: $(VENV)/.dev ## Everything but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

warm: $(VENV)/.runtime ## Build the step times of every model on common GPUs ahead of any question (a quarter of an hour)
	$(BIN)/sizer warm

openapi: $(VENV)/.dev ## Write the contract to openapi/openapi.json
	$(BIN)/sizer export-openapi openapi/openapi.json

examples: $(VENV)/.dev ## Write service/EXAMPLES.md from what the tests replay
	$(BIN)/python -m tests.workloads.page service/EXAMPLES.md

openapi/node_modules/.package-lock.json: openapi/package.json
	npm --prefix openapi install --no-audit --no-fund --no-package-lock --ignore-scripts
	touch $@

lint-openapi: openapi/node_modules/.package-lock.json ## Lint the contract with spectral and redocly (needs Node.js and npm)
	cd openapi && node_modules/.bin/spectral lint openapi.json --ruleset .spectral.yaml --fail-severity error
	cd openapi && REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true node_modules/.bin/redocly lint openapi.json

accuracy: $(VENV)/.dev ## Compare the engine with measured data and write service/ACCURACY.md: make accuracy DATA=DIR
	$(BIN)/sizer accuracy --data $(DATA) --page service/ACCURACY.md

fit-ledger: $(VENV)/.dev ## Derive the ledger's constants from logged start-ups: make fit-ledger DATA=DIR
	$(BIN)/sizer fit-ledger --data $(DATA)

fit-serving: $(VENV)/.dev ## Derive the factors of step times from published runs: make fit-serving DATA=DIR (a few minutes)
	$(BIN)/sizer fit-serving --data $(DATA) --write service/performance/data/calibration.yaml

bench: $(VENV)/.dev ## Benchmarks, reported and never asserted; over HTTP beside stored figures, or an earlier release: make bench [BESIDE=DIR] [KEEP=1]
	$(BIN)/pytest benchmarks --benchmark-only
	$(BIN)/python -m benchmarks.overload --shell
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.latency $(if $(BESIDE),--beside $(BESIDE)) $(if $(KEEP),--keep)

overload: $(VENV)/.dev ## Goodput beyond capacity, and the shell beside a bare route
	$(BIN)/python -m benchmarks.overload

decision: $(VENV)/.dev ## Every stated deployment against what is chosen, GPUs that grow in number, every command (a quarter of an hour)
	$(BIN)/python -m benchmarks.decision

image-rehearsal: $(VENV)/.dev ## The Dockerfile's own lines without a container: locked install, compiled loop, a start that is not root's (2 minutes)
	$(BIN)/python -m benchmarks.image

soak: $(VENV)/.dev ## Kills under load, then ten minutes at half of capacity, then the tests by random examples with five times as many
	$(BIN)/python -m benchmarks.soak
	TEST_TIMES=5 $(BIN)/pytest tests/engine/time/test_loop.py tests/engine/answers/test_bounds.py tests/engine/answers/test_laws.py tests/engine/answers/test_laws_in_time.py

seen: $(VENV)/.dev ## What failed on a9aece5, asked of this checkout or another: make seen [CHECKOUT=DIR] (a quarter of an hour)
	SEEN_CHECKOUT=$(CHECKOUT) $(BIN)/pytest benchmarks/seen

promises: $(VENV)/.dev ## Write service/PROMISES.md: each promise, its test, the last figures
	$(BIN)/python -m benchmarks.promises

way: $(VENV)/.dev ## The calls of one question through the engine, room by room; its modules go into service/README.md
	$(BIN)/python -m benchmarks.way --guide service/README.md

figures: $(VENV)/.dev ## Lines of files and functions, beside those before
	$(BIN)/python -m benchmarks.figures

sbom: $(VENV)/.dev ## What the image is made of, as CycloneDX: var/sbom.cdx.json
	mkdir -p var
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible --of JSON -o var/sbom.cdx.json requirements.lock

audit: $(VENV)/.dev ## Known vulnerabilities of what is locked; says so loudly where nobody can be asked
	$(BIN)/python -m benchmarks.audit

lock: ## Resolve the lock files again (needs uv)
	uv pip compile --quiet --generate-hashes --no-annotate --no-header --no-strip-extras --universal --python-version 3.11 --group dev pyproject.toml -o requirements-dev.lock
	uv pip compile --quiet --generate-hashes --no-annotate --no-header --no-strip-extras --universal --python-version 3.11 -c requirements-dev.lock --extra otel --group build pyproject.toml -o requirements.lock

clean: ## Remove the virtual environment and local data
	rm -rf $(VENV) var *.egg-info
