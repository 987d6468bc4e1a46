"""Docker, Dev Containers, Binder and GitHub: what shows without them.

The job `container` of the workflow builds the image, starts it, and waits
until it is healthy. Here are those things that would go wrong in silence, and
the scripts.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
[LAB] = yaml.safe_load((ROOT / 'compose.yaml').read_text())[
    'services'].values()
# YAML takes the word on for true.
WORKFLOW = yaml.safe_load(
    (ROOT / '.github' / 'workflows' / 'test.yml').read_text())
BINDER = ROOT / '.binder'
LIMIT = 300  # seconds, which only what hangs takes


def test_only_this_machine_reaches_the_container_and_it_may_do_little():
    assert all(port.startswith('127.0.0.1:') for port in LAB['ports'])
    assert LAB['cap_drop'] == ['ALL'] and 'privileged' not in LAB
    assert 'no-new-privileges:true' in LAB['security_opt']


def test_no_secret_is_fixed_or_empty_anywhere():
    """JupyterLab makes one, if nobody gives it one."""
    files = [ROOT / 'Dockerfile', ROOT / 'compose.yaml', *(
        path for folder in ('.binder', 'setup', '.devcontainer', '.github')
        for path in (ROOT / folder).rglob('*')
        if path.is_file() and path.suffix != '.pyc')]
    for file in files:
        assert not re.search(
            r'(?i)(identityprovider|app)\.(token|password)|jupyter_token|'
            r'"(token|password)"|hashed_password', file.read_text()), file


@pytest.mark.full
def test_a_container_s_lab_shows_its_secret_and_asks_for_it(tmp_path):
    """setup/container.sh, with JupyterLab itself."""
    (tmp_path / 'notebooks').mkdir()
    shutil.copytree(ROOT / 'setup', tmp_path / 'setup')
    # These tests may be root; the container is not.
    root = tmp_path / 'root'
    root.mkdir()
    (root / 'jupyter_server_config.json').write_text(
        '{"ServerApp": {"allow_root": true}}')
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    folder = Path(sys.executable).parent
    env = {**os.environ, 'PATH': f'{folder}:{os.environ["PATH"]}',
           'JUPYTER_CONFIG_PATH': f'{tmp_path}/setup/jupyter:{root}',
           'JUPYTER_PORT': str(port), 'HOME': str(tmp_path)}
    log = tmp_path / 'log'
    with log.open('w') as file:
        lab = subprocess.Popen(['sh', 'setup/container.sh'], env=env,
                               cwd=tmp_path, stdout=file, stderr=file,
                               stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT
        line = rf'^ +(http://127\.0\.0\.1:{port}/lab\S*\?token=[0-9a-f]{{48}})$'
        while not (found := re.search(line, log.read_text(), re.M)):
            assert lab.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        address = found[1]
        # No address that only the container knows.
        assert {*re.findall(r'https?://\S+', log.read_text())} == {address}
        assert 'may not write' not in log.read_text()
        assert '/lab/tree/index.ipynb?' in address  # setup/jupyter is read

        def status(address, **headers):
            request = urllib.request.Request(address, headers=headers)
            while True:
                try:
                    with urllib.request.urlopen(request, timeout=LIMIT) as got:
                        return got.status
                except urllib.error.HTTPError as error:
                    return error.code
                except urllib.error.URLError:  # shown before it listens
                    assert lab.poll() is None, log.read_text()
                    assert time.monotonic() < deadline, log.read_text()
                    time.sleep(0.1)
        contents = f'http://127.0.0.1:{port}/api/contents?'
        secret = address.partition('?')[2]
        assert status(contents) == 403
        assert status(contents + secret) == 200
        assert status(contents.replace('127.0.0.1', 'localhost') + secret
                      ) == 200
        assert status(contents + secret, Host=f'elsewhere.example:{port}'
                      ) == 403
        lab.send_signal(signal.SIGTERM)  # what Ctrl-C does to a container
        assert lab.wait(timeout=LIMIT) is not None
    finally:
        lab.kill()
        lab.wait()


def test_a_folder_that_is_not_the_reader_s_is_told(tmp_path):
    (tmp_path / 'jupyter').write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / 'jupyter').chmod(0o755)
    env = {'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'JUPYTER_PORT': '1'}
    script = ['sh', ROOT / 'setup' / 'container.sh']
    said = subprocess.run(script, cwd=tmp_path, env=env, text=True, check=True,
                          stdout=subprocess.PIPE, timeout=LIMIT).stdout
    assert f'user {os.geteuid()} may not write to the notebooks' in said
    assert 'READER_UID=$(id -u) READER_GID=$(id -g) docker compose up' in said
    assert 'lab notebooks --no-browser --ip=0 ' in said  # all the same


def test_binder_s_scripts_run():
    for name in ('postBuild', 'start'):
        assert os.access(BINDER / name, os.X_OK)
        subprocess.run(['sh', '-n', BINDER / name], check=True, timeout=LIMIT)
    said = subprocess.run(
        [BINDER / 'start', 'sh', '-c', 'echo "$JUPYTER_CONFIG_PATH"'],
        text=True, check=True, stdout=subprocess.PIPE, timeout=LIMIT,
        env={**os.environ, 'REPO_DIR': str(ROOT),
             'JUPYTER_CONFIG_PATH': '/another'}).stdout
    assert said == f'{ROOT}/setup/jupyter:/another\n'


def test_the_workflow_may_read_and_publishes_from_main_alone():
    on = WORKFLOW[True]
    assert on['push'] == {'branches': ['main']} and 'pull_request' in on
    assert 'pull_request_target' not in on
    assert WORKFLOW['permissions'] == {'contents': 'read'}
    more = {name: job['permissions'] for name, job in WORKFLOW['jobs'].items()
            if 'permissions' in job}
    assert more == {'publish': {'pages': 'write', 'id-token': 'write'}}
    publish = WORKFLOW['jobs']['publish']
    assert "github.ref == 'refs/heads/main'" in publish['if']
    # Not what tries other systems: an image of theirs may be gone.
    assert publish['needs'] == ['test', 'book']
