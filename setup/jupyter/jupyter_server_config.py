"""How the kernels of this JupyterLab are talked to, and what is left out."""
import os
import socket
import sys
import tempfile

from jupyter_core.paths import jupyter_runtime_dir

c = get_config()  # noqa: F821 (Jupyter's)
c.LanguageServerManager.autodetect = False  # nineteen that are not here
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
c.ServerApp.contents_manager_class = 'notebooks_kept.NotebooksKept'
NAME = 60  # characters that Jupyter adds to the folder for a kernel's sockets
MOST = 100  # characters in the name of a Unix socket, and some to spare


def sockets_work(folder):
    """Not every folder can have them, as on some drives of networks."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with (tempfile.TemporaryDirectory(dir=folder, prefix='d2lps-') as new,
              socket.socket(socket.AF_UNIX) as one):
            one.bind(os.path.join(new, 's'))
        return True
    except (OSError, AttributeError):  # Windows has none
        return False


# Nobody else can reach these, and no kernel needs to warn of that.
if (len(os.fsencode(jupyter_runtime_dir())) + NAME <= MOST
        and sockets_work(jupyter_runtime_dir())):
    c.KernelManager.transport = 'ipc'
