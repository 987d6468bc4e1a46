"""Install into .venv what the notebooks or the tests need; make runs this.

    python3.11 setup/install.py STAMP [ARGUMENTS OF PIP INSTALL ...]
    python setup/install.py light
    python setup/install.py book
    python setup/install.py torch|light-torch

What the machine lacks is found first, and named with the command that mends
it: nothing is downloaded before. When all is done, and MXNet could really be
imported, the file .venv/STAMP is written, and .venv/installed in any case.
The others need no make, no MXNet, and any Python from 3.11: they install into
.venv-light what chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19 need (11 and 12 run
where processes can fork, which is not on Windows), and into .venv-book what
makes the book. The last ones add PyTorch to what is there.
"""
import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import failing
from failing import refuse
from waiting import turn

VENV, LIGHT, BOOK = map(Path, ('.venv', '.venv-light', '.venv-book'))
PROGRAMS, EXE = ('Scripts', '.exe') if os.name == 'nt' else ('bin', '')
VERSION = '{}.{}'.format(*sys.version_info)
# MXNet for Linux on ARM is linked to libraries of Arm's compiler. What it
# calls in them is in these of the system, under the same names.
ARM = {'libopenblas.so.0': 'libarmpl_lp64_mp.so',
       'liblapacke.so.3': 'libastring.so', 'libm.so.6': 'libamath.so'}
FOLDERS = [Path('/usr/lib/aarch64-linux-gnu'), Path('/usr/lib64')]
# What MXNet's library is linked to and does not bring along.
LIBRARIES = ['libgomp.so.1', 'libstdc++.so.6'] + {
    'x86_64': ['libquadmath.so.0'], 'aarch64': [*ARM]}.get(
        platform.machine(), [])
# Who installs packages here, and what they are called there.
MANAGERS = {
    'apt-get': ('apt install', {
        'libgomp.so.1': 'libgomp1', 'libstdc++.so.6': 'libstdc++6',
        'libquadmath.so.0': 'libquadmath0', 'venv': f'python{VERSION}-venv',
        'libopenblas.so.0': 'libopenblas0-openmp', 'libm.so.6': 'libc6',
        'liblapacke.so.3': 'liblapacke'}),
    'dnf': ('dnf install', {
        'libgomp.so.1': 'libgomp', 'libstdc++.so.6': 'libstdc++',
        'libquadmath.so.0': 'libquadmath', 'venv': f'python{VERSION}',
        'libopenblas.so.0': 'openblas-serial', 'libm.so.6': 'glibc',
        'liblapacke.so.3': 'lapack'})}
# Settings of the user's that would lead pip, or Python, out of .venv.
ELSEWHERE = ('PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT', 'PYTHONPATH',
             'PYTHONHOME')
NOTABLE = 5  # MB: a download of this size gets a line


def program(venv, name):
    return venv / PROGRAMS / f'{name}{EXE}'


def lacking(libraries):
    """The system libraries and modules of Python that are not here."""
    found = []
    if sys.platform == 'linux':
        for library in libraries:
            try:
                ctypes.CDLL(library)
            except OSError:
                found.append(library)
    if not importlib.util.find_spec('ensurepip'):  # Debian's is a package
        found.append('venv')
    return found


def remedy(lacks):
    """The command that installs them."""
    for program, (command, packages) in MANAGERS.items():
        if shutil.which(program):
            sudo = '' if os.geteuid() == 0 else 'sudo '
            return f'{sudo}{command} {" ".join(packages[x] for x in lacks)}'
    return 'find them with what installs packages on this system'


def look(libraries):
    """Stop if something is missing."""
    lacks = lacking(libraries)
    if lacks:
        words = ', '.join('the module venv of Python' if one == 'venv' else
                          one for one in lacks)
        refuse(f'this system lacks {words}. Nothing was installed yet. '
               f'First:\n    {remedy(lacks)}\nThen the same again.')


def runs(venv):
    """Is its Python there still, and the one whose packages it has?"""
    return program(venv, 'python').exists() and not subprocess.run(
        [program(venv, 'python'), '-Ic', 'import pip'], check=False,
        stderr=subprocess.DEVNULL).returncode


def prepare(venv, size):
    """A .venv that was made here; scripts in it know where they stand.

    What there is instead is put aside until the new one stands.
    """
    note, old = venv / 'folder', aside(venv)
    try:
        made_here = os.path.samefile(note.read_text(), Path.cwd())
    except OSError:
        made_here = False
    if made_here and runs(venv):
        return
    if venv.is_symlink():
        refuse(f'{venv} is a link, and what it leads to would be lost: '
               'remove it')
    if venv.exists() and not note.exists():
        refuse(f'{venv} was not made here, but perhaps by uv or an editor: '
               'give it another name, or remove it')
    failing.if_full(size)
    if venv.exists():
        print(f'd2lps: {venv} was made in another folder, or not to its end, '
              'or its Python is gone: it is made anew', flush=True)
        if old.exists():  # which worked once; this one never did
            shutil.rmtree(venv)
        else:
            venv.rename(old)
    venv.mkdir()  # which says more clearly than venv why that cannot be
    note.write_text(os.getcwd())
    command = [sys.executable, '-m', 'venv', venv]
    if subprocess.run(command, check=False).returncode:
        failing.of_command(command)


def aside(venv):
    return venv.with_name(f'{venv.name}.old')


def bring_back(venv):
    """What was put aside may work again, where it was made."""
    if aside(venv).exists():
        shutil.rmtree(venv, ignore_errors=True)
        aside(venv).rename(venv)


