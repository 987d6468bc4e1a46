"""What a reader does in JupyterLab, and what is seen then."""
import re
from contextlib import contextmanager, suppress
from itertools import pairwise

import nbformat
from chromium import PAINTED
from labserver import ROOT, until

GUESS = 'Guess first, then click here'
LIMIT = 120_000  # ms, for what is a moment on a machine with nothing to do
LONG = 600  # s, for all cells of a notebook
SIZES = [{'width': 1280, 'height': 900}, {'width': 1024, 'height': 900}]
# That of an error is the same as that of a warning.
STDERR, STDOUT, WIDGET = (f'application/vnd.jupyter.{name}' for name in (
    'stderr', 'stdout', 'widget-view+json'))
# What JupyterLab shows first of an output that comes in several kinds.
KINDS = WIDGET, 'text/html', 'image/png', 'text/plain'
STATE = '''() => [...document.querySelectorAll(
    '.jp-NotebookPanel .jp-CodeCell')].map(cell => ({
      prompt: cell.querySelector('.jp-InputPrompt').textContent,
      folded: !!cell.querySelector('.jp-InputPlaceholder'),
      outputs: [...cell.querySelector('.jp-OutputArea').children].map(
        child => child.querySelector('.jp-OutputArea-output')).filter(
        output => output).map(output => ({
          kind: output.dataset.mimeType || output.querySelector(
            '.jupyter-widgets') && 'application/vnd.jupyter.widget-view+json',
          words: output.textContent.slice(-2000),
          drawn: output.getBoundingClientRect().height > 1 &&
            [...output.querySelectorAll('img')].every(
              image => image.complete && image.naturalWidth > 0)}))}))'''
# What is wider than the place that it has: elements that stick out, and words
# that do not fit their control. A table may have a bar to scroll it.
CUT = '''() => {
  const scrolls = one => one.querySelector('table') &&
    ['auto', 'scroll'].includes(getComputedStyle(one).overflowX);
  const cut = [], seen = 'img, svg, table, pre, .jupyter-widgets, button,' +
    'select, mjx-container';
  const places = '.jp-Cell-outputArea, .jp-MarkdownOutput';
  for (const place of document.querySelectorAll('.jp-NotebookPanel .jp-Cell'
       ).values().flatMap(cell => [...cell.querySelectorAll(places)])) {
    const {left, right} = place.getBoundingClientRect();
    for (const one of place.querySelectorAll(seen)) {
      const box = one.getBoundingClientRect();
      if (!box.width || one.parentElement.closest('svg') ||
          one.tagName == 'TABLE' && scrolls(one.parentElement)) continue;
      if (box.right > right + 1.5 || box.left < left - 1.5)
        cut.push([one, `${box.left}–${box.right} in ${left}–${right}`]);
    }
    for (const one of place.querySelectorAll('.jp-OutputArea-output, pre,' +
         '.widget-label, .widget-readout, .jupyter-button'))
      if (one.clientWidth && one.scrollWidth > one.clientWidth + 1 &&
          !scrolls(one))
        cut.push([one, `${one.scrollWidth} in ${one.clientWidth}`]);
  }
  const cells = [...document.querySelectorAll('.jp-NotebookPanel .jp-Cell')];
  return cut.map(([one, words]) =>
    `cell ${cells.indexOf(one.closest('.jp-Cell'))}: <${one.tagName} ` +
    `${one.className.baseVal ?? one.className}> ${words}: ` +
    one.textContent.slice(0, 50));
}'''


MOVED, IDLE = b'"comm_msg"', re.compile(rb'"execution_state": ?"idle"')
NUMBER = re.compile(rb'"msg_id": ?"([^"]+)"')


