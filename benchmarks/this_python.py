"""A plugin of asv: commits share the packages of the Python that runs asv.

asv's own environments install the project and all its dependencies anew.
Here a commit is a checkout that PYTHONPATH names, so that nothing is
installed and no network is needed. `existing`, asv's environment without
installation, cannot alternate between two commits.
"""
import os
import sys

from asv import util
from asv.environment import Environment


class ThisPython(Environment):
    tool_name = 'this_python'

    def __init__(self, conf, python, requirements, tagged_env_vars):
        self._requirements = requirements  # part of the name of a result
        super().__init__(conf, python, requirements, tagged_env_vars)

    def create(self):
        os.makedirs(self._path, exist_ok=True)
        self._checkouts = {}

    def install_project(self, conf, repo, commit_hash):
        self._set_commit_hash(commit_hash)
        if commit_hash not in self._checkouts:
            folder = os.path.join(self._path, commit_hash)
            repo.checkout(folder, commit_hash)
            self._checkouts[commit_hash] = folder
        self._folder = self._checkouts[commit_hash]

    def run(self, args, env=os.environ, **kwargs):
        # asv's process reads the first, and those that it starts the second.
        names = 'ASV_PYTHONPATH', 'PYTHONPATH'
        return util.check_output(
            [sys.executable, *args], **kwargs,
            env={**env, **dict.fromkeys(names, self._folder)})
