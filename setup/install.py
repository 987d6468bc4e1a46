"""Install what the notebooks or the tests need into .venv; make runs this.

    python setup/install.py [installed|installed-tests|torch|packages]

Any Python from 3.8 runs it. uv does the work: it installs what a lock names,
compares hashes, and brings a Python 3.11 where there is none. When all is
there and starts, the file .venv/installed is written, or the one named above.
(`packages` installs all but the project, for a layer of the container.)
"""
import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

VENV = Path(os.environ.get('VENV') or '.venv')
UV_VENV = Path('.venv-uv')  # for uv alone, where the system has none
# Megabytes: to download at first, and on the disk.
SIZES = {'packages': (250, 800), 'installed': (250, 800),
         'installed-tests': (450, 1600), 'torch': (150, 700)}
if sys.platform == 'linux':  # there with the libraries for NVIDIA's GPUs
    SIZES['torch'] = 3100, 5500
MACHINE = sys.platform, platform.machine()
MXNET_RUNS = sys.platform == 'linux' or MACHINE == ('darwin', 'x86_64')
WITHOUT_MXNET = 'chapters 3, 5, 6, 7, 11, 12, 14, 16 and 18 to 25'
# The Pythons for which the locks name wheels; see tests/test_project.py.
PYTHONS = (3, 11), (3, 15)
NO_VENV = "Python's module venv"
WITHOUT_SUDO = (" In place of Python's module venv, uv will do, and needs no "
                'root: pip install --user uv, or https://docs.astral.sh/uv. '
                'It must be in PATH, or be ~/.local/bin/uv.')
# What MXNet does not bring along, and its packages for Debian and Fedora.
LIBRARIES = {'libgomp.so.1': ('libgomp1', 'libgomp')}
# MXNet for ARM looks for libraries of Arm's compiler, under the names on the
# right. What it calls in them is in these of the system, too.
ARM = {}
if MACHINE == ('linux', 'x86_64'):
    LIBRARIES['libquadmath.so.0'] = 'libquadmath0', 'libquadmath'
elif MACHINE == ('linux', 'aarch64'):
    LIBRARIES['libopenblas.so.0'] = 'libopenblas0-openmp', 'openblas-serial'
    LIBRARIES['liblapacke.so.3'] = 'liblapacke', 'lapack'
    ARM = {'libopenblas.so.0': 'libarmpl_lp64_mp.so',
           'liblapacke.so.3': 'libastring.so', 'libm.so.6': 'libamath.so'}


def say(words):
    print(f'd2lps: {words}', flush=True)


def refuse(words):
    sys.exit(f'd2lps: {words}')


def succeeds(*command, **how):
    return not subprocess.run([str(one) for one in command], **how).returncode


def program(venv, name):
    folder, end = ('Scripts', '.exe') if os.name == 'nt' else ('bin', '')
    return venv / folder / f'{name}{end}'


