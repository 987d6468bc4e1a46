"""The pictures of a toy for all of its settings, packed for a page.

They are drawn by the same functions as in a notebook, while the book is
built, and kept beside what Sphinx keeps. See `static/frames.js`.
"""
import hashlib
import itertools
import json
import re
import sys
import zlib
from base64 import b64decode, b64encode
from functools import cache
from html import unescape
from multiprocessing import get_context
from pathlib import Path

import matplotlib
import numpy
from sphinx.errors import ExtensionError

import d2lps
from d2lps import pictures
from d2lps.pictures import widgets
from d2lps.pictures.drawing import html_of

# Where all combinations would be too many, fewer choices: by the name of the
# toy, and of its control. That with which it begins is there, too.
FEWER = {
    'explore_latency': {
        'num_devices': [2, 4, 8, 16], 'latency': [1, 10, 100],
        'megabytes': [.001, .01, .1, 1, 10, 100], 'bandwidth': [1, 16, 100]},
    'explore_overlap': {
        'bandwidth': [250, 500, 1000, 4000], 'latency': [0, 5, 10],
        'bucket_size': [0, 4, 12, 25, 60], 'slice_size': [0, 1]},
    'explore_parameter_servers': {
        'num_workers': [1, 2, 4, 16, 64], 'gigabits': [1, 10, 100],
        'num_servers': [1, 2, 4, 16, 64], 'megabytes': [40, 160]},
    'explore_plans': {'num_devices': [2, 3, 4, 8]},
    'explore_synchronisation': {
        'n': [4, 8, 16], 'megabytes': [.01, 1, 160], 'bandwidth': [1, 4, 16],
        'latency': [0, 20]}}
MOST = 2000  # pictures of a toy
# Pixels: on a phone, what is not wider is shown as a whole, with letters of 9
# pixels. What is wider scrolls.
NARROW_DRAWING, NARROW_FIGURE = 460, 530
SVG = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')
ALT = re.compile(r'<img alt="([^"]*)"')
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
ADDRESS = re.compile(r'(\bid="|url\(#|href="#)')
# Between elements, and between the shapes of a path.
BETWEEN_SHAPES = re.compile(r'(?<=>)(?=<)|(?<=z)(?=M)')
# Of Matplotlib's SVG: what nobody sees; and its style, which would be that of
# all elements of the page.
UNSEEN = re.compile(r'<path d="[^"]*" style="fill: none"/>|<g\b[^>]*/>|'
                    r'<defs><style[^>]*>[^<]*</style></defs>')
NOT_TURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
ID = re.compile(r' id="([^"]*)"')
BAR = re.compile(r'M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 z ?')


class Toy:
    """A toy as a page shows it; settings: the arguments of its function.

    controls: what the script needs to know of them. file: the name of a
    script with all pictures, in `folder`, which toys that offer the same
    share. picture, alt: the first one, and what one sees in it.
    """

    def __init__(self, name, settings, folder):
        self.name = name
        with widgets.collected_toys() as toys:
            getattr(pictures, name)(**settings)
        [(self._draw, self._controls)] = toys
        self._options = {key: self._offered(key) for key in self._controls}
        self.controls = [
            {'kind': control.kind, 'label': control.label,
             'options': [label for label, _ in self._options[key]],
             'value': _place_of(control.value, self._options[key])}
            for key, control in self._controls.items()]
        others = {key: value for key, value in settings.items()
                  if key not in self._controls}
        known = json.dumps([name, others, [
            control['options'] for control in self.controls
            if control['kind'] != 'steps'], code()])
        number = hashlib.sha256(known.encode()).hexdigest()[:8]
        self.file = f'{name}-{number}.js'
        most = self._keep(folder)
        svgs, self.alt = parts(self._draw(**{
            key: control.value for key, control in self._controls.items()}))
        self.picture = for_page(svgs, most)

    def _offered(self, key):
        """[(label, value), ...] of a control, or of some of its choices."""
        control, fewer = self._controls[key], FEWER.get(
            self.name, {}).get(key)
        values = [value for _, value in control.options]
        if fewer and not {*fewer} <= {*values}:
            raise ExtensionError(f'{self.name}: {key} is one of {values}, '
                                 f'and {fewer} are not')
        return [(label, value) for label, value in control.options
                if not fewer or value in fewer or value == control.value]

    def _keep(self, folder):
        """Draw all pictures, if they are not there from another time.

        Returns their sizes, see `largest`.
        """
        sizes = folder / f'{self.file}on'
        if not sizes.exists():
            folder.mkdir(parents=True, exist_ok=True)
            rows = self.settings()
            number = sum(map(len, rows))
            if number > MOST:
                raise ExtensionError(f'{self.name} has {number} pictures, '
                                     f'and {MOST} are too many')
            frames = drawn(self._draw, [*itertools.chain(*rows)])
            most = largest(frames)
            script = b64encode(packed(
                [(for_page(svgs, most), alt) for svgs, alt in frames],
                [*map(len, rows)])).decode()
            (folder / self.file).write_text(
                f"d2lps.pictures('{self.file}', '{script}');\n")
            sizes.write_text(json.dumps(most))
        return json.loads(sizes.read_text())

    def settings(self):
        """Values of the controls by name, in rows: a dict for each step.

        A row is there for each choice with the other controls, of which the
        last moves first. Without steps, a row has one dict.
        """
        offered = {key: [value for _, value in options]
                   for key, options in self._options.items()}
        stepped = [key for key in offered
                   if self._controls[key].kind == 'steps']
        for key in stepped:
            del offered[key]
        rows = []
        for values in itertools.product(*offered.values()):
            chosen = dict(zip(offered, values))
            rows.append([chosen | dict(zip(stepped, places))
                         for places in itertools.product(*(
                             self._steps(key, chosen) for key in stepped))])
        return rows

    def _steps(self, key, chosen):
        """The steps of a control, with these values of the others."""
        control = self._controls[key]
        last = (control.most(**chosen) if control.most
                else len(control.options) - 1)
        return range((last or 0) + 1)


