"""Docker, Dev Containers, Binder and GitHub: what shows without them.

None of them is here when these tests run. So their files are read as they
read them, and the scripts in them are run.
"""
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / 'setup'))
spec = importlib.util.spec_from_file_location(
    'install', ROOT / 'setup' / 'install.py')
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)
INSTRUCTIONS = {'FROM', 'ARG', 'RUN', 'USER', 'WORKDIR', 'COPY', 'ENV',
                'EXPOSE', 'HEALTHCHECK', 'CMD'}
# What is on a plain Debian already, and what README adds for a clone.
THERE, MORE = {'libstdc++6', 'libc6'}, {'make'}


def steps():
    """[[instruction, arguments], ...] of the Dockerfile, in order."""
    lines = [line for line in (ROOT / 'Dockerfile').read_text().splitlines()
             if not line.lstrip().startswith('#')]
    text = re.sub(r'\\\n\s*', '', '\n'.join(lines))
    return [line.split(maxsplit=1) for line in text.splitlines() if line]


STEPS = steps()
COMPOSE = yaml.safe_load((ROOT / 'compose.yaml').read_text())
[LAB] = COMPOSE['services'].values()
# YAML takes the word on for true.
WORKFLOW = yaml.safe_load(
    (ROOT / '.github' / 'workflows' / 'test.yml').read_text())
BINDER = ROOT / '.binder'
DEVCONTAINER = json.loads(re.sub(
    r'^\s*//.*\n', '',
    (ROOT / '.devcontainer' / 'devcontainer.json').read_text(), flags=re.M))
each_job = pytest.mark.parametrize('job', WORKFLOW['jobs'])


def all_of(instruction):
    return [words for name, words in STEPS if name == instruction]


def stages():
    return {words.split(' AS ')[1]: words.split(' AS ')[0]
            for words in all_of('FROM')}


def sources(words):
    """What a COPY copies, of the clone."""
    return [word for word in words.split() if not word.startswith('--')][:-1]


def packages(text):
    """The names of Debian's packages after apt-get install."""
    words = re.search(r'apt-get install (.*?)(&&|$)', text)[1].split()
    return {word for word in words if word[0] not in '-$'}


def needed():
    """What setup/install.py would name if nothing was there.

    On x86-64, and on ARM.
    """
    names = dict(install.MANAGERS['apt-get'][1])
    arm = {names.pop(library) for library in install.ARM} - THERE
    others = {*names.values()} - THERE
    return others, others - {'libquadmath0'} | arm


def make_targets():
    text = (ROOT / 'Makefile').read_text().replace('$(VENV)', '.venv')
    return {target for line in re.findall(r'^([^\s#=][^=:]*):(?!=)', text,
                                          re.M) for target in line.split()}


def making(text):
    """The targets of make in a script."""
    return re.findall(r'(?:^|[\s;&])make ([.\w/-]+)', text)


def test_the_dockerfile_is_read_as_it_was_written():
    assert {name for name, _ in STEPS} == INSTRUCTIONS
    assert stages() == {'system': 'debian:12-slim', 'lab': 'system'}
    assert STEPS[0][0] == 'FROM'


def test_what_is_copied_is_there_and_not_ignored():
    copied = [source for words in all_of('COPY') for source in sources(words)]
    assert copied[-1] == '.' and 'requirements.lock' in copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert not ignored(source), source


def test_nobody_is_root():
    user = None
    for name, words in STEPS:
        if name == 'USER':
            user = words
        if name == 'COPY':
            assert '--chown=reader:reader' in words, words
    assert all_of('USER') == [user] == ['reader']
    assert {'READER_UID=1000', 'READER_GID=1000'} <= {*all_of('ARG')}
    [adding] = [words for words in all_of('RUN') if 'useradd' in words]
    # useradd itself refuses the number of somebody who is there, such as 0.
    assert 'non-unique' not in adding.partition('useradd')[2]


