"""What students get has no line of a solution or of a hidden check."""
import re
import subprocess
import sys

import nbformat
import pytest
from handins import TASKS, solution

from teaching.course import STUB
from teaching import release
from teaching.release import main, without_link
from teaching.walls import ROOT
from d2lps.exercises.checking import EXERCISES

pytestmark = pytest.mark.full


@pytest.fixture(scope='module')
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp('release') / 'to'
    subprocess.run([sys.executable, '-m', 'teaching.release', folder],
                   cwd=ROOT, check=True, timeout=300)  # as make release does
    return folder


def test_the_tasks_are_what_the_sources_give(released):
    assert {path.stem for path in released.iterdir()} == {*EXERCISES}
    for name in EXERCISES:
        assert (released / f'{name}.ipynb').read_text() == (
            TASKS / f'{name}.ipynb').read_text(), 'python -m teaching.release'


@pytest.mark.parametrize('exercise', EXERCISES)
def test_no_line_of_a_solution_or_a_hidden_check(exercise):
    notebook = nbformat.read(TASKS / f'{exercise}.ipynb', 4)
    lines = {line.strip() for cell in notebook.cells
             for line in cell.source.splitlines()}
    secret = []
    for cell in solution(exercise).cells:
        for kind in 'SOLUTION', 'HIDDEN TESTS':
            for part in re.findall(f'### BEGIN {kind}\n(.*?)### END {kind}',
                                   cell.source, re.DOTALL):
                secret += part.splitlines()
    plain = {line.strip() for cell in solution(exercise).cells
             for line in re.sub(r'### BEGIN.*?### END', '', cell.source,
                                flags=re.DOTALL).splitlines()}
    secret = {line.strip() for line in secret} - plain
    assert len(secret) > 4 and not secret & lines
    text = (TASKS / f'{exercise}.ipynb').read_text()
    assert '### ' not in text and 'hidden(' not in text
    assert STUB.splitlines()[1].replace('"', '\\"') in text
    assert all(not cell.get('outputs') for cell in notebook.cells)


def test_a_hidden_folder_of_jupyterlab_does_not_matter(tmp_path, monkeypatch):
    (tmp_path / '.ipynb_checkpoints').mkdir()
    monkeypatch.setattr(release, 'release', lambda to, _: to)
    main(tmp_path)


def test_another_folder_is_not_written_over(tmp_path):
    (tmp_path / 'thesis.txt').write_text('important')
    with pytest.raises(SystemExit, match='TO must be a new folder'):
        main(tmp_path)


def test_links_to_solutions_can_be_left_out():
    for name in EXERCISES:
        text = (TASKS / f'{name}.ipynb').read_text()
        left = without_link(nbformat.reads(text, 4))
        assert 'solutions' in text and 'solutions' not in str(left)
        assert 'solved copy' not in str(left)
        assert len(str(left)) > len(str(nbformat.reads(text, 4))) - 200
