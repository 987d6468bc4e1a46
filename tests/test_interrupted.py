"""A chapter that is interrupted in the middle, run again, and left.

To run all of a chapter twice would take minutes. So a cell is drawn that
starts processes or takes a second, and run with those cells that it needs.
"""
import ast
import dis
import json
import os
import random
import re
import sys
import time
from pathlib import Path

import psutil
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from jupyter_client.manager import KernelManager
from test_notebooks import CHAPTERS, cells_of, code_of

LIMIT = 300  # seconds for a cell, however busy the machine is
FEW = 6  # seconds
# The same with less to do, in half of the time or less: they are run twice.
LESS = {'NUM_STEPS = 200': 'NUM_STEPS = 80', 'repeats=8': 'repeats=1'}
CLUSTER = re.compile(r'Cluster\(|cluster_or_record\(')
PROCESSES = re.compile(
    r'^%%px|Cluster\(|cluster_or_record\(|\.run\(|bare_mxnet\(', re.M)


# How long cells took on a quiet machine, by chapter and id: 0.05 s or more.
SECONDS = json.loads((Path(__file__).parent / 'seconds.json').read_text())


def timed_cells_of(path):
    return [cell | {'seconds': SECONDS[path.stem].get(cell.get('id'), 0.0)}
            for cell in cells_of(path)]


class Code:
    """A cell with code, and the names that it uses, and makes or changes.

    Its functions may use names `later`, when they are called. What workers
    have in `%%px` cells goes by one name, '%px', which a cluster makes.
    """

    def __init__(self, cell):
        self.source, self.seconds = ''.join(cell['source']), cell['seconds']
        self.less = any(much in self.source for much in LESS)
        for much, less in LESS.items():
            self.source = self.source.replace(much, less)
        self.uses, self.later, self.makes = set(), set(), set()
        on_workers = re.search(r'%px|\.view\[', self.source)
        if on_workers:
            self.uses.add('%px')
        for line in re.findall(r'^.*[%!].*$', self.source, re.M):
            self.uses.update(re.findall(r'\{(\w+)', line))  # filled in
        if on_workers or CLUSTER.search(self.source):
            self.makes.add('%px')
        if re.match('%%px(?! --local)', self.source):
            return
        code = re.sub(r'^%%capture (\w+)', r'\1 = None', self.source)
        code = re.sub(r'^%%.*', '', code)  # %%time, say
        tree = ast.parse(TransformerManager().transform_cell(code))
        self._look(compile(
            tree, 'cell', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), self.uses)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._change(node.value.func)
            elif isinstance(getattr(node, 'ctx', None), ast.Store):
                self._change(node)

    def _look(self, code, uses):
        for step in dis.get_instructions(code):
            if step.opname in ('LOAD_NAME', 'LOAD_GLOBAL'):
                uses.add(step.argval)
            elif step.opname in ('STORE_NAME', 'STORE_GLOBAL'):
                self.makes.add(step.argval)
            elif isinstance(step.argval, type(code)):  # a function's
                self._look(step.argval, self.later)

    def _change(self, node):
        """It may change x if it has x.y(...) on a line, x.y = or x[y] =."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            while isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            if isinstance(node, ast.Name):
                self.makes.add(node.id)


def needed(codes, number):
    """The numbers of a cell and of those before it that it needs."""
    found, size = {0, number}, 0
    while len(found) != size:  # until no cell wants another one
        size = len(found)
        for before in range(number):
            if any(codes[before].makes & (codes[one].later | (
                    codes[one].uses if one > before else set()))
                   for one in found):
                found.add(before)
    return sorted(found)


def drawn(codes, seed):
    """The number of a cell that is worth an interrupt, drawn by lot.

    It is at work with processes, and with what it needs it took a few seconds
    where the chapter was executed. If no cell is so, it is the quickest.
    """
    seconds = {number: sum(codes[k].seconds for k in needed(codes, number))
               for number in range(1, len(codes))}
    worth = [number for number in seconds if codes[number].seconds > 0.3]
    worth = [number for number in worth if PROCESSES.search(
        codes[number].source)] or worth or [*seconds]
    return random.Random(seed).choice(
        [number for number in worth if seconds[number] < FEW]
        or [min(worth, key=seconds.get)])


def family(folder):
    """All processes that began in a kernel with this temporary folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if (process.environ().get('TMPDIR') == str(folder) and
                    process.status() != psutil.STATUS_ZOMBIE):
                found.append(process)
        except psutil.Error:
            pass
    return found


def sockets(processes):
    """The Unix sockets that processes have by a name."""
    found = set()
    for process in processes:
        try:
            found |= {one.laddr for one in process.net_connections('unix')
                      if os.path.isabs(one.laddr or '')}
        except psutil.Error:
            pass
    return found