def test_debian_s_packages_are_those_that_the_installer_names():
    system = all_of('RUN')[0]
    [arm, others] = re.findall(r'MORE="\$MORE (.*?)"', system)
    assert [packages(system) | {*names.split()} for names in (others, arm)
            ] == [names | MORE for names in needed()]
    assert '--no-install-recommends' in system
    assert 'rm -rf /var/lib/apt/lists/*' in system
    apt = (BINDER / 'apt.txt').read_text().split()
    assert {*apt} == {name for name in needed()[0] if name.startswith('lib')}
    [linux] = [step['run'] for step in WORKFLOW['jobs']['test']['steps']
               if 'apt-get install' in step.get('run', '')]
    assert {*apt} <= packages(linux.replace('\\\n', ' ').replace(
        '\n', ' && '))


def test_a_changed_notebook_installs_nothing_anew():
    """And a changed package downloads nothing."""
    order = [(name, words) for name, words in STEPS if name in ('RUN', 'COPY')]
    [everything] = [k for k, (name, words) in enumerate(order)
                    if name == 'COPY' and sources(words) == ['.']]
    assert everything == len(order) - 1
    [download] = [k for k, (name, words) in enumerate(order)
                  if name == 'RUN' and 'pip install' in words]
    before = [source for name, words in order[:download] if name == 'COPY'
              for source in sources(words)]
    assert before == ['requirements.lock']
    words = order[download][1]
    assert {'--require-hashes', '--no-cache-dir'} <= {*words.split()}
    # So that setup/install.py takes this .venv for its own, and as it is.
    assert 'printf %s "$PWD" > .venv/folder' in words
    assert "-x 'site-packages/.*/tests?/'" in words


@pytest.mark.processes
def test_what_is_copied_first_is_all_that_the_installation_reads(tmp_path):
    for words in all_of('COPY')[:-1]:
        for name in sources(words):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, tmp_path / name)
    [target] = making(next(words for words in all_of('RUN')
                           if 'make .venv' in words))
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('MAKE', 'MFLAGS'))}
    said = subprocess.run(['make', '-n', target], cwd=tmp_path, text=True,
                          capture_output=True, timeout=60, env=env)
    assert said.returncode == 0, said.stderr
    assert 'setup/install.sh installed -r requirements.lock' in said.stdout
    readme = (ROOT / 'pyproject.toml').read_text()
    assert 'readme = "README.md"' in readme
    assert (tmp_path / 'README.md').exists()


def answers_to(pattern, path):
    """Does a line of .dockerignore mean this path, or a folder it is in?"""
    expression = re.escape(pattern).replace(r'\*\*/', '(.*/)?').replace(
        r'\*', '[^/]*')
    return re.match(f'{expression}(/|$)', path)


def ignored(path):
    lines = (ROOT / '.dockerignore').read_text().splitlines()
    return any(answers_to(line, path) for line in lines
               if line and not line.startswith('#'))


@pytest.mark.parametrize('path', [
    '.git/config', '.venv/bin/python', '.venv-book/x', '.venv-light/x',
    'docs/_build/html/index.html', 'notebooks/.ipynb_checkpoints/a.ipynb',
    'd2lps/__pycache__/settings.pyc', 'd2lps.egg-info/PKG-INFO',
    'release/x', 'graded/x'])
def test_the_image_leaves_out(path):
    assert ignored(path)


def test_the_image_leaves_out_what_git_ignores_and_nothing_that_is_used():
    for line in (ROOT / '.gitignore').read_text().split():
        assert ignored(line.strip('/').replace('*', 'some')), line
    for path in ('Makefile', 'README.md', 'requirements-test.lock',
                 'notebooks/index.ipynb', 'docs/teaching.md', 'conftest.py',
                 'tests/test_containers.py', 'setup/jupyter', '.gitignore',
                 '.github/workflows/test.yml', '.binder/start', '.ci/run',
                 '.devcontainer/devcontainer.json', 'compose.yaml'):
        assert not ignored(path) and (ROOT / path).exists(), path


def test_only_this_machine_reaches_the_container():
    [port] = LAB['ports']
    inside = '${D2LPS_PORT:-8888}'
    assert port == f'127.0.0.1:{inside}:{inside}'
    assert LAB['environment'] == {'JUPYTER_PORT': inside}
    assert all_of('EXPOSE') == ['8888']
    assert 'JUPYTER_PORT=8888' in all_of('ENV')[0].split()


