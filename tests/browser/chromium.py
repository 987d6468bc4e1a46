"""The browser of the tests; `/conftest.py` has looked for it."""
import os

CHROMIUM = os.environ.get('D2LPS_CHROMIUM')
FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking',
         '--disable-component-update', '--disable-sync']
PHONE = {'width': 390, 'has_touch': True, 'is_mobile': True}
# Layout is done, and so is what scripts do when it has changed.
PAINTED = '''() => new Promise(done => requestAnimationFrame(
  () => requestAnimationFrame(() => done())))'''
