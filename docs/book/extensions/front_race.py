"""The first page's race: two plans on one clock; see `static/race.js`.

What moves are the pictures of notebooks. They are made here, for each plan
and kind of cables, and obey the time that the script sets.
"""
import json
from functools import cache
from html import escape
from pathlib import Path

from d2lps.pictures.animation.race import LINKS, PLANS, racers

PAGE, PLACE = 'docs/book/index', '% the race'
SCRIPTS = 'race-data.js', 'race.js'
LINK, CHOSEN, NOW = 'switch', ('gather', 'sharded'), 6  # at first; ms
SIGNS = ('A colour is what one GPU brought; a box on a cable is on its way. '
         'Full frame: it will be added. Dashed frame: it is a sum, and '
         'replaces what is there. ✓ The sum of all four is there.')
made = cache(racers)


def options(choices, chosen):
    """Of a menu in HTML; choices: (value, words)."""
    return ''.join(
        f'<option value="{value}"{" selected" * (value == chosen)}>'
        f'{escape(words)}</option>' for value, words in choices)


def lane(side, plan):
    """One of the two: menu, words, bar and picture."""
    racer = made()[LINK][plan]
    choices = [(key, name) for key, (name, *_) in PLANS.items()]
    return (
        f'<div class="race-lane"><label>{side} plan <select>'
        f'{options(choices, plan)}</select></label>'
        f'<p class="race-words">{escape(racer.summary)}</p>'
        '<div class="race-bar" aria-hidden="true"><i></i></div>'
        f'<div class="race-picture">{racer.svg}</div></div>')


def html():
    lanes = ''.join(map(lane, ('First', 'Second'), CHOSEN))
    links = [(key, words) for key, (words, _) in LINKS.items()]
    return (
        f'<div class="race" style="--now:{NOW}" data-now="{NOW}">'
        '<div class="race-clock"><button type="button">Play</button>'
        '<input type="range" min="0" step="0.5" aria-label="Time">'
        f'<output>{NOW} ms</output></div><div class="race-lanes">{lanes}'
        '</div><p class="race-says" aria-live="polite"></p>'
        '<label class="race-links">The GPUs are joined by <select>'
        f'{options(links, LINK)}</select></label>'
        f'<p class="race-signs">{SIGNS}</p></div>'
        '<noscript><p>Without scripts, the race is a film:</p>'
        '<div class="cell_output"><img class="wide" '
        'src="../../_static/where-to-sum.svg" alt="Two machines on one clock: '
        'GPU 0 adds everything, done after 60 ms; each GPU adds a quarter, '
        'done after 15 ms."></div></noscript>')


def put_in(app, docname, source):
    if docname == PAGE:
        source[0] = source[0].replace(
            PLACE, f'```{{raw}} html\n{html()}\n```')


def write_data(app):
    """A script, since a page from a file may not read other files."""
    folder = Path(app.outdir) / '_static'
    folder.mkdir(parents=True, exist_ok=True)
    data = {links: {plan: vars(racer) for plan, racer in found.items()}
            for links, found in made().items()}
    (folder / SCRIPTS[0]).write_text(
        "'use strict';\nvar d2lpsRace = "
        f"{json.dumps(data, separators=(',', ':'))};\n")


def add_scripts(app, page, template, context, document):
    if page == PAGE:
        app.add_css_file('race.css')
        for script in SCRIPTS:
            app.add_js_file(script, loading_method='defer')


def setup(app):
    app.connect('builder-inited', write_data)
    app.connect('source-read', put_in)
    app.connect('html-page-context', add_scripts)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
