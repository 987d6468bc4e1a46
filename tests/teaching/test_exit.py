"""A cell that ends something gives the same points each time."""
import asyncio

import pytest
from handins import ROOT, answer_cell, answered, solution
from nbformat.v4 import new_code_cell

from teaching.executing import execute
from teaching.judging import judge
from teaching.submissions import hidden_cases, rebuild

ENDS_NOTHING = [
    'exit', 'quit()', 'exit()', 'exit(keep_kernel=True)', '%exit',
    'get_ipython().ask_exit()', 'get_ipython().exit_now = True',
    'get_ipython().kernel.do_shutdown(False)',
    'get_ipython().kernel.do_shutdown(True)',
    'from ipykernel.kernelapp import IPKernelApp\nIPKernelApp.instance()'
    '.exit()', 'import threading\nthreading.Thread(target=exit).start()',
    'import sys\nsys.exit()', 'raise SystemExit', 'raise KeyboardInterrupt',
    'import os, signal\nos.kill(os.getpid(), signal.SIGINT)', 'input()',
    'import getpass\ngetpass.getpass()', 'breakpoint()',
    'import sys\nsys.stdout.close()', 'import os\nos.close(1)\nos.close(2)']
ENDS_ALL = [
    'import os\nos._exit(0)', 'import os\nos.abort()',
    'import os, signal\nos.kill(os.getpid(), signal.SIGTERM)',
    'import asyncio\nasyncio.get_event_loop().stop()',
    'get_ipython().kernel.io_loop.stop()']


def run(code):
    """The points of a right answer with this cell below it, and why a cell
    has no outputs. Another cell gives what ends a moment later its time."""
    notebook = answered()
    k = notebook.cells.index(answer_cell(notebook)) + 1
    notebook.cells[k:k] = [new_code_cell(code), new_code_cell(
        'import time\ntime.sleep(0.3)')]
    made, _ = rebuild(solution('tree'), notebook)
    cases = hidden_cases(ROOT / 'teaching' / 'hidden', 'tree')
    problems = asyncio.run(execute(made, cases, 0, behind_walls=False))
    verdicts = judge('tree', made, cases, problems)
    return sum(one.points for one in verdicts if not one.wrong), problems


@pytest.mark.full
@pytest.mark.parametrize('code', ENDS_NOTHING)
def test_exit_ends_no_kernel(code):
    assert run(code) == (10, {})


@pytest.mark.full
@pytest.mark.parametrize('code', ENDS_ALL)
def test_who_ends_the_process_has_what_was_checked_before(code):
    points, problems = run(code)
    assert points == 0
    first, *others = problems.values()
    assert first.startswith('the process ended')
    assert all(one == f'before it came to this cell, {first}'
               for one in others)


@pytest.mark.full
def test_who_forgets_all_has_no_answer():
    assert run('%reset -f') == (0, {})
    assert run('%reset -f out') == (10, {})
