"""Where JupyterLab begins, and where it finds labextensions/d2lps."""
import importlib.util
import os

c = get_config()  # noqa: F821 (Jupyter's)
c.LabApp.extra_labextensions_path = [os.path.join(
    os.path.dirname(os.path.abspath(__file__)), 'labextensions')]
# Without MXNet, with the first chapter that needs none.
c.LabApp.default_url = '/lab/tree/{}.ipynb'.format(
    'index' if importlib.util.find_spec('mxnet') else '03-where-to-sum')