def is_here(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


def find_uv():
    """The uv of this system, or ours, or None."""
    for uv in ('uv', program(UV_VENV, 'uv'),
               program(Path.home() / '.local', 'uv')):
        if shutil.which(uv) and succeeds(uv, '--version',
                                         stdout=subprocess.DEVNULL):
            return uv


def check_system():
    """Stop, before any download, if the system lacks something."""
    missing = {}
    if sys.platform == 'linux' and not os.environ.get('PYTHON'):
        missing = {library: packages for library, packages
                   in LIBRARIES.items() if not is_here(library)}
    if not importlib.util.find_spec('ensurepip') and not find_uv():
        missing[NO_VENV] = 'python3-venv', 'python3'
    if missing:
        how = 'Find it with what installs packages on this system.'
        for number, manager in enumerate(['apt', 'dnf']):
            if shutil.which(manager):
                how = ' '.join([f'    {manager} install', *(
                    packages[number] for packages in missing.values())])
        words = (f'this system lacks {", ".join(missing)}. Nothing was '
                 f'downloaded yet. First, as root (sudo):\n{how}\nThen the '
                 'same again.')
        if missing.keys() & LIBRARIES.keys():
            words += (f' For {WITHOUT_MXNET}, which need no MXNet, another '
                      'Python will do, too: make lab PYTHON=3.13')
        if NO_VENV in missing:
            words += WITHOUT_SUDO
        refuse(words)


def check_name(name):
    if name not in SIZES:
        refuse(f'setup/install.py installs {", ".join(SIZES)}; it was told '
               f'{name}')


def check_disk(name):
    needed, free = SIZES[name][1], shutil.disk_usage('.').free // 10**6
    if free < needed:
        refuse(f'this takes {needed} MB of disk, and {free} MB are free here. '
               'Nothing was downloaded yet.')


def refuse_after(who):
    refuse(f'{who} failed, and says why above. Is this machine connected to '
           'the Internet? Behind a proxy, set https_proxy. If your '
           'institution reads what is encrypted, set SSL_CERT_FILE (for uv) '
           'and PIP_CERT (for pip) to the file of its certificate.')


def get_uv():
    """Install uv by pip; its version and hashes are in a lock."""
    say('getting uv, which installs the rest (25 MB)')
    if not succeeds(sys.executable, '-m', 'venv', '--clear', UV_VENV):
        refuse('no environment for uv could be made')
    lock = Path('requirements-dev.lock').read_text()
    entry = UV_VENV / 'uv.txt'
    entry.write_text(re.search(r'^uv==.*(\n +--hash.*)+', lock, re.M)[0])
    if not succeeds(program(UV_VENV, 'python'), '-m', 'pip', 'install',
                    '--quiet', '--disable-pip-version-check',
                    '--require-hashes', '-r', entry):
        refuse_after('pip')
    return program(UV_VENV, 'uv')


def choose_python(uv):
    """The one that is named; else 3.11, for MXNet; else one of PYTHONS."""
    if os.environ.get('PYTHON'):
        return os.environ['PYTHON']
    wanted = '>=3.11,<3.12'
    if MXNET_RUNS:
        if succeeds(uv, 'python', 'find', '--system', wanted,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            return wanted
        say('there is no Python 3.11 here, which MXNet needs: uv gets one')
        if succeeds(uv, 'python', 'install', '3.11'):
            return wanted
        say('uv could not get it, so this goes on without MXNet. (Later: '
            f'remove {VENV}, and the same again.)')
    first, end = PYTHONS
    # Not sys.executable, which may be that of the .venv that is replaced.
    return (sys._base_executable if first <= sys.version_info < end else
            f'>={first[0]}.{first[1]},<{end[0]}.{end[1]}')


def is_ready():
    """Was .venv made in this folder, which its programs know; is its Python
    still there?"""
    try:
        made_in = os.fsdecode((VENV / 'folder').read_bytes())
        return (os.path.samefile(made_in, '.')
                and succeeds(program(VENV, 'python'), '-Ic', ''))
    except (OSError, ValueError):
        return False


def make_venv(uv):
    python = choose_python(uv)
    if VENV.exists():
        say(f'{VENV} was made in another folder, or its Python is gone: it is '
            'made anew')
        shutil.rmtree(VENV)
    VENV.mkdir()
    (VENV / 'folder').write_bytes(os.fsencode(os.getcwd()))
    if not succeeds(uv, 'venv', '--quiet', '--allow-existing', '--python',
                    python, VENV):
        refuse(f'uv has no Python "{python}". 3.11 to 3.14 will do, and '
               'MXNet needs 3.11: make lab PYTHON=/path/to/python')


def install(uv, names):
    """Make the packages in .venv those of the locks; add the project."""
    locks = ['requirements.lock']
    if 'installed-tests' in names:
        locks = ['requirements-dev.lock']
    if 'torch' in names:
        locks.append('requirements-torch.lock')
    python = ['--python', program(VENV, 'python')]
    # Wheels alone: nobody here has to compile.
    sync = [uv, 'pip', 'sync', *python, '--require-hashes', '--only-binary',
            ':all:', *locks]
    # What uv has downloaded before needs no network.
    if not (succeeds(*sync, '--offline', stderr=subprocess.DEVNULL)
            or succeeds(*sync)):
        refuse_after('uv')
    for mxnet in VENV.glob('lib/python*/site-packages/mxnet'):
        link_for_arm(mxnet)
    if not Path('pyproject.toml').exists():  # in a layer of the container
        return
    if not succeeds(uv, 'pip', 'install', '--quiet', *python, '--no-deps',
                    '--no-build-isolation', '--editable', '.'):
        refuse('uv could not install the project itself')


def link_for_arm(mxnet):
    """MXNet looks for its libraries beside its own one first."""
    for here, wanted in ARM.items():
        library = next((path for path in (
            Path('/usr/lib/aarch64-linux-gnu', here), Path('/usr/lib64', here))
            if path.exists()), None)
        if not library:
            refuse(f'MXNet needs the library {here}, and it is in neither '
                   '/usr/lib/aarch64-linux-gnu nor /usr/lib64. Without MXNet: '
                   f'remove {VENV}, then make lab PYTHON=3.13')
        (mxnet / wanted).unlink(missing_ok=True)
        (mxnet / wanted).symlink_to(library)


def try_it(names):
    """Import what was installed, and say what was not."""
    has_mxnet = any(VENV.glob('lib/python*/site-packages/mxnet'))
    modules = ['d2lps.engine' if has_mxnet else 'd2lps.pictures']
    if 'torch' in names:
        modules.append('torch')
    for module in modules:
        done = subprocess.run(
            [str(program(VENV, 'python')), '-c', f'import {module}'],
            stderr=subprocess.PIPE, text=True)
        if done.returncode:
            refuse('all is installed, but does not start:\n'
                   + (done.stderr.strip().splitlines() or ['killed'])[-1])
    if not has_mxnet:
        say(f'{WITHOUT_MXNET} are ready. The others need MXNet, which there '
            'is for Python 3.11 on Linux and on Macs with an Intel processor: '
            'see docs/install.md')


def main(name='installed'):
    os.chdir(Path(__file__).resolve().parents[1])
    check_name(name)
    with open_here('setup/install.py') as turn:
        wait_for(turn)
        if VENV.is_symlink() or (
                VENV.exists() and not (VENV / 'folder').exists()):
            refuse(f'{VENV} was not made here, but perhaps by an editor: give '
                   'it another name, or remove it')
        check_system()
        ready = is_ready()
        if not ready or not (VENV / name).exists():
            check_disk(name)
        uv = find_uv() or get_uv()
        if not ready:
            make_venv(uv)
        # What was installed before stays: the tests' tools, and PyTorch.
        names = {name, 'installed', *(one for one in SIZES
                                      if (VENV / one).exists())}
        download, disk = SIZES[name]
        say(f'uv installs what is missing in {VENV}: at first {download} MB '
            f'to download, and {disk} MB of disk')
        install(uv, names)
        if name == 'packages':
            return
        try_it(names)
        for stamp in names:
            (VENV / stamp).touch()
    if 'MAKELEVEL' not in os.environ:  # as on Windows
        shutil.copytree('setup/jupyter', VENV / 'etc' / 'jupyter',
                        dirs_exist_ok=True)
        say(f'done. Now: {program(VENV, "jupyter")} lab notebooks')


def open_here(name):
    """A file of this folder, to write to it."""
    try:
        return open(name, 'a')
    except OSError as error:
        refuse(f'you cannot write into the folder {os.getcwd()} '
               f'({error.strerror}), and what is installed goes there. Make a '
               'copy of it that is yours, and go on there.')


def wait_for(turn):
    """One installation at a time: hold this file until it is closed."""
    try:
        import fcntl
    except ImportError:  # on Windows
        return
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say('another make is installing here; waiting for it')
        fcntl.flock(turn, fcntl.LOCK_EX)
    except OSError:  # a disk without locks
        pass


if __name__ == '__main__':
    os.environ.setdefault('PIP_RETRIES', '1')  # no minutes without a network
    for setting in 'PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT', 'PIP_USER':
        os.environ.pop(setting, None)  # which lead elsewhere
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        refuse('stopped; the same again goes on from here')
    except OSError as error:
        refuse(f'the installation failed: {error}')
