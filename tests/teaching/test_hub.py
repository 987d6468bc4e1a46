"""A teacher and a student on a hub, as teaching/README.md tells them.

The hub runs with the settings in teaching/hub, as root, with a list of users
of its own in place of the machine's.
"""
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import requests
import websocket
from handins import ROOT, answered

from teaching import walls

sys.path.append(str(ROOT / 'tests' / 'browser'))
from labserver import until

pytestmark = [pytest.mark.full, pytest.mark.skipif(
    sys.platform != 'linux' or os.geteuid() != 0 or bool(walls.problem()),
    reason='only root on Linux, with bubblewrap, can start a hub for others')]
USERS = {'noether': 61_001, 'lovelace': 61_002}
LIMIT = 180  # seconds, of a busy machine
TOKEN = 'a-token-of-this-test'
CONFIG = f'''
load_subconfig({str(ROOT / 'teaching' / 'hub' / 'jupyterhub_config.py')!r})
c.JupyterHub.bind_url = 'http://127.0.0.1:{{}}'
c.JupyterHub.hub_bind_url = 'http://127.0.0.1:{{}}'
c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:{{}}'
c.Spawner.environment['PYTHONPATH'] = {str(ROOT)!r}
c.Spawner.http_timeout = c.Spawner.start_timeout = {LIMIT}
c.JupyterHub.services = [{{{{'name': 'test', 'api_token': {TOKEN!r}}}}}]
c.JupyterHub.load_roles = [{{{{
    'name': 'test', 'services': ['test'],
    'scopes': ['admin:users', 'admin:servers', 'access:servers']}}}}]
'''
MAKE = ("from teaching.course import Course; "
        "Course.make('/home/noether/course', ['tree'])")


def ask(method, url, **more):
    answer = requests.request(method, url, timeout=60, headers={
        'Authorization': f'token {TOKEN}'}, **more)
    assert answer.ok, f'{url}: {answer.status_code} {answer.text[:500]}'
    try:  # not all that is JSON says so
        return answer.json()
    except ValueError:
        return answer.text


def view(folder):
    """A command in which others see what we run, and users are ours.

    In a folder, `home` and `srv` are what /home and /srv are in there.
    Processes in there end with the first one.
    """
    options = ['bwrap', '--dev-bind', '/', '/', '--unshare-pid',
             '--die-with-parent', '--cap-add', 'CAP_SYS_ADMIN']
    for path in map(Path, dict.fromkeys([
            sys.base_prefix, sys.prefix, str(ROOT), str(folder)])):
        parents = [*reversed(path.parents)]
        closed = [k for k, parent in enumerate(parents)
                  if not parent.stat().st_mode & 0o001]
        if closed:  # in its place a folder with nothing but this path in it
            for k, parent in enumerate(parents[closed[0]:]):
                if str(parent) not in options:
                    options += ['--perms', '0755', '--dir' if k else '--tmpfs',
                              str(parent)]
            options += ['--bind', str(path), str(path)]
    for name in 'home', 'srv':
        options += ['--bind', str(folder / name), f'/{name}']
    for name, form in (('passwd', '{0}:x:{1}:{1}::/home/{0}:/bin/bash\n'),
                       ('group', '{0}:x:{1}:\n')):
        text = Path('/etc', name).read_text() + ''.join(
            form.format(*user) for user in USERS.items())
        (folder / name).write_text(text)
        options += ['--ro-bind', str(folder / name), f'/etc/{name}']
    # bwrap's own /proc would be too little for the bwrap of a grading.
    return [*options, '--chdir', str(folder / 'state'), 'sh', '-c',
            'mount -t proc proc /proc && exec "$@"', 'sh']


