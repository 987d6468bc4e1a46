# ruff: noqa: F811, F821
# %% wrong: written in place, without a second name
# loses: crash, again
# says: is it the name of the last good checkpoint
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.write('checkpoint', text)
#+        self.disk.flush('checkpoint')


# %% wrong: the momenta are forgotten
# loses: whole
# says: 'momenta' is not in its state
#-        text = json.dumps({'step': step, 'state': state})
#+        text = json.dumps([step, {name: state[name] for name in (
#+            'params', 'position', 'random')}])
#-        found = json.loads(self.disk.read('checkpoint'))
#-        return found['step'], found['state']
#+        return json.loads(self.disk.read('checkpoint'))


# %% wrong: old ones are never removed
# loses: again
# says: there were 3 files at the same time
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.rename('unfinished', f'step-{step:08d}')
#-        if 'checkpoint' not in self.disk.names():
#+        names = [name for name in self.disk.names() if name != 'unfinished']
#+        if not names:
#-        found = json.loads(self.disk.read('checkpoint'))
#+        found = json.loads(self.disk.read(names[-1]))


# %% wrong: kept in the class, and nothing is on the disk
# loses: whole
# says: Only what is on the disk outlives a crash
class PowerProof:
    newest = []

    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        self.newest[:] = [step, state]

    def load(self):
        return [*self.newest] or None


# %% wrong: past the operations of the disk
# loses: whole, crash, again
# says: by none of its operations
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk._files['checkpoint'] = text, True


# %% wrong: nothing is ever saved
# loses: whole, crash, again
# says: but stopped with FileNotFoundError
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        pass

    def load(self):
        return json.loads(self.disk.read('checkpoint'))


# %% right: two names in turns, and half a file is left out
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        good = self.whole()
        name = 'a' if good and good[2] == 'b' else 'b'
        self.disk.write(name, json.dumps([step, state, name]))
        self.disk.flush(name)

    def load(self):
        good = self.whole()
        return good and (good[0], good[1])

    def whole(self):
        found = []
        for name in self.disk.names():
            try:
                found.append(json.loads(self.disk.read(name)))
            except ValueError:
                pass
        return max(found, key=lambda one: one[0], default=None)
