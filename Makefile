# make lab    open the notebooks in JupyterLab (installs what is missing)
# make lab-light  chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19 without MXNet, on any Python from 3.11
#             (with PyTorch, for chapters 18 and 19: make lab TORCH=yes)
# make test   install what is missing, then run every notebook and the tests
#             that matter most, in 5 to 11 minutes on 2 cores
# make test-all  all tests: also in JupyterLab, of the book, of installing, ...
# make measure   how often what the chapters expect comes so on this machine
PYTHON ?= python3.11
VENV = .venv
# More for JupyterLab, such as: make lab ARGS='--no-browser --port=9000'
ARGS ?=
# TORCH=yes adds PyTorch.
TORCH ?=
# What conda would install, so that environment.yml cannot rot unnoticed.
PIP_SECTION = $(shell sed -n 's/^ *- \(-r .*\)$$/\1/p' environment.yml)
# JupyterLab will not serve root (in a container, say) unless told to.
ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)
# Settings for this JupyterLab alone: no news, no questions.
SETTINGS = $(CURDIR)/setup/jupyter
# Modules of another Python, such as `module load` names on a cluster, are not
# for ours. (For those that you mean: make lab PYTHONPATH=folder)
ifeq ($(filter-out lab lab-light book,$(MAKECMDGOALS)),)
unexport PYTHONHOME
ifneq ($(origin PYTHONPATH),command line)
unexport PYTHONPATH
endif
endif

.PHONY: lab lab-light book test test-rest test-all measure release grade \
  handback benchmark lock moved home
lab: home $(VENV)/installed $(if $(TORCH),$(VENV)/torch)
	cd notebooks && JUPYTER_CONFIG_PATH="$(SETTINGS)$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
	  ../$(VENV)/bin/jupyter lab --ip=127.0.0.1 $(ROOT) $(ARGS)

# JupyterLab writes there, too, unless told where else.
home:
	@{ mkdir -p "$${HOME:-.}" && test -w "$${HOME:-.}"; } 2>/dev/null || \
	  test "$$JUPYTER_DATA_DIR$$JUPYTER_RUNTIME_DIR" || { echo 'd2lps:' \
	  "JupyterLab writes into your home folder, and cannot: HOME=$$HOME"; \
	  exit 1; }

# Without MXNet, wherever there is a Python from 3.11. (On Windows without make:
# python setup/install.py light, which says how to go on.)
LIGHT = .venv-light
PROGRAMS = $(if $(filter Windows_NT,$(OS)),Scripts,bin)
lab-light: home $(LIGHT)/installed $(if $(TORCH),$(LIGHT)/torch)
	cd notebooks && ../$(LIGHT)/$(PROGRAMS)/jupyter lab --ip=127.0.0.1 \
	  $(ROOT) $(ARGS)

# Tests of processes wait half of their time: three keep two cores at work.
# All that a run writes is in a folder of its own, and goes with it.
PYTEST = new=$$(mktemp -d "$${TMPDIR:-/tmp}/d2lps.XXXXXX") && \
  trap 'rm -rf "$$new"' EXIT && trap 'exit 130' INT TERM HUP && \
  chmod 755 "$$new" && \
  TMPDIR="$$new" $(VENV)/bin/python -m pytest -n 3 --dist loadfile \
    --no-loadscope-reorder
test: $(VENV)/installed-tests
	$(VENV)/bin/ruff check
	@$(PYTEST) -m 'not full' $(ARGS)

# What `make test` leaves out, and what has more cases than it tries there.
test-rest: $(VENV)/installed-tests $(VENV)/torch
	@$(PYTEST) -m 'full or hypothesis or cases' $(ARGS)

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
	$(VENV)/bin/python -m teaching.release "$(TO)"

grade: TO = graded
grade: WALLS = bwrap
grade: $(VENV)/installed-tests $(if $(TORCH),$(VENV)/torch)
	@test -n "$(FROM)" || { echo 'd2lps: make grade FROM=folder, with a' \
	  'folder for each student in it'; exit 1; }
	$(VENV)/bin/python -m teaching.grade "$(FROM)" --to "$(TO)" \
	  --walls "$(WALLS)" $(if $(EXERCISES),--exercises $(EXERCISES)) \
	  $(if $(AGAIN),--again $(AGAIN)) $(if $(DUE),--due "$(DUE)") \
	  $(if $(WHEN),--when "$(WHEN)") $(if $(LATE),--late "$(LATE)") \
	  $(if $(LMS),--lms "$(LMS)") $(if $(SCALE),--scale)