@contextmanager
def running_hub(folder):
    """The address of a hub for the users, who have folders."""
    for name, mode in (('home', 0o755), ('srv', 0o755), ('state', 0o700),
                       ('srv/nbgrader', 0o755),
                       ('srv/nbgrader/exchange', 0o1777)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    for name, number in USERS.items():
        (folder / 'home' / name).mkdir(mode=0o700)
        os.chown(folder / 'home' / name, number, number)
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(3)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    (folder / 'state' / 'config.py').write_text(CONFIG.format(*ports))
    with open(folder / 'said', 'w') as said:
        hub = subprocess.Popen(
            [*view(folder), sys.executable, '-m', 'jupyterhub', '-f',
             'config.py'], stdout=said, stderr=said,
            env={'PATH': os.defpath, 'LANG': 'C.UTF-8', 'HOME': '/root',
                 'PYTHONPATH': str(ROOT)})

    def is_up():
        assert hub.poll() is None, (folder / 'said').read_text()
        try:
            return requests.get(f'{address}/hub/api', timeout=30).ok
        except requests.ConnectionError:
            return False

    address = f'http://127.0.0.1:{ports[0]}'
    try:
        until(is_up, 'the hub starts')
        yield address
    finally:
        hub.kill()
        hub.wait(30)


class Desk:
    """The JupyterLab of somebody on the hub."""

    def __init__(self, address, user):
        api = f'{address}/hub/api/users/{user}'
        self._url = f'{address}/user/{user}'
        ask('POST', api)
        ask('POST', f'{api}/server')
        until(lambda: ask('GET', api)['servers'].get('', {}).get('ready'),
              f'the server of {user} starts')

    def types(self, command):
        """What a command says in a new terminal; it succeeds."""
        name = ask('POST', f'{self._url}/api/terminals')['name']
        url = f'{self._url}/terminals/websocket/{name}'.replace('http', 'ws')
        with closing(websocket.create_connection(url, timeout=LIMIT, header=[
                f'Authorization: token {TOKEN}'])) as terminal:
            terminal.send(json.dumps(['set_size', 50, 500]))
            terminal.send(json.dumps(
                ['stdin', f'{command}; echo "<$?>"\r']))
            said, deadline = '', time.monotonic() + LIMIT
            while not (end := re.search(r'<(\d+)>', said)):
                assert time.monotonic() < deadline, f'{command}: {said}'
                kind, *texts = json.loads(terminal.recv())
                said += ''.join(texts) if kind == 'stdout' else ''
        assert end[1] == '0', said
        return said

    def writes(self, path, notebook):
        """Save a notebook, as JupyterLab does."""
        ask('PUT', f'{self._url}/api/contents/{path}',
            json={'type': 'notebook', 'content': notebook})

    def reads(self, path):
        return ask('GET', f'{self._url}/api/contents/{path}')['content']


def test_from_release_to_feedback(tmp_path):
    """What both type into terminals of JupyterLab on the hub."""
    with running_hub(tmp_path) as address:
        teacher, student = (Desk(address, user) for user in USERS)
        teacher.types(f'cd {ROOT} && python -c "{MAKE}"')
        teacher.types('cd ~/course && nbgrader release_assignment tree')
        student.types('nbgrader fetch_assignment tree')
        given = student.reads('tree/tree.ipynb')
        assert 'write your answer here' in str(given)
        student.writes('tree/tree.ipynb', answered())
        student.types('nbgrader submit tree')
        said = teacher.types('cd ~/course && nbgrader collect tree')
        assert 'lovelace' in said and 'cheating' not in said
        said = teacher.types(f'cd {ROOT} && python -m teaching.grade '
                             '~/course/submitted --to ~/graded')
        assert '1 student, 1 notebook graded' in said
        teacher.types(f'cd {ROOT} && python -m teaching.handback ~/graded '
                      '~/course')
        teacher.types('cd ~/course && nbgrader release_feedback tree')
        student.types('nbgrader fetch_feedback tree')
        [page] = [entry['path'] for folder in student.reads('tree/feedback')
                  for entry in student.reads(folder['path'])]
        assert 'Exercises: lovelace' in student.reads(page)
        assert '10 of 10' in student.reads(page)
        for folder in ('/home/noether/course',
                       '/srv/nbgrader/exchange/d2lps/inbound'):
            said = student.types(f'ls {folder} || true')
            assert 'Permission denied' in said
