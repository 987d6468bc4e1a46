// Run the code cells of a notebook in Pyodide, without a browser:
//     node run.mjs PYODIDE PACKAGES PROJECT NOTEBOOK
// PYODIDE: the folder of its files. PACKAGES: where packages in plain Python
// are, that Pyodide lacks. PROJECT: where d2lps is. It prints a line of JSON:
// how many cells ran, and what went wrong.
import {readFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, packages, project, notebook] = process.argv.slice(2).map(
  one => resolve(one));
const {loadPyodide} = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({indexURL: `${folder}/`,
                                  env: {HOME: '/home/pyodide',
                                        MPLBACKEND: 'agg'}});
await python.loadPackage(['numpy', 'pandas', 'matplotlib', 'ipython'],
                         {messageCallback: () => {}});
for (const [root, place] of [[packages, '/packages'], [project, '/project']]) {
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, {root}, place);
}
python.globals.set('cells', python.toPy(
  JSON.parse(readFileSync(notebook, 'utf8')).cells));
console.log(await python.runPythonAsync(`
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from IPython.core.interactiveshell import InteractiveShell

sys.path = ['/project', *sys.path, '/packages']
os.chdir('/project/notebooks')
shell, ran, wrong = InteractiveShell.instance(), 0, []
for cell in cells:
    if cell['cell_type'] == 'code':
        red = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(red):
            result = shell.run_cell(''.join(cell['source']))
        error = result.error_before_exec or result.error_in_exec
        ran += 1
        if error or red.getvalue():
            wrong.append(f'cell {ran}: {error!r} {red.getvalue()}')
json.dumps({'ran': ran, 'wrong': wrong})
`));
process.exit(0);
