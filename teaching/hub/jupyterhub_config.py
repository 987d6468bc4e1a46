"""A hub on one machine, for those who have an account there.

In a clone that all can read, with what `make .venv/installed-tests` installs:

    sudo .venv/bin/jupyterhub -f teaching/hub/jupyterhub_config.py

teaching/README.md says more, and tests/teaching/test_hub.py starts this file.
"""
import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (Jupyter's)
here = Path(__file__).resolve().parent
programs = Path(sys.executable).parent
c.JupyterHub.bind_url = 'http://127.0.0.1:8000'  # behind a server with TLS
c.Authenticator.allow_all = True  # who has an account may come
# Written in Python: what the hub takes otherwise needs Node.
c.ConfigurableHTTPProxy.command = [str(programs / 'configurable-http-proxy')]
# Everybody's server is of this environment, with its kernel and nbgrader. Each
# process of a student can take 4 GiB: JupyterHub's own spawner limits nothing.
c.Spawner.cmd = ['prlimit', f'--data={4 * 2 ** 30}',
                 str(programs / 'jupyterhub-singleuser')]
c.Spawner.default_url = '/lab'
# A login shell, as terminals have it here otherwise, forgets this PATH.
# A kernel that nobody is connected to ends after an hour without work.
c.Spawner.args = [
    "--ServerApp.terminado_settings={'shell_command': ['bash']}",
    '--MappingKernelManager.cull_idle_timeout=3600']
c.Spawner.environment = {
    'PATH': os.pathsep.join([str(programs), os.defpath]),
    'JUPYTER_CONFIG_PATH': str(here)}  # where nbgrader_config.py is
