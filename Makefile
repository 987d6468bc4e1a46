# make lab    open the notebooks in JupyterLab (installs what is missing)
#             (with PyTorch, for chapters 18, 19, 22, 24 and 25: make lab TORCH=yes)
# make test   install what is missing, then run every chapter and the tests
#             that take no long time, in about 5 minutes on 2 cores
# make test-rest  the other tests: in JupyterLab, of the book, of installing
# make test-all  both
# make book   the notebooks as pages of a web book, and for a browser tab
#             (with Python for the browser beside it: make book PYODIDE=folder)
# make book-serve   the book on this machine, where its chapters run in a tab
# make measure   how often what the chapters expect comes so on this machine
# make benchmark  how fast it is beside what else one would take
# make compare BASE=commit   what became slower since then
# make release, make grade, make handback, make quiz, make cards
#             for teachers: teaching/README.md
# make fold   hide the answers in the notebooks again, before a commit
# make lock   the lock files anew, after a change of pyproject.toml
#
# The Python to install for, such as 3.13 or a path. If none is named: 3.11
# where MXNet runs, else one from 3.11 to 3.14.
PYTHON ?=
VENV = .venv
# More for JupyterLab, such as: make lab ARGS='--no-browser --port=9000'
ARGS ?=
# TORCH=yes adds PyTorch.
TORCH ?=
# JupyterLab will not serve root (in a container, say) unless told to.
ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)
# Settings for this JupyterLab alone: no news, no questions.
SETTINGS = $(CURDIR)/setup/jupyter
# Windows has its programs elsewhere.
PROGRAMS = $(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Modules of another Python, such as `module load` names on a cluster, are not
# for ours. (For those that you mean: make lab PYTHONPATH=folder)
ifeq ($(filter-out lab book,$(MAKECMDGOALS)),)
unexport PYTHONHOME
ifneq ($(origin PYTHONPATH),command line)
unexport PYTHONPATH
endif
endif

PYODIDE =
.PHONY: lab book book-serve fold test test-rest test-all measure release grade \
  handback quiz cards benchmark compare lock moved home
lab: home $(VENV)/installed $(if $(TORCH),$(VENV)/torch)
	cd notebooks && JUPYTER_CONFIG_PATH="$(SETTINGS)$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
	  ../$(VENV)/$(PROGRAMS)/jupyter lab --ip=127.0.0.1 $(ROOT) $(ARGS)

# JupyterLab writes there, too, unless told where else.
home:
	@( mkdir -p "$${HOME:-.}" && new=$$(mktemp "$${HOME:-.}/.d2lps.XXXXXX") && \
	  trap 'rm "$$new"' EXIT && echo is there room? >"$$new" ) \
	  2>/dev/null || \
	  test "$$JUPYTER_DATA_DIR$$JUPYTER_RUNTIME_DIR" || { echo 'd2lps:' \
	  "JupyterLab writes into your home folder, and cannot. Is it full, or" \
	  "not yours? HOME=$$HOME"; exit 1; }

# Tests of processes wait half of their time: three keep two cores at work.
# All that a run writes is in a folder of its own, and goes with it, but for
# bytecode: without it, each kernel and each worker would compile our modules.
PYTEST = new=$$(mktemp -d "$${TMPDIR:-/tmp}/d2lps.XXXXXX") && \
  trap 'rm -rf "$$new"' EXIT && trap 'exit 130' INT TERM HUP && \
  chmod 755 "$$new" && \
  TMPDIR="$$new" PYTHONDONTWRITEBYTECODE= \
    $(VENV)/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
test: $(VENV)/installed-tests
	@test -d $(VENV)/lib/python3.11/site-packages/mxnet || { echo 'd2lps: the' \
	  'tests need MXNet, and so Python 3.11: see docs/install.md'; exit 1; }
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@$(PYTEST) -m 'not full' $(ARGS)

# What `make test` leaves out.
test-rest: $(VENV)/installed-tests $(VENV)/torch $(VENV)/tab/installed
	@$(PYTEST) -m full $(ARGS)

test-all: test
	@$(MAKE) --no-print-directory test-rest

# Such as: make measure TIMES=3 ARGS='01 04'
TIMES = 10
measure: TO = measured.csv
measure: $(VENV)/installed-tests
	$(VENV)/bin/python benchmarks/measure.py --times $(TIMES) --to "$(TO)" $(ARGS)

# For teachers, see teaching/README.md: the students' notebooks, and grading.
release: TO = release
release: $(VENV)/installed-tests
	$(VENV)/bin/python -m teaching.release "$(TO)" \
	  $(if $(filter no,$(SOLUTIONS)),--no-solutions)

grade: TO = graded
grade: WALLS = bwrap
grade: $(VENV)/installed-tests $(if $(TORCH),$(VENV)/torch)
	@test -n "$(FROM)" || { echo 'd2lps: make grade FROM=folder, with a' \
	  'folder for each student in it'; exit 1; }
	$(VENV)/bin/python -m teaching.grade "$(FROM)" --to "$(TO)" \
	  --walls "$(WALLS)" $(if $(EXERCISES),--exercises $(EXERCISES)) \
	  $(if $(LATE),--late "$(LATE)") $(if $(LMS),--lms "$(LMS)")

# Pages to where nbgrader hands them back from, or into an archive.
handback: FROM = graded
handback: $(VENV)/installed-tests
	@test -n "$(TO)" || { echo 'd2lps: make handback FROM=graded TO=folder,' \
	  'a course of nbgrader, or TO=feedback.zip'; exit 1; }
	$(VENV)/bin/python -m teaching.handback "$(FROM)" "$(TO)"

# The guesses of the chapters for Moodle and on paper, and cards for a class.
quiz: TO = quiz
cards: TO = cards
quiz cards: $(VENV)/installed-tests
	$(VENV)/bin/python -m teaching.$@ "$(TO)"

# What became slower since a commit, such as: make compare BASE=8ba0860
ASV = $(VENV)/bin/asv --config benchmarks/asv.conf.json
compare: $(VENV)/installed-tests
	@$(ASV) machine --yes >/dev/null
	$(ASV) continuous --show-stderr --no-only-changed $(BASE) HEAD $(ARGS)

benchmark: $(VENV)/installed
	$(VENV)/bin/python benchmarks/chapter1.py
	-$(VENV)/bin/python benchmarks/pytorch.py

# Programs in .venv know their folder: if that was moved, all is made anew; and
# if their Python is gone.
moved := $(shell test "$$(cat $(VENV)/folder 2>/dev/null)" -ef . && \
  $(VENV)/$(PROGRAMS)/python -Ic '' 2>/dev/null || echo moved)
INSTALL = PYTHON="$(PYTHON)" VENV="$(VENV)" sh setup/install.sh
$(VENV)/installed: requirements.lock pyproject.toml $(moved)
	@$(INSTALL) installed

# In one go, which is sooner done than one after the other. With bytecode for
# all: a grading's processes could not write it.
$(VENV)/installed-tests: requirements-dev.lock pyproject.toml $(moved)
	@UV_COMPILE_BYTECODE=1 $(INSTALL) installed-tests

# JupyterLite is of another JupyterLab than ours. What uv has downloaded before
# needs no network.
TAB = $(VENV)/bin/uv pip sync --quiet --python $(VENV)/tab --require-hashes \
  --only-binary :all: requirements-tab.lock
$(VENV)/tab/installed: requirements-tab.lock $(VENV)/installed-tests
	@rm -rf $(VENV)/tab
	@$(VENV)/bin/uv venv --quiet --python $(VENV)/bin/python $(VENV)/tab
	@$(TAB) --offline 2>/dev/null || $(TAB)
	@touch $@

# PyTorch beside what is there, for TORCH=yes and for test-rest.
$(VENV)/torch: requirements-torch.lock $(VENV)/installed
	@UV_COMPILE_BYTECODE=1 $(INSTALL) torch

# The book: the committed notebooks as pages, without a kernel. A page that is
# broken is an error, now and, as nothing is kept then, the next time, too:
# what is kept has another name until all is done, should a build be killed,
# and one of its own, should two be under way.
BUILD = docs/_build
book: PAGES = $(BUILD)/html
book: KEPT = $(BUILD)/kept
book: $(VENV)/installed-tests $(VENV)/tab/installed $(BUILD)/begun
	@new="$(KEPT).$$$$"; trap 'rm -rf "$$new"' EXIT; \
	  test ! -d "$(KEPT)" || mv "$(KEPT)" "$$new"; \
	  $(VENV)/bin/python -m sphinx -q -W --keep-going -c docs/book -d "$$new" \
	    . "$(PAGES)" && rm -rf "$(KEPT)" && mv "$$new" "$(KEPT)"
	@$(VENV)/bin/python setup/tab/build.py "$(PAGES)" $(VENV)/tab "$(PYODIDE)"
	@echo 'The book: $(PAGES)/index.html'

# Chapters run in a tab only from a server; this one is for this machine alone.
book-serve: PORT = 8000
book-serve: PAGES = $(BUILD)/html
book-serve:
	@test -d "$(PAGES)/lite" || { echo 'd2lps: first make book'; exit 1; }
	@echo 'The book: http://127.0.0.1:$(PORT)/  (Ctrl-C ends it)'
	@$(VENV)/$(PROGRAMS)/python -m http.server --bind 127.0.0.1 \
	  --directory "$(PAGES)" $(PORT) >/dev/null 2>&1 || test $$? = 130 || { \
	  echo 'd2lps: no server on port $(PORT): is it taken? Try PORT=8001'; \
	  exit 1; }

# Running a cell opens its result; see setup/fold.py.
fold: $(VENV)/installed
	$(VENV)/bin/python setup/fold.py

# What one of these changes, it changes on pages that Sphinx thinks finished.
$(BUILD)/begun: $(wildcard docs/book/*.* docs/book/*/*.* d2lps/*.py \
  d2lps/*/*.py d2lps/*/*/*.py) setup/fold.py README.md requirements-dev.lock
	@mkdir -p $(BUILD) && rm -rf $(BUILD)/kept* && touch $@

# After a change of pyproject.toml.
COMPILE = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 \
  --generate-hashes --no-header --no-emit-index-url --no-emit-find-links
# What `make lab` installs.
LAB = --extra notebooks --extra mxnet --group build
lock: $(VENV)/installed-tests
	$(COMPILE) $(LAB) pyproject.toml -o requirements.lock
	$(COMPILE) $(LAB) --extra check --group dev -c requirements.lock \
	  pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group pyproject.toml:torch -c requirements-dev.lock \
	  -o requirements-torch.lock
	$(COMPILE) --group pyproject.toml:tab -o requirements-tab.lock