def pip(venv, *arguments):
    """Run the venv's pip; show its large downloads, and why it failed."""
    process = subprocess.Popen(
        [program(venv, 'python'), '-m', 'pip', 'install',
         '--disable-pip-version-check', '--progress-bar=off', '--no-compile',
         *arguments],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = []
    for line in process.stdout:
        said.append(line)
        size = re.search(r'^ *Downloading (\S+).* \(([\d.]+) MB\)', line)
        if size and float(size[2]) >= NOTABLE:
            print(f'  {Path(size[1]).name}: {float(size[2]):.0f} MB',
                  flush=True)
        if line.startswith('Installing collected') and ',' in line:
            print(f'  installing {line.count(",") + 1} packages', flush=True)
    if process.wait():
        failing.of_pip(said)


def compile_packages(venv):
    """What pip would do with one core, and for the packages' tests as well.

    What cannot be compiled is for another Python, and not used here; and if
    there is no shared memory, for several to work, imports compile.
    """
    packages = venv.glob('lib/python*/site-packages')
    subprocess.run([program(venv, 'python'), '-m', 'compileall', '-qq', '-j0',
                    '-x', 'site-packages/.*/tests?/', *packages],
                   check=False, stderr=subprocess.DEVNULL)


def link_for_arm(venv):
    """MXNet looks for its libraries beside its own one first."""
    for mxnet in venv.glob('lib/python*/site-packages/mxnet'):
        for here, wanted in ARM.items():
            [found, *_] = [folder / here for folder in FOLDERS
                           if (folder / here).exists()]
            (mxnet / wanted).unlink(missing_ok=True)
            (mxnet / wanted).symlink_to(found)


def try_it(venv, module):
    done = subprocess.run([program(venv, 'python'), '-c', f'import {module}'],
                          text=True, stderr=subprocess.PIPE)
    if done.returncode:
        refuse('everything is installed, but does not start:\n'
               + (done.stderr.strip().splitlines() or ['killed'])[-1])


def install(venv, words, size, requirements, module):
    """Install into a venv; `size` in MB is what it takes on the disk."""
    try:
        prepare(venv, size)
        print(f'd2lps: installing into {venv} what {words} {size} MB of disk, '
              'the first time', flush=True)
        fill(venv, requirements, module)
    except (SystemExit, OSError):  # but Ctrl-C goes on from here, later
        bring_back(venv)
        raise
    shutil.rmtree(aside(venv), ignore_errors=True)


def fill(venv, requirements, module):
    pip(venv, *requirements)
    if venv != BOOK:  # which reads the package where it is
        pip(venv, '--no-deps', '--no-build-isolation', '-e', '.')
    if venv == VENV:  # for half as many packages, imports do it soon enough
        compile_packages(venv)
        if (platform.system(), platform.machine()) == ('Linux', 'aarch64'):
            link_for_arm(venv)
    try_it(venv, module)


def light():
    """What needs no MXNet: plans, and clusters without servers.

    JupyterLab begins with the first such chapter.
    """
    install(LIGHT, 'chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19 need: 100 MB '
            'to download and', 400, ['-r', 'requirements-light.lock'],
            'd2lps.pictures')
    settings = LIGHT / 'etc' / 'jupyter'
    shutil.copytree('setup/jupyter', settings, dirs_exist_ok=True)
    lab = settings / 'jupyter_lab_config.json'
    lab.write_text(lab.read_text().replace('index', '03-where-to-sum'))
    (LIGHT / 'installed').touch()
    if 'MAKELEVEL' not in os.environ:
        print(f'd2lps: done. Now:\n    {program(LIGHT, "jupyter")} lab '
              'notebooks')


def book():
    install(BOOK, 'the book needs:', 250, ['-r', 'requirements-book.lock'],
            'sphinx')
    (BOOK / 'installed').touch()


def lab(stamp, requirements):
    words, size = (('need: 200', 900) if stamp == 'installed' else
                   ('and the tests need: 260', 1200))
    install(VENV, f'the notebooks {words} MB to download and', size,
            requirements, 'd2lps.engine')
    for done in {'installed', stamp}:  # who has the tests' has all
        (VENV / done).touch()


def torch(venv):
    """PyTorch, beside what is in a venv already."""
    if (sys.platform, platform.machine()) == ('darwin', 'x86_64'):
        refuse("there is no PyTorch any more for Intel's Macs. On Apple "
               'silicon: make lab-light TORCH=yes')
    # On Linux CUDA's libraries come along.
    download, size = (3100, 5500) if sys.platform == 'linux' else (150, 700)
    failing.if_full(size)
    print(f'd2lps: adding PyTorch to {venv}: about {download} MB to download '
          f'and {size} MB of disk, once', flush=True)
    pip(venv, '-r', 'requirements-torch.lock')
    compile_packages(venv)  # a grading's imports may not write
    try_it(venv, 'torch')
    (venv / 'torch').touch()


def main(stamp, *requirements):
    os.chdir(Path(__file__).resolve().parents[1])
    if sys.version_info < (3, 11):  # noqa: UP036 (nobody has looked before)
        refuse(f'needs Python 3.11 or later, and this is {VERSION}')
    others = {'light': (LIGHT, light, 'installed'),
              'book': (BOOK, book, 'installed'),
              'torch': (VENV, lambda: torch(VENV), 'torch'),
              'light-torch': (LIGHT, lambda: torch(LIGHT), 'torch')}
    look([] if stamp in others else LIBRARIES)
    venv, make, name = others.get(
        stamp, (VENV, lambda: lab(stamp, requirements), stamp))
    done = venv / name
    began = time.time()
    with turn('setup/install.py'):
        # Whoever was waited for may have made the same.
        if not done.exists() or done.stat().st_mtime < began:
            make()


if __name__ == '__main__':
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    os.environ['PIP_USER'] = '0'
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit('d2lps: stopped; the same again goes on from here')
    except OSError as error:
        failing.of_system(error)
