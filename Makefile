# make lab    open the notebooks in JupyterLab (installs what is missing)
# make test   install what is missing, then run every test and notebook
PYTHON ?= python3.11
VENV = .venv
# What conda would install, so that environment.yml cannot rot unnoticed.
PIP_SECTION = $(shell sed -n 's/^ *- \(-r .*\)$$/\1/p' environment.yml)
# JupyterLab will not serve root (in a container, say) unless told to.
ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: lab test browser benchmark lock
lab: $(VENV)/installed
	cd notebooks && ../$(VENV)/bin/jupyter lab --ip=127.0.0.1 $(ROOT) \
	  --LabApp.default_url=/lab/tree/index.ipynb

test: $(VENV)/installed
	$(VENV)/bin/python -m pytest

# The widgets in JupyterLab; needs Chromium (Debian: apt install chromium).
browser: $(VENV)/installed
	D2LPS_BROWSER=1 $(VENV)/bin/python -m pytest tests/browser

benchmark: $(VENV)/installed
	$(VENV)/bin/python tests/benchmarks/chapter1.py
	$(VENV)/bin/python tests/benchmarks/chapter2.py
	$(VENV)/bin/python tests/benchmarks/chapter4.py
	$(VENV)/bin/python tests/benchmarks/chapter5.py
	$(VENV)/bin/python tests/benchmarks/cycles.py

$(VENV)/installed: environment.yml requirements.lock pyproject.toml
	@case "$$(uname -s) $$($(PYTHON) -c 'import platform as p; print(p.python_version(), p.system(), p.machine())' 2>/dev/null)" in \
	  MINGW*|MSYS*|CYGWIN*|*Windows*) echo 'd2lps: there is no MXNet for Windows: install WSL 2 (wsl --install) and run "make lab" in its Linux terminal.'; exit 1;; \
	  *" 3.11."*" Darwin arm64") echo 'd2lps: there is no MXNet for Apple silicon: use an x86-64 Python, with CONDA_SUBDIR=osx-64 conda env create -f environment.yml'; exit 1;; \
	  *" 3.11."*) ;; \
	  *) echo 'd2lps: needs Python 3.11, and "$(PYTHON)" is not that: install it (conda create -n py311 python=3.11, or your system'"'"'s packages) or say where it is: make lab PYTHON=/path/to/python3.11'; exit 1;; \
	esac
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	$(VENV)/bin/pip install --disable-pip-version-check -q $(PIP_SECTION)
	$(VENV)/bin/pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	touch $@

# After a change of pyproject.toml (uv: https://docs.astral.sh/uv).
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-emit-find-links --extra test \
	  pyproject.toml -o requirements.lock