# Pages to where nbgrader hands them back from: its course.
handback: FROM = graded
handback: $(VENV)/installed-tests
	@test -n "$(TO)" || { echo 'd2lps: make handback FROM=graded TO=folder,' \
	  'a course of nbgrader'; exit 1; }
	$(VENV)/bin/python -m teaching.handback "$(FROM)" "$(TO)"

# What became slower since a commit, such as: make compare BASE=8ba0860
.PHONY: compare
ASV = $(VENV)/bin/asv --config benchmarks/asv.conf.json
compare: $(VENV)/installed-tests
	@$(ASV) machine --yes >/dev/null
	$(ASV) continuous --show-stderr --no-only-changed $(BASE) HEAD $(ARGS)

benchmark: $(VENV)/installed
	$(VENV)/bin/python benchmarks/chapter1.py
	$(VENV)/bin/python benchmarks/sums.py
	$(VENV)/bin/python benchmarks/travel.py
	$(VENV)/bin/python benchmarks/checkpoints.py
	-$(VENV)/bin/python benchmarks/pytorch.py

# Programs in .venv know their folder: if that was moved, all is made anew; and
# if their Python is gone, or is a later one, which looks elsewhere for pip.
moved = $(shell test "$$(cat $(1)/folder 2>/dev/null)" -ef . && \
  $(1)/$(PROGRAMS)/python -Ic 'import pip' 2>/dev/null || echo moved)
NEEDS = environment.yml requirements.lock pyproject.toml \
  $(call moved,$(VENV))
INSTALL = @PYTHON="$(PYTHON)" sh setup/install.sh
$(VENV)/installed: $(NEEDS)
	$(INSTALL) installed $(PIP_SECTION)

# In one go, which is sooner done than one after the other.
$(VENV)/installed-tests: $(NEEDS) requirements-test.lock
	$(INSTALL) installed-tests $(PIP_SECTION) -r requirements-test.lock

# The first Python from 3.11, or the one you name.
INSTALL_ON_ANY = @PYTHON="$(if $(filter file,$(origin PYTHON)),,$(PYTHON))" \
  sh setup/install.sh
$(LIGHT)/installed: requirements-light.lock pyproject.toml \
  $(call moved,$(LIGHT))
	$(INSTALL_ON_ANY) light

# PyTorch beside what is there, for TORCH=yes and for test-rest.
$(VENV)/torch: requirements-torch.lock $(VENV)/installed
	$(INSTALL) torch
$(LIGHT)/torch: requirements-torch.lock $(LIGHT)/installed
	$(INSTALL_ON_ANY) light-torch

# The book: the committed notebooks as pages, without a kernel. A page that is
# broken is an error, now and, as nothing is kept then, the next time, too:
# what is kept has another name until all is done, should a build be killed,
# and one of its own, should two be under way.
BOOK = .venv-book
book: PAGES = docs/_build/html
book: KEPT = $(BOOK)/kept
book: $(BOOK)/installed $(BOOK)/begun
	@new="$(KEPT).$$$$"; trap 'rm -rf "$$new"' EXIT; \
	  test ! -d "$(KEPT)" || mv "$(KEPT)" "$$new"; \
	  $(BOOK)/bin/python -m sphinx -q -W --keep-going -c docs/book -d "$$new" \
	    . "$(PAGES)" && rm -rf "$(KEPT)" && mv "$$new" "$(KEPT)"
	@echo 'The book: $(PAGES)/index.html'

# What one of these changes, it changes on pages that Sphinx thinks finished.
$(BOOK)/begun: $(wildcard docs/book/*.* docs/book/*/*.* d2lps/pictures/*.py \
  d2lps/pictures/*/*.py d2lps/*.py d2lps/*/*.py) README.md \
  $(BOOK)/installed
	@rm -rf $(BOOK)/kept* && touch $@

$(BOOK)/installed: requirements-book.lock $(call moved,$(BOOK))
	$(INSTALL_ON_ANY) book

# After a change of pyproject.toml (uv: https://docs.astral.sh/uv).
COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-emit-find-links
lock:
	$(COMPILE) --group build --extra mxnet pyproject.toml -o requirements.lock
	$(COMPILE) --group test -c requirements.lock -o requirements-test.lock
	$(COMPILE) --group build pyproject.toml -o requirements-light.lock
	$(COMPILE) --group pyproject.toml:book -c requirements-light.lock \
	  -o requirements-book.lock
	$(COMPILE) --group pyproject.toml:torch -c requirements.lock \
	  -c requirements-light.lock -o requirements-torch.lock