class Lab:
    """A page of JupyterLab in which one notebook is open at a time."""

    def __init__(self, chromium, server):
        self._chromium, self.server = chromium, server
        self.requests, self.size = [], SIZES[0]
        self._unanswered = set()  # what controls told the kernel
        self.page = self._path = None
        self._load()

    def _load(self, path='/?'):
        """Come as a reader does: with the address that `make lab` prints."""
        self.page = page = self._chromium.new_page(viewport=self.size)
        page.set_default_timeout(LIMIT)
        page.on('request', lambda one: self.requests.append(one.url))
        page.on('websocket', self._listen)
        page.goto(f'{self.server.address}{path}&token={self.server.token}',
                  wait_until='domcontentloaded')
        page.locator('.jp-NotebookPanel .jp-Cell').first.wait_for()
        self.wait_for_kernel()
        self._path = 'index.ipynb'  # which make lab opens

    def _listen(self, socket):
        self.requests.append(socket.url)
        socket.on('framesent', lambda frame: MOVED in bytes_of(frame) and
                  self._unanswered.add(NUMBER.search(bytes_of(frame))[1]))
        socket.on('framereceived', lambda frame: IDLE.search(bytes_of(frame))
                  and self._unanswered.difference_update(
                      NUMBER.findall(bytes_of(frame))))

    def settle(self):
        """Wait until the kernel has answered all, and its words are drawn.

        An answer may lead to another question: the last move of a control
        waits in the page as long as one before it is not answered.
        """
        def quiet():
            before = len(self._unanswered)
            self.page.evaluate(PAINTED)
            return before == len(self._unanswered) == 0
        until(quiet, 'the kernel answers the moves of controls')

    def wait_for_kernel(self):
        """A run before there is a kernel would open a dialog."""
        self.page.locator('.jp-StatusBar-TextItem', has_text='| Idle'
                          ).wait_for()

    def menu(self, name, item):
        self.page.click(f'.lm-MenuBar-itemLabel:text-is("{name}")')
        self.page.locator('.lm-Menu-itemLabel', has_text=item).first.click()

    def wait(self, condition, words, limit=LIMIT, argument=None,
             every=250):
        """For a condition in JavaScript, looked at every so many ms."""
        from playwright.sync_api import TimeoutError
        try:
            self.page.wait_for_function(condition, arg=argument,
                                        timeout=limit, polling=every)
        except TimeoutError:
            raise AssertionError(f'{words}: not in {limit / 1000} s') from None

    @contextmanager
    def notebook(self, path, folder):
        """Open it; in the end, shut it down. Failed? Then see the folder."""
        try:
            if path != self._path:
                self._close()
                self._open(path)
            yield self.page
        except BaseException:
            self._keep(folder)
            self.begin_again()
            raise

    def _close(self):
        self.menu('File', 'Close and Shut Down Notebook')
        self.page.locator('.jp-Dialog .jp-mod-accept').click()
        self.page.locator('.jp-NotebookPanel').wait_for(state='detached')
        until(lambda: self.server.asked('/kernels') == [],
              'the kernel of a closed notebook ends')

    def _open(self, path):
        self._path = path
        self._unanswered.clear()
        self.menu('File', 'Open from Path')
        self.page.fill('.jp-Dialog input', path)
        self.page.keyboard.press('Enter')
        self.page.locator('.jp-NotebookPanel .jp-Cell').first.wait_for()
        self.wait_for_kernel()

    def _keep(self, folder):
        try:
            self.page.screenshot(path=folder / 'failed.png')
            (folder / 'failed.html').write_text(self.page.content())
        except Exception as error:  # of a page that has gone
            (folder / 'failed.txt').write_text(str(error))

    def begin_again(self):
        """In a new page and workspace, whatever is open in this one."""
        self.page.close()
        for kernel in self.server.asked('/kernels') or []:
            self.server.asked(f'/kernels/{kernel["id"]}', 'DELETE')
        self._load('/lab/workspaces/anew/tree/index.ipynb?reset')

    def run_all(self):
        """Run all cells; those that follow an error do not run.

        JupyterLab draws the last ones of a long notebook when it has time.
        """
        cells = nbformat.read(self.server.notebooks / self._path, 4).cells
        self.menu('Run', 'Run All Cells')
        self.wait('''count => {
            const prompts = [...document.querySelectorAll(
              '.jp-NotebookPanel .jp-CodeCell .jp-InputPrompt')].map(
              one => one.textContent);
            return prompts.length == count && prompts[0] != '[ ]:' &&
              !prompts.includes('[*]:') &&
              [...document.querySelectorAll('.jp-StatusBar-TextItem')].some(
                one => one.textContent.endsWith('| Idle'))}''',
                  'all cells have run', LONG * 1000,
                  sum(cell.cell_type == 'code' for cell in cells))
        told = self.page.locator('.jp-Dialog').all_inner_texts()
        assert not told, told  # such as that the kernel has died
        return self.cells()

    def cells(self):
        """A dict for each code cell: its prompt and outputs."""
        return self.page.evaluate(STATE)

    def resize(self):
        """To the other size; return what is cut there."""
        self.size = SIZES[1 - SIZES.index(self.size)]
        self.page.set_viewport_size(self.size)
        self.wait('''() => {
            const box = document.querySelector('.jp-NotebookPanel'
              ).getBoundingClientRect();
            return innerWidth - 80 < box.right && box.right <= innerWidth}''',
                  'the notebook fits the window')

    def cut(self):
        """What is wider than its place, in words."""
        return self.page.evaluate(CUT)

    def write(self, path, codes):
        """A notebook of these cells, beside the others."""
        nbformat.write(nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in codes],
            metadata={'kernelspec': {'name': 'python3',
                                     'display_name': 'Python 3'}}),
            self.server.notebooks / path)

    def save(self, path):
        """The notebook as it is saved, with all that controls led to.

        JupyterLab keeps the mark of a change that comes while it saves, or
        just after: a picture that is drawn late. Readers save once more.
        """
        from playwright.sync_api import TimeoutError
        changed = self.page.locator('.lm-TabBar-tab.jp-mod-dirty')

        def saved():
            self.menu('File', 'Save Notebook')
            with suppress(TimeoutError):
                changed.wait_for(state='detached', timeout=10_000)
            return not changed.count()
        self.settle()
        until(saved, 'a saved notebook has no mark of changes')
        return nbformat.read(self.server.notebooks / path, 4)


def bytes_of(frame):
    return frame.encode() if isinstance(frame, str) else frame


def committed(path):
    """Of each code cell, the kinds of its outputs as they were saved.

    Without the line that covers an answer until the cell is run.
    """
    cells = []
    for cell in nbformat.read(ROOT / 'notebooks' / path, 4).cells:
        if cell.cell_type == 'code':
            kinds = [STDOUT if output.output_type == 'stream' else
                     next(kind for kind in KINDS if kind in output.data)
                     for output in cell.outputs
                     if output.get('data', {}).get('text/plain') != GUESS]
            # Words that follow each other may have come in several parts.
            cells.append([kind for kind, next_one in pairwise([*kinds, None])
                          if not kind == next_one == STDOUT])
    return cells
