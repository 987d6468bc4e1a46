"""What README and its pages tell one to do is done here, and it is so."""
import os
import re
import shlex
import subprocess
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
ELSEWHERE = {'make test', 'make test-all', 'make measure', 'make benchmark',
             'make lock', 'make grade', 'make lab-light', 'make book',
             'make release'}
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
    assert README[:first.end()].count('\n') < 40


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
        assert (command == 'make release') == would.endswith(
            '.venv/bin/python -m teaching.release "my folder"\n')
    else:
        assert command == 'make lab'
        assert re.search(r'^4\.\d+\.\d+$', run(words, ARGS='--version'),
                         re.M)


@pytest.mark.full
@pytest.mark.parametrize('command', [
    command for command in COMMANDS if 'd2lps' in command[0]],
    ids=lambda command: command[1])
def test_a_command_of_the_package(command, tmp_path, idx_folder):
    program, name, *rest = command
    (tmp_path / 'my_script.py').write_text(SCRIPT)
    if name == 'train':
        # One epoch of a few pictures shows it as well, and sooner.
        rest += ['--num-epochs', '1', '--data', 'mnist', '--root',
                 str(idx_folder(train=500))]
    said = run([str(ROOT / program), name, *rest], tmp_path)
    assert re.search({'train': r'test accuracy 0\.\d+', 'machine': 'cores',
                      'cluster': r'\[worker 0\] sum 2\.0'}[name], said), said


def test_every_command_is_one_of_these():
    programs = {Path(command[0]).name for command in COMMANDS if command}
    assert programs == {'sudo', 'make', 'd2lps'}


@pytest.mark.full
def test_the_snippet_prints_what_it_says(python, idx_folder):
    snippet = re.search(r'```python\n(.*?)```', INSTALL, re.S)[1]
    few = f'num_epochs=1, data="mnist", root={str(idx_folder(500))!r}'
    snippet, n = re.subn(r'num_epochs=\d+', few, snippet)
    assert n == 1  # one epoch of a few pictures shows it as well, and sooner
    *_, accuracy, last = python('-c', snippet).stdout.splitlines()
    assert re.match(r'test accuracy 0\.\d+, .* seconds per epoch', accuracy)
    assert last == '[cpu(0), cpu(1)]' and f'`{last}`' in INSTALL


ROWS = re.findall(r'^\| \[(\d+)\. [^]]+\]\((\S+)\) \| .{30,130} \| (\d+) '
                  r'\|$', README, re.M)
ROUTES = re.findall(r'^\* \*\*(.+?)\*\*: (.*?)(?=^\*|^$)', README[
    README.index('## Where to begin'):README.index('## The chapters')],
                    re.M | re.S)


def test_routes_take_as_long_as_their_chapters():
    """Two hours are two hours, and every chapter is where its link says."""
    minutes = {number: int(time) for number, _, time in ROWS}
    paths = {number: path for number, path, _ in ROWS}
    sums = {}
    for name, words in ROUTES:
        words = ' '.join(words.split())
        links = re.findall(r'\[(\d+)\]\((\S+?)\)', words)
        assert all(paths[number] == path for number, path in links)
        chapters = [number for number, _ in links] or (
            'all twenty chapters' in words and [*minutes])
        said = re.search(r'([\d,]+) minutes', words)[1]
        sums[name] = sum(minutes[number] for number in chapters)
        assert sums[name] == int(said.replace(',', '')), name
    assert [*sums] == ['Two hours', 'One afternoon', 'A course']
    assert 100 <= sums['Two hours'] <= 120
    assert 180 <= sums['One afternoon'] <= 240


def test_six_ideas_are_those_of_the_code():
    """Each picture leads to its chapter; at night a dark one is shown."""
    found = re.findall(
        r'<a href="(notebooks/(\d+)-\S+\.ipynb)"><picture>\n<source media="'
        r'\(prefers-color-scheme: dark\)" srcset="(\S+)">\n<img src="(\S+)" '
        r'width="240" alt="([^"]+)">\n</picture></a><br>\n<a href="(\S+)"><b>'
        r'(.+)</b></a><br>\n(.+)\n</td>', README)
    assert len(found) == len(IDEAS) == 6
    for (path, chapter, dark, light, alt, again, title, sentence), (
            name, (number, *words, draw)) in zip(found, IDEAS.items()):
        assert path == again and int(chapter) == number
        assert (ROOT / path).exists() and [title, sentence] == words
        assert light == f'notebooks/pictures/idea-{name}.svg'
        assert dark == f'notebooks/pictures/idea-{name}-dark.svg'
        assert alt == draw().alt


def test_the_hero_moves_for_who_wants_it_and_is_dark_at_night():
    [hero] = re.findall(r'<picture>\n  <source.*?</picture><br>', README, re.S)
    for name in ('', '-dark', '-still', '-still-dark'):
        path = f'docs/pictures/where-to-sum{name}.svg'
        assert f'"{path}"' in hero and (ROOT / path).exists()
    # A browser takes the first that fits: the narrower condition before.
    orders = re.findall(r'media="(.*?)"', hero)
    assert orders == sorted(orders, key=lambda words: (
        'and' not in words, 'motion' not in words))


def test_the_table_has_every_chapter_and_its_minutes():
    """Those that stand at the top of the chapter."""
    chapters = sorted(path for path in (ROOT / 'notebooks').glob('*.ipynb')
                      if path.name[0].isdigit())
    assert [ROOT / path for _, path, _ in ROWS] == chapters
    for (number, path, minutes), chapter in zip(ROWS, chapters):
        assert int(number) == int(chapter.name[:2])
        assert re.search(rf'\b{minutes}\s+minutes\b', re.sub(
            r'\\n"?,?\s*"?', ' ', chapter.read_text()[:6000])), path
