# ruff: noqa: F811, F821
# %% wrong: written in place, without a second name
# says: is it the name of the last good checkpoint
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.write('checkpoint', text)
#+        self.disk.flush('checkpoint')

# %% wrong: renamed before it is flushed
# says: by rename before its text was flushed
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.flush('checkpoint')

# %% wrong: the old one is removed before the new one has its name
# says: Was the old checkpoint gone
#-        self.disk.flush('unfinished')
#+        self.disk.flush('unfinished')
#+        if 'checkpoint' in self.disk.names():
#+            self.disk.remove('checkpoint')

# %% wrong: the newest is chosen by its name
# says: 10 comes before 9
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.rename('unfinished', f'step-{step}')
#+        for name in self.disk.names()[:-1]:
#+            self.disk.remove(name)
#-        if 'checkpoint' not in self.disk.names():
#+        names = self.disk.names()
#+        if not names or names == ['unfinished']:
#-        found = json.loads(self.disk.read('checkpoint'))
#+        found = json.loads(self.disk.read(names[-1]))

# %% wrong: the momenta are forgotten
# says: 'momenta' is not in its state
#-        text = json.dumps({'step': step, 'state': state})
#+        text = json.dumps([step, {name: state[name] for name in (
#+            'params', 'position', 'random')}])
#-        found = json.loads(self.disk.read('checkpoint'))
#-        return found['step'], found['state']
#+        return json.loads(self.disk.read('checkpoint'))

# %% wrong: the state of the random numbers is drawn anew
# says: 'random' is another
#-        text = json.dumps({'step': step, 'state': state})
#+        state['random'] = 0
#+        text = json.dumps({'step': step, 'state': state})

# %% wrong: the step is the position
# says: load returned step 512
#-        text = json.dumps({'step': step, 'state': state})
#-        self.disk.write('unfinished', text)
#+        self.disk.write('unfinished', json.dumps(state))
#-        found = json.loads(self.disk.read('checkpoint'))
#-        return found['step'], found['state']
#+        state = json.loads(self.disk.read('checkpoint'))
#+        return state['position'], state

# %% wrong: old ones are never removed
# says: there were 3 files at the same time
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.rename('unfinished', f'step-{step:08d}')
#-        if 'checkpoint' not in self.disk.names():
#+        names = [name for name in self.disk.names() if name != 'unfinished']
#+        if not names:
#-        found = json.loads(self.disk.read('checkpoint'))
#+        found = json.loads(self.disk.read(names[-1]))

# %% wrong: never flushed
# says: by rename before its text was flushed
#-        self.disk.flush('unfinished')

# %% wrong: what a crash left unfinished stays
# says: Is an older one left, or what a power cut left unfinished
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        text = json.dumps({'step': step, 'state': state})
        old = self.disk.names()
        self.disk.write(f'{step}.tmp', text)
        self.disk.flush(f'{step}.tmp')
        self.disk.rename(f'{step}.tmp', f'{step:08d}')
        for name in old:
            if name < f'{step:08d}' and not name.endswith('.tmp'):
                self.disk.remove(name)

    def load(self):
        names = [name for name in self.disk.names() if name.isdigit()]
        if not names:
            return None
        found = json.loads(self.disk.read(names[-1]))
        return found['step'], found['state']


# %% wrong: half a file is taken for none, and the old one is overwritten
# says: load returned None
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.write('checkpoint', text)
#+        self.disk.flush('checkpoint')
#-        if 'checkpoint' not in self.disk.names():
#+        try:
#+            found = json.loads(self.disk.read('checkpoint'))
#+        except (ValueError, FileNotFoundError):
#-        found = json.loads(self.disk.read('checkpoint'))

# %% wrong: load returns the state alone
# says: must return step and state
#-        return found['step'], found['state']
#+        return found['state']

# %% wrong: kept in the class, and nothing is on the disk
# says: Only what is on the disk outlives a crash
class PowerProof:
    newest = []

    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        self.newest[:] = [step, state]

    def load(self):
        return [*self.newest] or None


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


# %% right: named by the step, as a number
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        text = json.dumps({'step': step, 'state': state})
        steps = self.steps()
        for name in self.disk.names():
            if name != str(max(steps, default=None)):
                self.disk.remove(name)
        self.disk.write(f'{step}.new', text)
        self.disk.flush(f'{step}.new')
        self.disk.rename(f'{step}.new', str(step))
        for other in steps:
            if other != step and str(other) in self.disk.names():
                self.disk.remove(str(other))

    def load(self):
        if not self.steps():
            return None
        found = json.loads(self.disk.read(str(max(self.steps()))))
        return [found['step'], found['state']]

    def steps(self):
        return [int(name) for name in self.disk.names() if name.isdigit()]


# %% wrong: the values of the state, without their names
# says: load returned no dictionary as the state
#-        return found['step'], found['state']
#+        return found['step'], list(found['state'].values())

# %% wrong: load returns nothing
# says: whenever the power went, and also after the last save
#-        return found['step'], found['state']
#+        print(found['step'], found['state'])

# %% wrong: past the operations of the disk
# says: by none of its operations
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk._files['checkpoint'] = text, True

# %% wrong: nothing is ever saved
# says: but stopped with FileNotFoundError
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        pass

    def load(self):
        return json.loads(self.disk.read('checkpoint'))

# %% wrong: the step comes back as a text
# says: load returned step '8', and must return step 8
#-        text = json.dumps({'step': step, 'state': state})
#+        text = json.dumps({'step': str(step), 'state': state})

# %% wrong: an empty state in place of no checkpoint
# says: with an empty disk, load returned step 0, and must return None.
#-            return None
#+            return 0, {}

# %% wrong: the parameters are rounded
# says: 'params' is another in its state
#-        text = json.dumps({'step': step, 'state': state})
#+        params = [round(value, 4) for value in state['params']]
#+        state = {**state, 'params': params}
#+        text = json.dumps({'step': step, 'state': state})

# %% wrong: the state has the step in it, too
# says: which the one that was saved has not
#-        text = json.dumps({'step': step, 'state': state})
#+        state = {**state, 'step': step}
#+        text = json.dumps({'step': step, 'state': state})

# %% wrong: each step has an unfinished file of its own
# says: Is an older one left, or what a power cut left unfinished?
#-        self.disk.write('unfinished', text)
#-        self.disk.flush('unfinished')
#-        self.disk.rename('unfinished', 'checkpoint')
#+        self.disk.write(f'unfinished {step}', text)
#+        self.disk.flush(f'unfinished {step}')
#+        self.disk.rename(f'unfinished {step}', 'checkpoint')

# %% wrong: a disk without a checkpoint is not thought of
# says: with an empty disk, load must return None, but stopped with
class PowerProof:
    def __init__(self, disk):
        self.disk = disk

    def save(self, step, state):
        self.disk.write('unfinished', json.dumps([step, state]))
        self.disk.flush('unfinished')
        self.disk.rename('unfinished', 'checkpoint')

    def load(self):
        return tuple(json.loads(self.disk.read('checkpoint')))
