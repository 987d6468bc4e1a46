"""Where JupyterLab finds what suits these notebooks: labextensions/d2lps."""
import os

c = get_config()  # noqa: F821 (Jupyter's)
c.LabApp.extra_labextensions_path = [os.path.join(
    os.path.dirname(os.path.abspath(__file__)), 'labextensions')]
