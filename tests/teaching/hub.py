"""A hub as teaching/hub configures it, in which a teacher and a student work.

Its users are real ones, but only there: as root, the hub sees a list of users
that nobody else sees. Anybody else can be no other user: then all have the
same number, and the name that images for containers give them, jovyan.
"""
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import warnings
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import requests
import websocket

ROOT = Path(__file__).resolve().parents[2]
TEACHER, STUDENT = USERS = 'noether', 'lovelace'
NUMBERS = dict(zip(USERS, (61_001, 61_002)))
REAL = os.geteuid() == 0
START = 180  # seconds, of a busy machine
CONFIG = '''
load_subconfig({config!r})
c.JupyterHub.bind_url = 'http://127.0.0.1:{ports[0]}'
c.JupyterHub.hub_bind_url = 'http://127.0.0.1:{ports[1]}'
c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:{ports[2]}'
c.Spawner.environment['PYTHONPATH'] = {root!r}
c.Spawner.http_timeout = c.Spawner.start_timeout = {start}
'''
ONE_USER = '''
c.JupyterHub.authenticator_class = 'shared-password'
c.SharedPasswordAuthenticator.user_password = {password!r}
c.JupyterHub.spawner_class = 'simple'
c.SimpleLocalProcessSpawner.home_dir_template = '/home/{{username}}'
'''


def until(done, words, limit=START):
    deadline = time.monotonic() + limit
    while not (found := done()):
        assert time.monotonic() < deadline, f'{words}: not within {limit} s'
        time.sleep(0.2)
    return found


def free_ports(count):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Hub:
    """JupyterHub, its proxy and the servers of its users, in a folder.

    In there, `home` and `srv` are what /home and /srv are to the hub.
    """

    def __init__(self, folder):
        self.folder, self._password = folder, secrets.token_hex(16)
        for name in 'home', 'srv', 'srv/nbgrader', 'srv/nbgrader/exchange':
            (folder / name).mkdir()
        (folder / 'srv' / 'nbgrader' / 'exchange').chmod(0o777)
        (folder / 'state').mkdir(mode=0o700)
        for name, number in NUMBERS.items():
            (folder / 'home' / name).mkdir(mode=0o700)
            if REAL:
                os.chown(folder / 'home' / name, number, number)
        ports = free_ports(3)
        self.address = f'http://127.0.0.1:{ports[0]}'
        words = CONFIG + ('' if REAL else ONE_USER)
        (folder / 'state' / 'config.py').write_text(words.format(
            config=str(ROOT / 'teaching' / 'hub' / 'jupyterhub_config.py'),
            ports=ports, root=str(ROOT), start=START,
            password=self._password))
        view, self._said = self._view(), folder / 'state' / 'said'
        tried = subprocess.run([*view, 'true'], capture_output=True, text=True,
                               timeout=60)
        if tried.returncode:
            pytest.skip(f'no hub here: {tried.stderr.strip()[-200:]}')
        with open(self._said, 'w') as said:
            self._process = subprocess.Popen(
                [*view, sys.executable, '-m', 'jupyterhub', '-f',
                 'config.py'],
                env={'PATH': os.defpath, 'LANG': 'C.UTF-8', 'HOME': '/root',
                     'PYTHONPATH': str(ROOT)},
                stdout=said, stderr=said)

    def _view(self):
        """The machine with users of our own, who can read what we run.

        Processes in there end with the first one, whatever they do.
        """
        files = []
        for name, words in self._users().items():
            path = self.folder / name
            path.write_text(words)
            path.chmod(0o600 if name == 'shadow' else 0o644)
            files += ['--ro-bind', str(path), f'/etc/{name}']
        opened = []
        for path in dict.fromkeys(map(Path, (
                sys.base_prefix, sys.prefix, ROOT, self.folder))):
            closed = [one for one in [*reversed(path.parents), path]
                      if not one.stat().st_mode & 0o001]
            if closed:
                opened.append((closed[0], path))
        words = ['bwrap', '--dev-bind', '/', '/', '--unshare-pid',
                 '--die-with-parent', '--cap-add', 'CAP_SYS_ADMIN']
        for top in dict.fromkeys(top for top, _ in opened):
            words += ['--perms', '0755', '--tmpfs', str(top)]
        for top, path in opened:
            for one in [*reversed(path.parents)]:  # or they are root's alone
                if top in one.parents:
                    words += ['--perms', '0755', '--dir', str(one)]
            words += ['--bind', str(path), str(path)]
        for name in 'home', 'srv':
            words += ['--bind', str(self.folder / name), f'/{name}']
        # bwrap's own /proc would be too little for the bwrap of a grading.
        less = '' if REAL else 'setpriv --inh-caps=-all --ambient-caps=-all '
        return [*words, *files, '--chdir', str(self.folder / 'state'), 'sh',
                '-c', f'mount -t proc proc /proc && exec {less}"$@"', 'sh']

    def _users(self):
        """What the hub finds in /etc."""
        if not REAL:
            return {'passwd': f'jovyan:x:{os.getuid()}:{os.getgid()}::/home:'
                    '/bin/bash\n'}
        with warnings.catch_warnings():  # it goes with Python 3.13
            warnings.simplefilter('ignore')
            import crypt
        word = crypt.crypt(self._password)
        users = {'passwd': '{0}:x:{1}:{1}::/home/{0}:/bin/bash\n',
                 'group': '{0}:x:{1}:\n', 'shadow': '{0}:{2}:1::::::\n'}
        return {name: Path('/etc', name).read_text() + ''.join(
            form.format(user, number, word)
            for user, number in NUMBERS.items())
            for name, form in users.items()}

    def is_up(self):
        assert self._process.poll() is None, self.said()
        try:
            return requests.get(f'{self.address}/hub/api', timeout=30).ok
        except requests.ConnectionError:
            return False

    def said(self):
        return self._said.read_text()

    def enter(self, user):
        """Log in on the hub's page, have a server started: a `Desk` in it."""
        browser = requests.Session()
        browser.get(f'{self.address}/hub/login', timeout=60)
        came = browser.post(
            f'{self.address}/hub/login', timeout=60, allow_redirects=False,
            data={'username': user, 'password': self._password,
                  '_xsrf': browser.cookies['_xsrf']})
        assert came.status_code == 302, came.text
        browser.get(f'{self.address}/hub/home', timeout=60)
        made = browser.post(
            f'{self.address}/hub/api/users/{user}/tokens', timeout=60,
            headers={'X-XSRFToken': browser.cookies.get(
                '_xsrf', path='/hub/')}, json={})
        assert made.ok, made.text
        desk = Desk(self.address, user, made.json()['token'])
        desk.ask('POST', f'/hub/api/users/{user}/server')
        until(lambda: desk.ask('GET', f'/hub/api/users/{user}'
                               )['servers'].get('', {}).get('ready'),
              f'the server of {user} starts')
        return desk

    def end(self):
        """The first process in there; all others end with it."""
        self._process.kill()
        self._process.wait(30)


