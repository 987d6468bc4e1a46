"""What the book's extensions make of pictures and of code."""
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from d2lps.pictures.drawing import Drawing, Row
from d2lps.pictures.rows import new_figure

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / 'docs' / 'book' / 'extensions')
    yield import_module
    for name in 'frames', 'folding':
        sys.modules.pop(name, None)


def hatched(width):
    figure = new_figure(width, 2, layout=None)
    figure.subplots().bar(range(3), [3, 1, 2], hatch='//')
    return figure


def test_pictures_of_a_frame_share_no_names_and_use_their_own(extension):
    frames = extension('frames')
    svgs, words = frames.parts(Row(hatched(4), hatched(4), Drawing(
        80, 40, 'A box.').box(0, 0, 80, 40, fill=1)))
    page = frames.named(frames.for_page(svgs, None), 'toy-0-')
    names = re.findall(r'\bid="([^"]*)"', page)
    used = re.findall(r'(?:url\(|href=")#([^")]*)', page)
    assert len(names) == len({*names}) and {*names} == {*used}
    assert all(name.startswith('toy-0-') for name in names)
    assert '<style' not in page  # it would be that of all the page
    assert words.endswith('1 at 1, 2 at 2. A box.'), words


def test_pictures_keep_their_scale_where_others_are_larger(extension):
    """A figure counts in points, a drawing in pixels."""
    frames = extension('frames')
    shown = [([svg], '') for one in (hatched(4), hatched(7), Drawing(
        480, 96, 'A box.')) for svg in frames.parts(one)[0]]
    boxes = [re.search(r'viewBox="0 0 (\S+) (\S+)" width="(\S+)"',
                       frames.resized(svg, (480, 192))).groups()
             for [svg], _ in shown]
    assert boxes == [('360', '144', '480')] * 2 + [('480', '192', '480')]


@pytest.mark.parametrize('code, draws', [
    ('ax = table.plot(logx=True)\nax.set_xticks(sizes, sizes)', True),
    ('ax = both.plot.bar()\nticks = [1, 2]\nax.set_xticks(ticks)', True),
    ('fig, axes = plt.subplots(2)\nfor ax, one in zip(axes, steps):\n'
     '    pictures.plot_step(one, ax=ax)', True),
    ('sizes = [1, 2]\npd.DataFrame(sizes).plot()', False),
    ('ax = table.plot()\nd2lps.expect("less", table.max() < 1)', False),
    ('%px x = 1', False)])
def test_code_that_only_draws(extension, code, draws):
    assert extension('folding').only_draws(code) == draws
