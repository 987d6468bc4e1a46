"""The walls behind which a student's code runs; or none, and it runs as us.

Behind the walls of bubblewrap (https://github.com/containers/bubblewrap) there
is a bare file system: Python, our packages, a folder of its own. No
solutions, no other submissions, no network, no other processes.
"""
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from d2lps.exercises.checking import CASES

ROOT = Path(__file__).resolve().parents[1]
START = Path(__file__).with_name('start.py')
# Not all of /usr: a teacher's exchange may be in /usr/local/share.
SYSTEM = ('/usr/bin', '/usr/lib', '/usr/lib64', '/bin', '/lib', '/lib64',
          '/etc/ld.so.cache')
PYTHON = 'bin', 'lib', 'lib64'  # what it needs of its own folder
# When root grades, each notebook runs as a user of its own, because the limit
# of processes counts all those of a user. These numbers belong to no account.
FIRST_USER = 64_000
NOBODY = 65_534
MOST_SLOTS = 10
TRIES = 10  # to end processes that go on starting others


@functools.cache
def problem() -> str | None:
    """The reason why there are no walls on this machine, or None."""
    if not shutil.which('bwrap'):
        return ('the program bwrap is not here (Debian and Ubuntu: sudo apt '
                'install bubblewrap; Fedora: sudo dnf install bubblewrap)')
    error = _error_of('import d2lps', behind_walls=True)
    return None if error is None else f'bwrap does not work here: {error}'


def can_import(library: str, behind_walls: bool) -> bool:
    """Can students' code import it, where it runs?"""
    return _error_of(f'import {library}', behind_walls) is None


def _error_of(code: str, behind_walls: bool) -> str | None:
    """Python's message if code fails where students' code runs, or None."""
    walls = _walls(Path('/tmp')) if behind_walls else []
    try:
        done = subprocess.run([*walls, sys.executable, '-c', code], text=True,
                              timeout=120, capture_output=True,
                              env=environment(), cwd='/')
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.strip()[-300:] if done.returncode else None


def command(folder: Path, slot: int, behind_walls: bool) -> list[str]:
    """The command that starts a kernel, in a list.

    folder: the one that the kernel may write to. slot: a number that no other
    kernel has at the same time. behind_walls: if not, the limits stay.
    """
    user = NOBODY
    if os.geteuid() == 0:  # two gradings at a time have other users
        user = FIRST_USER + os.getpid() % 100 * MOST_SLOTS + slot
    # -P, or Python would import modules that lie beside START.
    return [*(_walls(folder) if behind_walls else ()), sys.executable, '-P',
            str(START), str(user if behind_walls else 0), '{connection_file}']


def end(kernel: psutil.Process, folder: Path | None = None) -> None:
    """End all processes that a kernel has started, and wait until they end.

    Also a process in a session of its own. kernel: the process of the kernel,
    or of the walls around it. folder: the kernel's, where there are no walls;
    then its environment tells of a process whose parent has ended.
    """
    for _ in range(TRIES):
        processes = _started_by(kernel, folder)
        if not processes:
            break
        for process in processes:
            with suppress(psutil.Error):  # it has just ended
                process.kill()
        psutil.wait_procs(processes, timeout=1)


def _started_by(kernel, folder):
    processes = []
    with suppress(psutil.Error):  # the kernel has ended before
        processes = kernel.children(recursive=True)
    for process in psutil.process_iter() if folder else ():
        with suppress(psutil.Error, OSError):  # another user's, or gone
            cases = process.environ().get(CASES, '')
            if Path(cases).parent == folder and process != kernel:
                processes.append(process)
    return [process for process in processes if _lives(process)]


def _lives(process):
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def environment() -> dict[str, str]:
    """The environment of a kernel: next to nothing of ours."""
    return {'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8', 'HOME': '/tmp',
            'PYTHONPATH': str(ROOT), 'PYTHONDONTWRITEBYTECODE': '1',
            'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1',
            # Or each thread takes 64 MiB of the addresses that it may have,
            # most of which PyTorch's libraries need.
            'MALLOC_ARENA_MAX': '1', 'MPLBACKEND': 'agg'}


def _walls(folder: Path) -> list[str]:
    """The command bwrap, with the files that can be seen, and the user.

    Root stays root until the limits are set, see `start`. Any other user gets
    a name space in which the code runs as nobody.
    """
    private = [] if os.geteuid() == 0 else [
        '--unshare-user', '--uid', str(NOBODY), '--gid', str(NOBODY)]
    pythons = [Path(prefix, name) for name in PYTHON
               for prefix in (sys.base_prefix, sys.prefix)]
    seen: list[Path] = [*map(Path, SYSTEM), *pythons]
    # This project may be below one of them, with solutions and submissions.
    covers = any(path in ROOT.parents for path in seen)
    seen += [Path(sys.prefix, 'pyvenv.cfg'), ROOT / 'd2lps', START]
    above = {parent for path in (*seen, folder) for parent in path.parents} - {
        Path('/'), Path('/tmp')}
    ways = [option for path in sorted(above)  # or /root would be root's alone
            for option in ('--perms', '0755', '--dir', str(path))]
    ours = [path for path in seen if ROOT in path.parents]
    others = [path for path in seen if path not in ours]
    cover = ['--tmpfs', str(ROOT)] if covers else []
    return ['bwrap', *private, '--unshare-pid', '--unshare-net',
            '--unshare-ipc', '--unshare-uts', '--die-with-parent',
            '--new-session', '--proc', '/proc', '--dev', '/dev',
            '--size', str(100 * 2 ** 20), '--perms', '1777',
            '--tmpfs', '/tmp', *ways, *_bound(others), *cover, *_bound(ours),
            *(['--remount-ro', str(ROOT)] if covers else ()),
            '--bind', str(folder), str(folder), '--remount-ro', '/',
            '--remount-ro', '/dev', '--chdir', '/tmp']


def _bound(paths: Iterable[Path]) -> list[str]:
    """Options of bwrap that show these files in there, if they are here."""
    return [option for path in dict.fromkeys(map(str, paths))
            for option in ('--ro-bind-try', path, path)]