def _place_of(wanted, options):
    return [value for _, value in options].index(wanted)


@cache
def code():
    """A number that is another one if a toy may draw something else."""
    number = hashlib.sha256(f'{matplotlib.__version__} {numpy.__version__}'
                            .encode())
    for path in sorted(Path(d2lps.__file__).parent.rglob('*')):
        if path.suffix in ('.py', '.mplstyle'):
            number.update(path.read_bytes())
    number.update(Path(__file__).read_bytes())
    return number.hexdigest()


def drawn(draw, settings):
    """The parts of a picture for each of the settings, drawn on all cores."""
    drawn.draw = draw  # processes know it if they are forked, and only then
    if sys.platform != 'linux':
        return [*map(_drawn_parts, settings)]
    with get_context('fork').Pool() as pool:
        return pool.map(_drawn_parts, settings)


def _drawn_parts(values):
    return parts(drawn.draw(**values))


def parts(picture):
    """([SVG, ...], alternative text) of a picture of one image or several."""
    html = html_of(picture)
    svgs = [slim(b64decode(data).decode()) for data in SVG.findall(html)]
    if not svgs:
        raise ExtensionError(f'{picture!r} is no picture of a toy')
    return svgs, ' '.join(map(unescape, ALT.findall(html)))


def slim(svg):
    """A shorter SVG, without names that nothing refers to.

    These names differ from frame to frame, which would then share less.
    """
    used = {*re.findall(r'(?:url\(|href=")#([^")]*)', svg)}
    svg = ID.sub(lambda it: it[0] if it[1] in used else '', svg)
    svg = BAR.sub(r'M\1 \2H\3V\4H\1z', svg)
    return NOT_TURNED.sub('', UNSEEN.sub('', svg))


def root_of(svg):
    """(attributes of an SVG's root, the text after its tag)."""
    root, rest = svg.split('>', 1)
    return dict(ATTRIBUTE.findall(root)), rest


def is_figure(root):
    """Matplotlib's, which counts in points, or else a Drawing."""
    return 'font-family' not in root


def size_of(svg):
    root, _ = root_of(svg)
    return [float(root['width']), float(root['height'])]


def is_wide(svg, width):
    """Whether a phone cannot show a picture as a whole."""
    root, _ = root_of(svg)
    return width > (NARROW_FIGURE if is_figure(root) else NARROW_DRAWING)


def largest(frames):
    """Where frames have several pictures, the size for each place.

    If all have it, what is below stays. A single picture keeps its size.
    """
    sizes = [[size_of(svg) for svg in svgs] for svgs, _ in frames]
    most = [[max(lengths) for lengths in zip(*of_place)]
            for of_place in zip(*sizes, strict=True)]
    return most if len(most) > 1 else None


def for_page(svgs, most):
    """The pictures of a frame as HTML, of sizes `most`, or of their own."""
    return ''.join(resized(named(svg, f'{k}-' if k else ''), size)
                   for k, (svg, size) in enumerate(zip(
                       svgs, most or map(size_of, svgs), strict=True)))


def named(svg, prefix):
    """An SVG whose names have a prefix: those of a page are all its own."""
    return ADDRESS.sub(rf'\g<1>{prefix}', svg)


def resized(svg, size):
    """With room to the right and below; the words are beside the picture."""
    root, rest = root_of(svg)
    width, height = size
    unit, style = ((72 / 96, 'stroke-linejoin="round"') if is_figure(root)
                   else (1, f'font-family="{root["font-family"]}"'))
    wide = ' class="toy-wide"' if is_wide(svg, width) else ''
    return (f'<svg viewBox="0 0 {unit * width:g} {unit * height:g}" '
            f'width="{width:g}" height="{height:g}" {style} '
            f'aria-hidden="true"{wide}>{rest}')


def packed(frames, lengths):
    """Bytes: pictures are numbers of shapes, as they have most in common.

    frames: (picture, alternative text) of each. lengths: of the rows of
    frames, see `Toy.settings`.
    """
    number, shapes, made_of = {}, {}, []  # of pictures, of shapes
    for frame in frames:
        if frame not in number:
            number[frame] = len(number)
            made_of.append([shapes.setdefault(shape, len(shapes))
                            for shape in BETWEEN_SHAPES.split(frame[0])])
    numbers = iter([number[frame] for frame in frames])
    text = json.dumps(
        {'shapes': [*shapes], 'pictures': made_of,
         'alts': [alt for _, alt in number],
         'frames': [[*itertools.islice(numbers, length)]
                    for length in lengths]},
        separators=(',', ':'), ensure_ascii=False)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(text.encode()) + deflate.flush()
