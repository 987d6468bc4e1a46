"""Build the notebooks for a browser tab, into lite/ of the book's pages.

    python setup/tab/build.py PAGES TOOLS [PYODIDE]

PAGES: the folder of the pages. TOOLS: an environment of requirements-tab.lock.
PYODIDE: a folder with the files of Python for the browser, which are then
copied beside the pages; without it, a tab loads them from their public CDN.

JupyterLite makes a JupyterLab without a server of it. When Python starts in a
tab, it loads d2lps as a wheel and what its chapters import, so that no
notebook has to install anything.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / 'docs' / 'book' / 'extensions'))

from sources import sources  # noqa: E402

VERSION = '0.27.7'  # of Pyodide, as jupyterlite-pyodide-kernel wants it
CDN = f'https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/'
LOADED = 'numpy', 'pandas', 'matplotlib'  # before the first cell
KERNEL = 'micropip', 'ssl', 'sqlite3', 'jedi', 'ipython'  # its own needs
# From the package index, and Jinja2 for tables with a style of their own.
PURE = 'comm', 'ipywidgets', 'jinja2', 'markupsafe', 'networkx'
# It has no wheel that fits each machine; without a compiler, it becomes one.
FROM_SOURCE = 'markupsafe'
# What notebooks link to, import or read.
BESIDE = ('README.md', 'docs/pictures', 'notebooks/results',
          'notebooks/pictures', 'notebooks/larger_models', 'notebooks/launch')
PROJECT = 'pyproject.toml', 'README.md', 'LICENSE', 'd2lps'
NO_CACHE = shutil.ignore_patterns('__pycache__', '.ipynb_checkpoints')
APPS = 'lab', 'notebooks', 'edit'
# Where a worker of JupyterLite stands, from which wheels have relative places.
UP = '../' * 4


def refuse(words):
    sys.exit(f'd2lps: {words}')


def run(*command, where=ROOT, **settings):
    done = subprocess.run([str(one) for one in command], cwd=where, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=os.environ | settings)
    if done.returncode:
        refuse(f'{Path(command[0]).name} failed:\n{done.stdout[-3000:]}')


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pyodide_files(folder):
    """{name: SHA-256} of the files that a tab loads."""
    wanted = {name: digest for digest, name in
              map(str.split, (HERE / 'pyodide.sha256').open())}
    lock = folder / 'pyodide-lock.json'
    if not lock.is_file():
        refuse(f'PYODIDE names the folder {folder}, and there is no file '
               f'{lock.name} in it. Needed is Pyodide {VERSION}, as at {CDN}')
    if sha256(lock) != wanted[lock.name]:
        refuse(f'{lock} is not that of Pyodide {VERSION}')
    packages = json.loads(lock.read_text())['packages']
    names = [*LOADED, *KERNEL]
    for name in names:  # grows by what those need
        entry = packages[name.replace('_', '-')]
        wanted[entry['file_name']] = entry['sha256']
        names += [one for one in entry['depends'] if one not in names]
    return wanted


def copy_pyodide(folder, to):
    """Each file by its checksum."""
    for name, digest in pyodide_files(folder).items():
        file = folder / name
        if not file.is_file():
            refuse(f'{folder} has no file {name}: get it from {CDN}{name}')
        if sha256(file) != digest:
            refuse(f'{file} is damaged, or not of Pyodide {VERSION}: its '
                   f'SHA-256 must be {digest}')
        to.mkdir(exist_ok=True)
        shutil.copyfile(file, to / name)


def wheels(tools, to):
    """d2lps, made from this checkout, and what it needs beside LOADED."""
    to.mkdir(exist_ok=True)
    kept = tools / 'wheels'
    if not kept.is_dir():
        lock = (ROOT / 'requirements-tab.lock').read_text()
        entries = [re.search(rf'^{name}==.*(\n +--hash.*)+', lock, re.M)[0]
                   for name in PURE]
        with tempfile.TemporaryDirectory() as new:
            names = Path(new, 'wheels.txt')
            names.write_text('\n'.join(entries))
            run(tools / 'bin' / 'python', '-m', 'pip', 'wheel', '--no-deps',
                '--only-binary', ':all:', '--no-binary', FROM_SOURCE,
                '--no-build-isolation', '--require-hashes', '-r', names,
                '-w', Path(new, 'wheels'), CC='false')
            shutil.move(Path(new, 'wheels'), kept)
    for wheel in kept.iterdir():
        shutil.copy(wheel, to)
    with tempfile.TemporaryDirectory() as new:
        copied(PROJECT, Path(new))
        run(Path(sys.executable).with_name('uv'), 'build', '--wheel',
            '--no-build-isolation', '--python', sys.executable, '--out-dir',
            to, '.', where=new)
    (to / '.gitignore').unlink(missing_ok=True)  # uv's
    return sorted(wheel.name for wheel in to.glob('*.whl'))


def copied(names, to):
    """Files and folders of the project, at the same places there."""
    for name in names:
        here, there = ROOT / name, to / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, ignore=NO_CACHE)
        elif here.exists():
            shutil.copy(here, there)


def trust(contents):
    """The outputs that we saved are shown as they are, as in the pages."""
    for path in contents.rglob('*.ipynb'):
        notebook = json.loads(path.read_text('utf-8'))
        for cell in notebook['cells']:
            if cell['cell_type'] == 'code':
                cell['metadata']['trusted'] = True
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False),
                        'utf-8')


def settings(pyodide, names):
    """jupyter-lite.json: where Python is, and what it loads at first."""
    kernel = {
        'pyodideUrl': f'{pyodide if ":" in pyodide else "./" + pyodide}'
                      'pyodide.js',
        'disablePyPIFallback': True,  # all that is needed is here
        'loadPyodideOptions': {'packages': [
            *LOADED, *KERNEL, *(f'{UP}wheels/{name}' for name in names)]}}
    return {
        'jupyter-lite-schema-version': 0,
        'jupyter-config-data': {
            'appName': 'd2lps', 'exposeAppInBrowser': True,
            'disabledExtensions': [
                '@jupyter-notebook/application-extension:logo',
                '@jupyterlite/application-extension:logo',
                '@jupyterlite/notebook-application-extension:logo'],
            'litePluginSettings': {
                '@jupyterlite/pyodide-kernel-extension:kernel': kernel}}}


def replace(folder, new):
    """Put `new` in place of a folder from which somebody may be reading.

    The folder is missing only between two renames.
    """
    there, old = (folder.with_name(f'{folder.name}.{word}')
                  for word in ('new', 'old'))
    for one in there, old:
        shutil.rmtree(one, ignore_errors=True)
    shutil.move(new, there)
    if folder.exists():
        folder.rename(old)
    there.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def main(pages, tools, pyodide=''):
    lite, tools = Path(pages) / 'lite', Path(tools).resolve()
    with tempfile.TemporaryDirectory() as new:
        contents, site = Path(new, 'contents'), Path(new, 'site')
        copied([*BESIDE, *(name for name in sources()
                           if not name.startswith('docs/book/'))], contents)
        trust(contents)
        if pyodide:
            copy_pyodide(Path(pyodide), Path(new, 'pyodide'))
        where = 'pyodide/' if pyodide else CDN
        names = wheels(tools, Path(new, 'wheels'))
        for extension in (HERE / 'labextensions',
                          ROOT / 'setup/jupyter/labextensions'):
            shutil.copytree(extension, tools / 'share/jupyter/labextensions',
                            dirs_exist_ok=True)
        source = Path(new, 'source')
        shutil.copytree(HERE / 'settings', source)
        (source / 'jupyter-lite.json').write_text(
            json.dumps(settings(where, names)))
        run(tools / 'bin' / 'jupyter', 'lite', 'build', '--lite-dir', source,
            '--contents', contents, *(f'--apps={app}' for app in APPS),
            '--no-sourcemaps', '--no-unused-shared-packages',
            '--output-dir', site, where=new)
        for folder in 'pyodide', 'wheels':
            if Path(new, folder).exists():
                shutil.move(Path(new, folder), site)
        rows = tomllib.loads((ROOT / 'docs/book/tab.toml').read_text('utf-8'))
        (site / 'tab.json').write_text(json.dumps(
            {'pyodide': where, 'wheels': [f'wheels/{one}' for one in names],
             **rows}))
        replace(lite, site)


if __name__ == '__main__':
    main(*sys.argv[1:])
