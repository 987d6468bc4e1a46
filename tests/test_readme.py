"""What README and its pages tell one to do is done here, and it is so."""
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from d2lps.pictures.ideas import IDEAS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / 'README.md').read_text()
INSTALL = (ROOT / 'docs' / 'install.md').read_text()
PAGES = '\n'.join([README, INSTALL, (ROOT / 'CONTRIBUTING.md').read_text()])
COMMANDS = [shlex.split(line, comments=True) for block in re.findall(
    r'^```sh\n(.*?)^```', PAGES, re.M | re.S) for line in block.splitlines()]
# Every make that stands in the text, with what follows it, once.
MAKES = sorted({*re.findall(r'^(make [\w-]+)', PAGES, re.M),
                *re.findall(r'`(make [\w-]+)[^`]*`', PAGES)})
# What this module does not run: it is another test's, or the run of all of
# them, or a measurement. For these, make says what it would do.
ELSEWHERE = {'make test', 'make test-all', 'make test-rest', 'make measure',
             'make benchmark', 'make compare', 'make lock', 'make grade',
             'make book', 'make book-serve', 'make fold', 'make release'}
SCRIPT = '''
import d2lps
from mxnet import kv, np
store, total = kv.create('dist_sync'), np.zeros(2)
store.init(0, total)
store.push(0, np.ones(2))
store.pull(0, out=total)
print('sum', total[0])
'''


