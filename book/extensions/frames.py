"""The pictures of a toy for all of its settings, packed for a page.

They are drawn by the same functions as in a notebook, while the book is
built, and kept beside what Sphinx keeps. See `static/frames.js`.
"""
import hashlib
import itertools
import json
import re
import zlib
from base64 import b64decode, b64encode
from functools import cache
from html import unescape
from math import prod
from pathlib import Path

from sphinx.errors import ExtensionError

import d2lps
from d2lps import pictures
from d2lps_pictures import widgets

# Where all combinations would be too many, fewer choices: by the name of the
# toy, and of its control. That with which it begins is there, too.
FEWER = {}
MOST = 2000  # pictures of a toy
NARROW = 420  # pixels: a phone shows what is not wider as a whole
SVG = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')
ALT = re.compile(r'<img alt="([^"]*)"')
SIZE = re.compile(r'viewBox="0 0 (\S+) (\S+)" width="\S+" height="\S+"')
# The words are beside the picture; in a page, SVG needs no xmlns.
NOT_HERE = re.compile(r' (?:xmlns|aria-label|role)="[^"]*"')
BETWEEN_SHAPES = re.compile(r'(?<=>)(?=<)')


class Toy:
    """A toy as a page shows it; settings: the arguments of its function.

    controls: what the script needs to know of them. file: the name of a
    script with all pictures, in `folder`. picture, words: the first one.
    room: for which sizes there must be room.
    """

    def __init__(self, name, settings, folder):
        self.name = name
        with widgets.caught() as toys:
            getattr(pictures, name)(**settings)
        [(self._draw, self._controls)] = toys
        self._options = {key: self._offered(key) for key in self._controls}
        self.controls = [
            {'kind': control.kind, 'label': control.label,
             'words': [words for words, _ in self._options[key]],
             'value': _place_of(control.value, self._options[key])}
            for key, control in self._controls.items()]
        known = json.dumps([name, settings, self.controls, sources()])
        number = hashlib.sha256(known.encode()).hexdigest()[:8]
        self.file = f'{name}-{number}.js'
        self._keep(folder)

    def _offered(self, key):
        """[(words, value), ...] of a control, or of some of its choices."""
        control, fewer = self._controls[key], FEWER.get(
            self.name, {}).get(key)
        if control.kind not in ('slider', 'menu', 'checkbox'):
            raise ExtensionError(f'{self.name}: no page has a {control.kind}')
        values = [value for _, value in control.options]
        if fewer and not {*fewer} <= {*values}:
            raise ExtensionError(f'{self.name}: {key} is one of {values}, '
                                 f'and {fewer} are not')
        return [(words, value) for words, value in control.options
                if not fewer or value in fewer or value == control.value]

    def _keep(self, folder):
        """Draw all pictures, if they are not there from another time."""
        first = folder / f'{self.file}on'
        if not first.exists():
            folder.mkdir(parents=True, exist_ok=True)
            frames = self.frames()
            script = b64encode(packed(frames)).decode()
            (folder / self.file).write_text(
                f"d2lps.pictures('{self.file}', '{script}');\n")
            first.write_text(json.dumps(
                [*frames[self.first()], room(frames)]))
        self.picture, self.words, self.room = json.loads(first.read_text())

    def first(self):
        """The number of the picture with which it begins."""
        number = 0
        for control in self.controls:
            number = number * len(control['words']) + control['value']
        return number

    def settings(self):
        """Values of the controls, by name, in the order of the pictures."""
        offered = [[value for _, value in one]
                   for one in self._options.values()]
        number = prod(map(len, offered))
        if number > MOST:
            raise ExtensionError(f'{self.name} has {number} pictures, and '
                                 f'{MOST} are too many')
        return [dict(zip(self._controls, values))
                for values in itertools.product(*offered)]

    def frames(self):
        """[(SVG, words), ...]; the last control moves first."""
        return framed([parts(self._draw(**values))
                       for values in self.settings()])


def _place_of(value, options):
    return [one for _, one in options].index(value)


@cache
def sources():
    """A number that is another one if a toy may draw something else."""
    found = hashlib.sha256()
    for package in d2lps, pictures:
        for path in sorted(Path(package.__file__).parent.rglob('*.py')):
            found.update(path.read_bytes())
    return found.hexdigest()


def parts(drawing):
    """([SVG, ...], words) of what shows itself as one image or as several."""
    html = drawing._repr_html_()
    svgs = [b64decode(one).decode() for one in SVG.findall(html)]
    if not svgs:
        raise ExtensionError(f'{drawing!r} is no drawing')
    return svgs, ' '.join(map(unescape, ALT.findall(html)))


def framed(frames):
    """[(SVG, words), ...] for a page.

    Where there are several pictures in a frame, each is as high and wide as
    the largest in its place, so that what is below stays.
    """
    sizes = [[size_of(svg) for svg in svgs] for svgs, _ in frames]
    largest = [[max(size) for size in zip(*of_place)]
               for of_place in zip(*sizes, strict=True)]
    alone = len(largest) == 1
    return [(''.join(for_page(svg, size_of(svg) if alone else size)
                     for svg, size in zip(svgs, largest)), words)
            for svgs, words in frames]


def size_of(svg):
    return [float(one) for one in SIZE.search(svg).groups()]


def for_page(svg, size):
    width, height = (f'{one:g}' for one in size)
    wide = ' class="toy-wide"' if size[0] > NARROW else ''
    svg = SIZE.sub(f'viewBox="0 0 {width} {height}" width="{width}" '
                   f'height="{height}" aria-hidden="true"{wide}', svg, count=1)
    root, rest = svg.split('>', 1)
    return f'{NOT_HERE.sub("", root)}>{rest}'


def room(frames):
    """[(width, height), ...] of the pictures for which a page needs room."""
    sizes = {tuple(size_of(svg)) for svg, _ in frames}
    return sorted(one for one in sizes if not any(
        other != one and other[0] <= one[0] and other[1] >= one[1]
        for other in sizes))


def packed(frames):
    """Bytes: pictures are numbers of shapes, as they have most in common."""
    number, shapes, rows = {}, {}, []  # of pictures, of shapes
    for frame in frames:
        if frame not in number:
            number[frame] = len(number)
            rows.append([shapes.setdefault(one, len(shapes))
                         for one in BETWEEN_SHAPES.split(frame[0])])
    text = json.dumps(
        {'shapes': [*shapes], 'pictures': rows,
         'words': [words for _, words in number],
         'frames': [number[frame] for frame in frames]},
        separators=(',', ':'), ensure_ascii=False)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(text.encode()) + deflate.flush()