class Kernel:
    """A kernel in a temporary folder of its own."""

    def __init__(self, cwd, folder):
        self.manager = KernelManager(kernel_name='python3')
        self.manager.start_kernel(cwd=str(cwd), env={
            **os.environ, 'TMPDIR': str(folder), 'JUPYTER_RUNTIME_DIR': str(
                folder), 'PYTHONPATH': os.pathsep.join(sys.path)},
            extra_arguments=['--HistoryManager.enabled=False'])
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    def run(self, code):
        return self.client.execute_interactive(
            code, timeout=LIMIT, output_hook=lambda message: None)['content']

    def run_and_interrupt(self, code, seconds, interrupt):
        """Run a cell, and interrupt it when it has run for `seconds`.

        It may have ended before. An interrupt that comes after a cell's last
        line and before the reply costs ipykernel the reply: so none is waited
        for. What follows is answered in turn, and says that the cell ended;
        the first of two empty cells is there for a very late interrupt.
        """
        cell = self.client.execute(code, stop_on_error=False)
        while True:
            message = self.client.get_iopub_msg(timeout=LIMIT)
            if (message['msg_type'] == 'execute_input' and
                    message['parent_header']['msg_id'] == cell):
                break
        time.sleep(seconds)
        interrupt()
        self.client.execute('', stop_on_error=False)
        self.run('')

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()


def wrong_after_interrupt(chapters, folder, cwd='.'):
    """What is wrong when chapters share a kernel, are interrupted and left."""
    kernel, used, wrong = Kernel(cwd, folder), set(), []

    def interrupt():
        used.update(sockets(family(folder)))
        kernel.manager.interrupt_kernel()
    try:
        for name, cells in chapters.items():
            codes = [Code(one) for one in cells if one['cell_type'] == 'code']
            number = drawn(codes, name)
            *before, last = [codes[k] for k in needed(codes, number)]
            later = random.Random(name).uniform(0.1, 0.9) * last.seconds
            if any(one.less for one in (*before, last)):
                later /= 2
            wrong += [(name, one, kernel.run(one.source)) for one in before]
            kernel.run_and_interrupt(last.source, max(later, 0.05), interrupt)
            wrong += [(name, one, kernel.run(one.source))
                      for one in (*before, last)]
        used |= sockets(family(folder))
    finally:
        kernel.end()
    _, alive = psutil.wait_procs(family(folder), 60)
    return [f'{reply["ename"]}: {reply["evalue"]} in {name}:\n{one.source}'
            for name, one, reply in wrong if reply['status'] != 'ok'] + [
        f'left: {one}' for one in (*alive, *os.listdir(folder), *filter(
            os.path.lexists, used))]


CLUSTERS = [path for path in CHAPTERS if any(
    CLUSTER.search(code) for code in code_of(path))]
# Without MXNet or a process there is nothing that an interrupt might leave.
PURE = [path for path in CHAPTERS
        if path.stem[:2] in ('03', '05', '06', '07', '14')]
# These have a kernel each, for what they leave; the others have one.
KERNELS = [[path] for path in CLUSTERS] + [
    sorted({*CHAPTERS} - {*CLUSTERS} - {*PURE})]


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_timed_cells_are_there(path):
    """Else those that have another id would not be interrupted."""
    timed = {*SECONDS[path.stem]}
    assert timed and timed <= {cell.get('id') for cell in cells_of(path)}


@pytest.mark.full
@pytest.mark.parametrize('paths', KERNELS, ids=lambda paths: '+'.join(
    path.stem[:2] for path in paths))
def test_chapters_can_be_interrupted(paths, tmp_path, monkeypatch):
    # A sum of Gloo's does not hear of Ctrl-C: the cluster ends, and says so.
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')
    chapters = {path.stem: timed_cells_of(path) for path in paths}
    assert wrong_after_interrupt(chapters, tmp_path, paths[0].parent) == []


LATE = """
kernel = get_ipython().kernel
def interrupted_before_the_reply(*_):
    del kernel.finish_metadata
    raise KeyboardInterrupt
kernel.finish_metadata = interrupted_before_the_reply
"""


def test_an_interrupt_that_costs_the_reply_is_survived(tmp_path):
    kernel = Kernel('.', tmp_path)
    try:
        kernel.run_and_interrupt(LATE, 0.05, lambda: None)
        # A cell that fails takes none of those that follow with it.
        kernel.run_and_interrupt('import time\ntime.sleep(60)', 0.05,
                                 kernel.manager.interrupt_kernel)
        assert kernel.run('6 * 7')['status'] == 'ok'
    finally:
        kernel.end()


@pytest.mark.full
@pytest.mark.parametrize(
    'path', [path for path in CHAPTERS if path.stem[:2] in ('12', '14')],
    ids=lambda path: path.stem)
def test_each_cell_may_be_run_twice_in_a_row(path, tmp_path):
    """Who changes a word in a cell runs it again, and then the next one."""
    kernel = Kernel(path.parent, tmp_path)
    try:
        wrong = [(cell['id'], reply['ename'], reply['evalue'])
                 for cell in cells_of(path) if cell['cell_type'] == 'code'
                 for reply in [kernel.run(''.join(cell['source']))
                               for _ in range(2)] if reply['status'] != 'ok']
    finally:
        kernel.end()
    assert wrong == []
