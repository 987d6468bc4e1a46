"""`make lab`, as a reader does whose home is new, with copies of notebooks."""
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import psutil

ROOT = Path(__file__).parents[2]
# In every Python of the server and its kernels: whom it looks for.
SPY = '''
    import sys
    def spy(event, arguments):
        if event == 'socket.getaddrinfo':
            note(arguments[0])
        elif event == 'socket.connect' and isinstance(arguments[1], tuple):
            note(arguments[1][0])
    def note(host):
        with open({path!r}, 'a') as file:
            print(host, file=file)
    sys.addaudithook(spy)
'''
# Ends the server when the tests have ended, in whatever way.
GUARD = """if True:
    import contextlib, os, signal, sys
    sys.stdin.read()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(int(sys.argv[1]), signal.SIGTERM)
"""
START = 180  # seconds, of a busy machine


def until(done, words, limit=START):
    """Wait until `done` is true, and return that; say what took too long."""
    deadline = time.monotonic() + limit
    while not (found := done()):
        if time.monotonic() > deadline:
            words = words if isinstance(words, str) else words()
            raise AssertionError(f'{words}: not within {limit} s')
        time.sleep(0.1)
    return found


class Server:
    """JupyterLab, and the folder of its notebooks: copies, without outputs."""

    def __init__(self, folder):
        self.notebooks, self.spied = folder / 'notebooks', folder / 'hosts'
        self.token, self._said = secrets.token_hex(16), folder / 'said'
        shutil.copytree(ROOT / 'notebooks', self.notebooks,
                        ignore=shutil.ignore_patterns('.ipynb_checkpoints'))
        for path in self.notebooks.rglob('*.ipynb'):
            notebook = nbformat.read(path, 4)
            for cell in notebook.cells:
                if cell.cell_type == 'code':
                    cell.update(outputs=[], execution_count=None)
            nbformat.write(notebook, path)
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        self.address = f'http://127.0.0.1:{port}'
        self.spied.touch()
        (folder / 'sitecustomize.py').write_text(
            textwrap.dedent(SPY.format(path=str(self.spied))))
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(('JUPYTER', 'MAKE', 'MFLAGS'))}
        with open(self._said, 'w') as said:
            self._process = subprocess.Popen(
                ['make', 'lab', f'ARGS=--no-browser --port={port} '
                 f"--ServerApp.root_dir='{self.notebooks}'",
                 f'PYTHONPATH={folder}{os.pathsep}{ROOT}'],
                cwd=ROOT, env=env | {
                    'HOME': str(folder), 'JUPYTER_TOKEN': self.token},
                start_new_session=True, stdout=said, stderr=said)
        self._guard = subprocess.Popen(
            [sys.executable, '-c', GUARD, str(self._process.pid)],
            stdin=subprocess.PIPE, start_new_session=True)

    def asked(self, path, method='GET'):
        """What the server answers; None as long as there is none."""
        request = urllib.request.Request(
            f'{self.address}/api{path}', method=method,
            headers={'Authorization': f'token {self.token}'})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or 'null')
        except OSError:
            assert self._process.poll() is None, (
                f'make lab ended:\n{self._said.read_text()}')

    def end(self):
        """Every process of it, by its number."""
        family = []
        if self._process.poll() is None:
            family = psutil.Process(self._process.pid).children(recursive=True)
        self._guard.communicate(timeout=30)
        for one in psutil.wait_procs(family, 30)[1]:
            one.kill()
        self._process.wait(timeout=30)


@contextmanager
def served(folder):
    # Whoever draws first makes a list of fonts, and warns when it takes long.
    import matplotlib.font_manager
    os.environ.setdefault('MPLCONFIGDIR', matplotlib.get_cachedir())
    server = Server(folder)
    try:
        until(lambda: server.asked('/status'), 'JupyterLab starts')
        yield server
    finally:
        server.end()
