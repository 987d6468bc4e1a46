"""Which files become pages of the book."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]
INDEX = ('# Small\n\n```{toctree}\nreferences\n../words\n'
         '../../notebooks/cells\n```\n')
CELLS = {'nbformat': 4, 'nbformat_minor': 5, 'metadata': {
    'kernelspec': {'name': 'python3', 'display_name': 'Python 3'},
    'language_info': {'name': 'python', 'pygments_lexer': 'ipython3'}}}


TAB = """[chapters]
cells = { runs = "all" }
[exercises]
"""


class Small:
    """A book with two pages, made by the Makefile and what it names.

    Nothing is built for a browser tab.
    """

    def __init__(self, folder):
        self.folder, self.pages = folder, folder / 'docs/_build/html'
        shutil.copytree(ROOT / 'docs' / 'book', folder / 'docs' / 'book',
                        ignore=shutil.ignore_patterns('*.md'))
        for name in ('Makefile', 'README.md', 'requirements-dev.lock',
                     'requirements-tab.lock'):
            shutil.copy2(ROOT / name, folder)
        (folder / 'd2lps').symlink_to(ROOT / 'd2lps')
        shutil.copytree(ROOT / 'setup', folder / 'setup')
        self.write('setup/tab/build.py', '')
        self.write('docs/book/tab.toml', TAB)
        for name in ('docs/pictures', 'notebooks/pictures'):
            shutil.copytree(ROOT / name, folder / name)
        venv = folder / '.venv'
        venv.mkdir()
        for path in (ROOT / '.venv').iterdir():
            if path.name in ('bin', 'lib', 'pyvenv.cfg'):
                (venv / path.name).symlink_to(path)
        self.write('docs/book/index.md', INDEX)
        self.write('docs/book/references.md', '# References\n')
        self.write('docs/words.md', '# Words\n')
        self.cells('# Cells')

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cells(self, text):
        """A notebook with a cell of text and one of code."""
        cells = [{'cell_type': 'markdown', 'id': 'a', 'metadata': {},
                  'source': text},
                 {'cell_type': 'code', 'id': 'b', 'metadata': {},
                  'source': '1', 'outputs': [], 'execution_count': None}]
        self.write('notebooks/cells.ipynb', json.dumps({
            **CELLS, 'cells': cells}))

    def make(self):
        """What it says, and whether it succeeds."""
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))}
        env['TMPDIR'] = str(self.folder)  # what Sphinx says of an error
        done = subprocess.run(
            ['make', '-o', '.venv/installed-tests', '-o',
             '.venv/tab/installed', 'book'], cwd=self.folder,
            env=env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=600)
        return done.stdout, done.returncode == 0


@pytest.fixture
def small(book, tmp_path):
    return Small(tmp_path)


def test_files_that_no_table_of_contents_names_are_left_out(small):
    small.write('notebooks/Untitled.ipynb', '')
    small.write('docs/draft.md', '# Draft\n')
    said, well = small.make()
    assert well, said
    assert ('leaves out what no table of contents names: '
            'docs/draft.md, notebooks/Untitled.ipynb\n') in said
    assert (small.pages / 'notebooks/cells.html').exists()
    assert not (small.pages / 'docs/draft.html').exists()
    # Now a chapter goes, and with it its page.
    (small.folder / 'notebooks/cells.ipynb').unlink()
    small.write('docs/book/tab.toml', '[chapters]\n[exercises]\n')
    small.write('docs/book/index.md',
                INDEX.replace('../../notebooks/cells\n', ''))
    said, well = small.make()
    assert well and not (small.pages / 'notebooks/cells.html').exists(), said


def test_a_broken_page_is_an_error_each_time(small):
    """Though Sphinx reads a page that did not change only once."""
    small.write('docs/words.md', '# Words\n\n[this](#is-nowhere)\n')
    for _ in range(2):
        said, well = small.make()
        assert not well and 'is-nowhere' in said, said