class Desk:
    """The server of somebody on the hub."""

    def __init__(self, address, user, token):
        self.user, self.token, self._address = user, token, address
        self.url = f'{address}/user/{user}'

    def ask(self, method, path, **more):
        answer = requests.request(
            method, self._address + path, timeout=60,
            headers={'Authorization': f'token {self.token}'}, **more)
        assert answer.ok, f'{path}: {answer.status_code} {answer.text[:500]}'
        try:  # not all that is JSON says so
            return answer.json()
        except ValueError:
            return answer.text

    def types(self, command, limit=300):
        """What a command says in a new terminal of JupyterLab; it succeeds."""
        name = self.ask('POST', f'/user/{self.user}/api/terminals')['name']
        url = (f'{self.url}/terminals/websocket/{name}').replace('http', 'ws')
        with closing(websocket.create_connection(
                url, timeout=limit,
                header=[f'Authorization: token {self.token}'])) as terminal:
            terminal.send(json.dumps(['set_size', 50, 500]))
            terminal.send(json.dumps(
                ['stdin', f'{command}; echo "<$?>"\r']))
            said, deadline = '', time.monotonic() + limit
            while not (end := re.search(r'<(\d+)>', said)):
                assert time.monotonic() < deadline, f'{command}: {said}'
                kind, *words = json.loads(terminal.recv())
                said += ''.join(words) if kind == 'stdout' else ''
        assert end[1] == '0', said
        return said

    def writes(self, path, notebook):
        """Save a notebook, as JupyterLab does."""
        self.ask('PUT', f'/user/{self.user}/api/contents/{path}',
                 json={'type': 'notebook', 'content': notebook})

    def reads(self, path):
        return self.ask('GET', f'/user/{self.user}/api/contents/{path}'
                        )['content']


@contextmanager
def working(folder):
    hub = Hub(folder)
    try:
        until(hub.is_up, 'the hub starts')
        yield hub
    finally:
        hub.end()
