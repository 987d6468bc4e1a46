"""How notebooks are kept: opening and saving one does not change its file.

A kernel tells JupyterLab its version and its name, which JupyterLab writes
into the notebook: with another Python than the last one, the notebook counts
as changed as soon as it is open, and git sees a change when it is saved.

Controls of an earlier run are left out: a page that is loaded anew may still
find them in a kernel, but not the picture that they move. What stands in their
place says that the cell has to be run.

Links of notebooks to `docs` and `teaching`, folders beside theirs, lead there.
"""
from functools import cache
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, NoSuchKernel
from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.largefilemanager import (
    AsyncLargeFileManager)
from nbformat.v4.rwbase import strip_transient

OF_KERNEL = 'kernelspec', 'language_info'
BESIDE = 'docs', 'teaching'  # folders that links of notebooks lead to
CONTROLS = 'application/vnd.jupyter.widget-view+json'


@cache
def language_info():
    """What this Python's kernel will say of itself."""
    from ipykernel.ipkernel import IPythonKernel  # takes a moment
    return IPythonKernel.language_info


def give_back(notebook, before):
    """Put what a kernel filled in back to what it was before."""
    for key in OF_KERNEL:
        old, new = (one['metadata'].get(key, {}) for one in (before, notebook))
        if old and old.get('name') == new.get('name'):
            notebook['metadata'][key] = old
    olds = {cell['id']: cell for cell in before['cells'] if 'id' in cell}
    for cell in notebook['cells']:
        shown = cell.get('outputs', [])
        old = olds.get(cell.get('id'), {}).get('outputs', [])
        for number, (one, kept) in enumerate(zip(shown, old)):
            if one == without_controls(kept):
                shown[number] = kept
        # JupyterLab takes out when a cell was run, once it runs again.
        ran = olds.get(cell.get('id'), {}).get('metadata', {}).get('execution')
        if ran and 'execution' not in cell['metadata']:
            timed = cell | {'metadata': cell['metadata'] | {'execution': ran}}
            if same(timed, olds[cell['id']]):
                cell['metadata']['execution'] = ran


def without_controls(output):
    """An output of a cell, but for controls that words stand for."""
    data = output.get('data', {})
    if 'text/plain' not in data:
        return output
    return output | {'data': {kind: one for kind, one in data.items()
                              if kind != CONTROLS}}


def same(cell, old):
    """Are these cells the same in a file, where nothing is trusted?"""
    def kept(one):
        words = {k: v for k, v in one['metadata'].items() if k != 'trusted'}
        return one | {'metadata': words}
    return kept(cell) == kept(old)


class NotebooksKept(AsyncLargeFileManager):
    """JupyterLab's files, but a notebook is written only if it has changed."""

    async def get(self, path, content=True, *args, **kwargs):
        """A notebook comes with what its kernel is about to fill in."""
        first, _, rest = path.strip('/').partition('/')
        here = Path(self.root_dir, first).exists()
        if first in BESIDE and rest and not here:
            beside = AsyncLargeFileManager(root_dir=str(
                Path(self.root_dir).resolve().parent / first))
            model = await beside.get(rest, content, *args, **kwargs)
            return {**model, 'path': path, 'writable': False}
        if first == 'notebooks' and rest and not here:  # a link from there
            path = rest
        model = await super().get(path, content, *args, **kwargs)
        if model['type'] == 'notebook' and model['content']:
            metadata = model['content']['metadata']
            for cell in model['content']['cells']:
                if 'outputs' in cell:
                    cell['outputs'] = [*map(without_controls, cell['outputs'])]
            spec = metadata.get('kernelspec', {})
            if spec.get('name') == NATIVE_KERNEL_NAME:
                metadata['language_info'] = language_info()
                metadata['kernelspec'] = spec | await self._named(spec)
        return model

    async def _named(self, spec):
        """What the kernel is called on this machine."""
        try:
            found = await ensure_async(
                self.parent.kernel_spec_manager.get_kernel_spec(spec['name']))
        except (AttributeError, NoSuchKernel):  # no server, or no kernel
            return {}
        return {'display_name': found.display_name,
                'language': found.language}

    async def save(self, model, path=''):
        """Give back first, since what is written is what will be trusted."""
        if model.get('type') == 'notebook' and model.get('content'):
            before = self._kept(self._get_os_path(path.strip('/')))
            if before:
                give_back(model['content'], before)
        return await super().save(model, path)

    async def _save_notebook(self, os_path, nb, *args, **kwargs):
        if strip_transient(nb) != self._kept(os_path):
            await super()._save_notebook(os_path, nb, *args, **kwargs)

    def _kept(self, os_path):
        """The notebook in a file; None if there is none that can be read."""
        try:
            return strip_transient(nbformat.reads(
                Path(os_path).read_text('utf-8'), as_version=4))
        except (OSError, ValueError, nbformat.reader.NotJSONError,
                nbformat.ValidationError):
            return None