def run(command, cwd=ROOT, **env):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(('MAKE', 'MFLAGS'))}
    done = subprocess.run(command, cwd=cwd, env=clean | env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, f'{command}: {done.stdout}'
    return done.stdout


def test_the_first_screen_has_a_picture_and_the_two_commands():
    first = re.search(r'```sh\n(.*?)```', README, re.S)
    assert 'make lab' in first[1] and 'make test' in first[1]
    assert '<picture>' in README[:first.start()]


@pytest.mark.full
def test_a_clone_is_what_make_needs(tmp_path):
    """All but the installation: that of test_install.py is a small one."""
    apt, lab, test = COMMANDS[:3]
    assert apt[:3] == ['sudo', 'apt', 'install'] and '`git clone`' in README
    run(['git', 'clone', '-q', str(ROOT), 'd2lps'], tmp_path)
    assert lab == ['make', 'lab'] and test == ['make', 'test']
    for command in lab, test:
        would = run([*command, '-n'], tmp_path / 'd2lps')
        assert 'setup/install.sh' in would and '.venv/bin/' in would


@pytest.mark.full
@pytest.mark.parametrize('command', MAKES)
def test_a_target_of_make(command):
    words = command.split()
    if command in ELSEWHERE:
        would = run([*words, '-n', 'FROM=there', 'TO=my folder'])
        assert would.strip()
        assert (command == 'make release') == (
            '.venv/bin/python -m teaching.release "my folder"' in would)
    else:
        assert command == 'make lab'
        assert re.search(r'^4\.\d+\.\d+$', run(words, ARGS='--version'),
                         re.M)


@pytest.mark.full
@pytest.mark.parametrize('command', [
    command for command in COMMANDS if 'd2lps' in command[0]
    and command[1] != 'server'],
    ids=lambda command: command[1])
def test_a_command_of_the_package(command, tmp_path, idx_folder):
    program, name, *rest = command
    (tmp_path / 'my_script.py').write_text(SCRIPT)
    if name == 'train':
        # One epoch of a few pictures shows it as well, and sooner.
        rest += ['--num-epochs', '1', '--data', 'mnist', '--root',
                 str(idx_folder(train=500))]
    said = run([str(ROOT / program), name, *rest], tmp_path)
    assert re.search({'train': r'test accuracy 0\.\d+', 'machine': 'cores?,',
                      'cluster': r'\[worker 0\] sum 2\.0'}[name], said), said


def test_the_server_of_readme_is_what_readme_says():
    [command] = [command for command in COMMANDS if 'server' in command]
    program, *rest = command
    assert program == '.venv/bin/d2lps'
    said = run([sys.executable, '-m', 'd2lps', *rest])
    # The rings are the answer to a question of chapter 5.
    shown = said[said.index('expected'):]
    assert 'ring ' not in shown and f'```text\n{shown}```' in README


def test_every_command_is_one_of_these():
    programs = {Path(command[0]).name for command in COMMANDS if command}
    # Those of a CI job are in test_project.py; here its environment is made.
    assert programs == {'sudo', 'make', 'd2lps', 'python3.11', '', 'pip',
                        'pytest'}  # '' starts an environment


@pytest.mark.full
def test_the_snippet_prints_what_it_says(python, idx_folder):
    snippet = re.search(r'```python\n(.*?)```', INSTALL, re.S)[1]
    few = f'num_epochs=1, data="mnist", root={str(idx_folder(500))!r}'
    snippet, n = re.subn(r'num_epochs=\d+', few, snippet)
    assert n == 1  # one epoch of a few pictures shows it as well, and sooner
    *_, accuracy, last = python('-c', snippet).stdout.splitlines()
    assert re.match(r'test accuracy 0\.\d+, .* seconds per epoch', accuracy)
    assert last == '[cpu(0), cpu(1)]' and f'`{last}`' in INSTALL


CHAPTERS = sorted(path for path in (ROOT / 'notebooks').glob('*.ipynb')
                  if path.name[0].isdigit())
INDEX = ''.join(
    ''.join(cell['source']) for cell in json.loads(
        (ROOT / 'notebooks' / 'index.ipynb').read_text())['cells'])


CORE = [1, 3, 5, 8, 9, 15, 18, 19]
MINUTES = {int(path.name[:2]): int(re.search(
    r'(\d+)\s+minutes', ''.join(json.loads(path.read_text())['cells'][0][
        'source']))[1]) for path in CHAPTERS}
both = pytest.mark.parametrize('folder, text', [
    ('', README), ('notebooks', INDEX)], ids=['README', 'index'])


@both
def test_every_chapter_is_listed_once_the_core_first(folder, text):
    """With the minutes that stand at its top."""
    rows = re.findall(r'^\| \[(\d+)\. [^]]+\]\((\S+?)\) \|.*\| (\d+) \|$',
                      text, re.M)
    numbers = [int(number) for number, *_ in rows]
    assert numbers == CORE + sorted(MINUTES.keys() - CORE)
    for number, (_, path, minutes) in zip(numbers, rows):
        [chapter] = [one for one in CHAPTERS if int(one.name[:2]) == number]
        assert ROOT / folder / path == chapter
        assert int(minutes) == MINUTES[number], path
    assert f'eight chapters, {sum(MINUTES[k] for k in CORE)} minutes' in text


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_says_whether_it_is_of_the_core(path):
    """A core chapter needs only core chapters that come before it."""
    [first, *_] = json.loads(path.read_text())['cells']
    head, number = ''.join(first['source']), int(path.name[:2])
    if number not in CORE:
        assert '**Elective.**' in head
        return
    place = CORE.index(number)
    assert f'**Core chapter {place + 1} of 8.**' in head
    needed = {int(one) for one in re.findall(
        r'\]\((\d\d)-', head.split('**Core chapter')[1])}
    assert needed <= {*CORE[:place]}


@pytest.mark.parametrize('name', IDEAS)
def test_each_of_the_six_ideas_has_its_pictures_and_words(name):
    """Those of the code, in README and on the map."""
    number, title, sentence, draw = IDEAS[name]
    [chapter] = [path for path in CHAPTERS
                 if path.name.startswith(f'{number:02}')]
    for text in README, INDEX:
        assert draw().alt in text and title in text and sentence in text
        assert f'{chapter.name})' in text or f'{chapter.name}"' in text
    path = f'notebooks/pictures/idea-{name}.svg'
    assert (ROOT / path).exists() and path in README


def test_the_hero_moves_for_who_wants_it():
    [hero] = re.findall(r'<picture>\n  <source.*?</picture><br>', README, re.S)
    for name in '', '-still':
        path = f'docs/pictures/where-to-sum{name}.svg'
        assert f'"{path}"' in hero and (ROOT / path).exists()