def test_the_container_asks_for_no_privileges():
    assert LAB.keys() == {'build', 'ports', 'environment', 'volumes', 'init',
                          'cap_drop', 'security_opt'}
    assert LAB['cap_drop'] == ['ALL'] and LAB['init'] is True
    assert LAB['security_opt'] == ['no-new-privileges:true']


def test_compose_builds_and_mounts_what_the_dockerfile_has():
    build = LAB['build']
    assert build['target'] == [*stages()][-1]
    assert build['args'] == {name: f'${{{name}:-1000}}' for name in (
        'READER_UID', 'READER_GID')}
    [volume] = LAB['volumes']
    [home] = all_of('WORKDIR')
    assert volume == f'./notebooks:{home}/notebooks:z'
    path, config = all_of('ENV')[0].split()[:2]
    assert path == f'PATH={home}/.venv/bin:$PATH'
    assert config == f'JUPYTER_CONFIG_PATH={home}/setup/jupyter'
    assert (ROOT / 'setup' / 'jupyter').is_dir()


def test_no_secret_is_fixed_or_empty_anywhere():
    """JupyterLab makes one, if nobody gives it one."""
    files = [ROOT / 'Dockerfile', ROOT / 'compose.yaml']
    for folder in (BINDER, ROOT / 'setup', ROOT / '.devcontainer',
                   ROOT / '.github'):
        found = [path for path in folder.rglob('*') if path.is_file()
                 and path.suffix != '.pyc']
        assert found, folder
        files += found
    for file in files:
        assert not re.search(
            r'(?i)(identityprovider|app)\.(token|password)|jupyter_token|'
            r'"(token|password)"|hashed_password', file.read_text()), file


@pytest.mark.processes
def test_the_health_check_tells_a_lab_that_answers(tmp_path):
    [command] = all_of('HEALTHCHECK')
    python, *words = json.loads(command.partition('CMD')[2])
    assert python == 'python'
    codes = iter([200, 500])
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(next(codes))
            self.end_headers()

    def health(port):
        return subprocess.run([sys.executable, *words], timeout=60,
                              stderr=subprocess.DEVNULL, env={
                                  **os.environ, 'JUPYTER_PORT': str(port)}
                              ).returncode == 0
    with HTTPServer(('127.0.0.1', 0), Answer) as server:
        port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert health(port)
        assert not health(port)
        server.shutdown()
    assert asked == ['/api'] * 2
    assert not health(port)


