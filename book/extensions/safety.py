"""Notebooks of others: nothing in a source runs, or fetches other files.

MyST would take settings from a source, which start a kernel or fill in
templates that are programs, and has directives that read any file. Sources
that have these are refused. Besides, no build starts a process.
"""
import sys
from pathlib import Path

import nbformat
from myst_parser.mdit_to_docutils.base import DocutilsRenderer

ROOT = Path(__file__).resolve().parents[2]
STARTS = {'subprocess.Popen', 'os.exec', 'os.fork', 'os.forkpty',
          'os.posix_spawn', 'os.spawn', 'os.startfile', 'os.system'}
SETTINGS = {'file_format', 'html_meta', 'myst', 'mystnb', 'substitutions'}
DIRECTIVES = {'glossary', 'toctree'}  # and no roles
FOLDERS = [ROOT / name for name in ('book', 'docs', 'notebooks')]


class Refused(SystemExit):
    """One sentence and the end; other errors of Sphinx come with pages."""

    def __init__(self, sentence):
        super().__init__(f'd2lps: the book is not built: {sentence}')


def start_nothing(event, args):
    if event in STARTS:
        raise PermissionError(f'the book starts no process: {event}')


def refuse_settings(app, docname, source):
    path = app.env.doc2path(docname, base=False)
    if path.suffix == '.ipynb':
        try:
            notebook = nbformat.reads(source[0], as_version=4)
        except Exception as error:  # of many kinds
            raise Refused(f'{path} is no notebook: {error}') from error
        found = SETTINGS & {key for part in (notebook, *notebook.cells)
                            for key in part.metadata}
        if found:
            raise Refused(
                f'{path} has settings in its metadata, which the book takes '
                f'from no source: remove {", ".join(sorted(found))}')
    elif source[0].lstrip().startswith('---'):
        raise Refused(
            f'{path} begins with ---, as settings do, which the book takes '
            'from no source: remove them')


def refuse(renderer, name):
    path = renderer.sphinx_env.doc2path(renderer.sphinx_env.docname,
                                        base=False)
    raise Refused(
        f'{path} has {{{name}}}: of directives and roles, the book knows '
        f'only {{{"} and {".join(sorted(DIRECTIVES))}}}')


class Known:
    """What replaces methods of the renderer."""
    run = DocutilsRenderer.run_directive

    def run_directive(self, name, *args, **options):
        if name not in DIRECTIVES:
            refuse(self, name)
        return Known.run(self, name, *args, **options)

    def render_myst_role(self, token):
        refuse(self, token.meta['name'])

    def render_restructuredtext(self, token):
        refuse(self, 'eval-rst')


def refuse_files(app, env):
    """Pictures and links by which other files come to lie beside pages."""
    folders = [*FOLDERS, Path(env.mystnb_config.output_folder)]
    for name, (users, _) in [*env.images.items(), *env.dlfiles.items()]:
        path = (ROOT / name).resolve()
        if not any(map(path.is_relative_to, folders)):
            raise Refused(
                f'{env.doc2path(min(users), base=False)} leads to {name}, '
                'which is not in book, docs or notebooks: remove the link')


def setup(app):
    sys.addaudithook(start_nothing)
    for name in ('run_directive', 'render_myst_role',
                 'render_restructuredtext'):
        setattr(DocutilsRenderer, name, getattr(Known, name))
    app.connect('source-read', refuse_settings, priority=900)
    app.connect('env-updated', refuse_files)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