@pytest.mark.processes
def test_a_container_s_lab_shows_its_secret_and_asks_for_it(tmp_path):
    """setup/container.sh, with JupyterLab itself."""
    [command] = all_of('CMD')
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
        lab = subprocess.Popen(json.loads(command), cwd=tmp_path, env=env,
                               stdout=file, stderr=file,
                               stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 90
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
            try:
                return urllib.request.urlopen(request, timeout=30).status
            except urllib.error.HTTPError as error:
                return error.code
        contents = f'http://127.0.0.1:{port}/api/contents?'
        secret = address.partition('?')[2]
        assert status(contents) == 403
        assert status(contents + secret) == 200
        assert status(contents.replace('127.0.0.1', 'localhost') + secret
                      ) == 200
        assert status(contents + secret, Host=f'elsewhere.example:{port}'
                      ) == 403
        lab.send_signal(signal.SIGTERM)  # what Ctrl-C does to a container
        assert lab.wait(timeout=30) is not None
    finally:
        lab.kill()
        lab.wait()


@pytest.mark.processes
def test_a_folder_that_is_not_the_reader_s_is_told(tmp_path):
    (tmp_path / 'jupyter').write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / 'jupyter').chmod(0o755)
    env = {'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'JUPYTER_PORT': '1'}
    script = ['sh', ROOT / 'setup' / 'container.sh']
    said = subprocess.run(script, cwd=tmp_path, env=env, text=True, check=True,
                          stdout=subprocess.PIPE, timeout=30).stdout
    assert f'user {os.geteuid()} may not write to the notebooks' in said
    assert 'READER_UID=$(id -u) READER_GID=$(id -g) docker compose up' in said
    assert 'lab notebooks --no-browser --ip=0 ' in said  # all the same


def test_dev_containers_use_the_same_dockerfile():
    build = DEVCONTAINER['build']
    folder = ROOT / '.devcontainer'
    assert (folder / build['dockerfile']).resolve() == ROOT / 'Dockerfile'
    assert (folder / build['context']).resolve() == ROOT
    assert build['target'] in stages()
    known = {words.partition('=')[0] for words in all_of('ARG')}
    assert build['args'].keys() <= known and 'git' in build['args']['MORE']
    assert DEVCONTAINER['remoteUser'] == all_of('USER')[0]
    assert DEVCONTAINER['forwardPorts'] == [int(all_of('EXPOSE')[0])]
    [target] = making(DEVCONTAINER['updateContentCommand'])
    assert target in make_targets()
    editor = DEVCONTAINER['customizations']['vscode']
    assert {'ms-python.python', 'ms-toolsai.jupyter'} == {
        *editor['extensions']}
    assert f'/{Path(target).parent}/bin/python' in editor['settings'][
        'python.defaultInterpreterPath']


def test_binder_installs_the_lock_on_the_same_python():
    [version] = re.findall(r'python=(3\.\d+)',
                           (ROOT / 'environment.yml').read_text())
    assert (BINDER / 'runtime.txt').read_text() == f'python-{version}\n'
    [line] = [line for line in (BINDER / 'requirements.txt').read_text(
        ).splitlines() if not line.startswith('#')]
    option, lock = line.split()
    assert option == '-r'
    assert (BINDER / lock).resolve() == ROOT / 'requirements.lock'
    # repo2docker would take these in place of those.
    assert not {'environment.yml', 'Dockerfile', 'requirements3.txt'} & {
        path.name for path in BINDER.iterdir()}


@pytest.mark.processes
def test_binder_s_scripts_run():
    for name in ('postBuild', 'start'):
        assert os.access(BINDER / name, os.X_OK)
        subprocess.run(['sh', '-n', BINDER / name], check=True, timeout=30)
    said = subprocess.run(
        [BINDER / 'start', 'sh', '-c', 'echo "$JUPYTER_CONFIG_PATH"'],
        text=True, check=True, stdout=subprocess.PIPE, timeout=30,
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
    assert {'test', 'book'} <= {*publish['needs']}


@each_job
def test_every_job_has_an_end_and_known_steps(job):
    job = WORKFLOW['jobs'][job]
    assert 5 <= job['timeout-minutes'] <= 60
    for step in job['steps']:
        if 'uses' in step:
            assert step['uses'] in {
                'actions/checkout@v4', 'actions/setup-python@v5',
                'actions/upload-pages-artifact@v3', 'actions/deploy-pages@v4'}
        if step.get('uses', '').startswith('actions/checkout'):
            assert step['with'] == {'persist-credentials': False}
        for target in making(step.get('run', '')):
            assert target in make_targets(), target
        # A file without a * and one with it, as the shell finds them.
        for name in re.findall(r'(?:notebooks|setup)/[\w.*/-]+',
                               step.get('run', '')):
            assert [*ROOT.glob(name)], name


def test_the_workflow_runs_all_and_the_light_chapters_where_mxnet_is_not():
    def runs(job):
        return '\n'.join(step.get('run', '')
                         for step in WORKFLOW['jobs'][job]['steps'])

    def pythons(job):
        return {step['with']['python-version'] for step in
                WORKFLOW['jobs'][job]['steps'] if 'setup-python' in
                step.get('uses', '')}
    assert 'test' in making(runs('test')) and pythons('test') == {'3.11'}
    assert 'book' in making(runs('book'))
    assert pythons('light') == {'3.13'}
    assert {name.split('-')[0] for name in
            WORKFLOW['jobs']['light']['strategy']['matrix']['os']} == {
                'ubuntu', 'macos', 'windows'}
    assert {*re.findall(r'notebooks/(\d\d)', runs('light'))} == {
        '03', '05', '06', '07'}
    pages = [step['with']['path'] for step in
             WORKFLOW['jobs']['book']['steps'] if 'pages' in
             step.get('uses', '')]
    assert len(pages) == 1
    assert f'PAGES = {pages[0]}' in (ROOT / 'Makefile').read_text()
