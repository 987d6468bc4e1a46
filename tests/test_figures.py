"""Matplotlib's figures: their style, their SVG, and their words."""
import re
from base64 import b64decode
from xml.etree import ElementTree

import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from nbclient import NotebookClient

from d2lps import figures
from d2lps.pictures import rows
from d2lps.pictures.drawing import Row

SVG = '{http://www.w3.org/2000/svg}'
CURVES = pd.DataFrame({'ring': [1.0, 4, 9], 'tree': [2.0, 7, 5]}, [1, 2, 4])


@pytest.fixture
def axes():
    """`Axes` of a figure of their own."""
    return rows.new_figure().subplots()


def words(ax):
    return figures.alt_text(ax.figure)


# What is said of a figure.
def test_lines_are_told_by_their_ends_and_by_what_is_beyond_them(axes):
    CURVES.plot(ax=axes, title='Times', xlabel='devices', ylabel='ms')
    axes.axhline(3, label='best')
    axes.axvline(2)
    assert words(axes) == (
        'Times: ms against devices. ring: from 1 at 1 to 9 at 4; tree: from 2 '
        'at 1 to 5 at 4, at most 7; best: a line at 3; an upright line at 2.')


def test_lines_are_told_by_the_names_in_the_legend(axes):
    axes.plot([1, 2], [3, 4])
    axes.plot([1, 2], [5, 6])
    axes.legend(['ring', 'tree'])  # as d2l's plots do
    assert words(axes) == (
        'ring: from 3 at 1 to 4 at 2; tree: from 5 at 1 to 6 at 2.')


def test_gaps_and_words_are_told_as_well(axes):
    axes.plot(['1 kB', '1 MB'], [np.nan, 3], label='sizes')
    assert words(axes) == 'sizes: 3 at 1 MB.'


@pytest.mark.parametrize('kind', ['bar', 'barh'])
def test_bars_are_told_by_their_names(axes, kind):
    CURVES.set_axis(list('abc')).plot(kind=kind, stacked=True, ax=axes)
    assert words(axes) == 'ring: a 1, b 4, c 9; tree: a 2, b 7, c 5.'


def test_bars_of_an_inner_axes_are_told_by_the_names_that_it_shares():
    figure = rows.new_figure()
    for ax in figure.subplots(1, 2, sharey=True):
        ax.barh(['ring', 'tree'], [1, 2])
    assert figures.alt_text(figure).count('ring 1, tree 2') == 2


def test_of_many_bars_the_first_are_told(axes):
    axes.hist(np.arange(40), bins=20)
    assert words(axes).startswith('2 at 0.975, 2 at 2.92, ')
    assert words(axes).endswith(' and 8 more.')


def test_a_description_stands_for_all_that_is_in_an_axes(axes):
    axes.plot([1, 2])
    figures.describe(axes, 'Device 0 waits.')
    axes.figure.suptitle('Both')
    assert words(axes) == 'Both. Device 0 waits.'
    axes.set_title('Device 0')
    assert words(axes) == 'Both. Device 0 waits.'
    axes.set_title('A title of the reader')
    assert words(axes) == 'Both. A title of the reader. Device 0 waits.'


def test_a_key_of_a_mosaic_is_no_sentence():
    figure = rows.new_figure()
    figure.subplot_mosaic('AB')['B'].plot([1, 2])
    assert figures.alt_text(figure) == 'from 1 at 0 to 2 at 1.'


def test_names_on_the_upright_axis_are_told_last(axes):
    axes.plot([3, 4], ['ring', 'tree'], label='predicted')
    assert words(axes) == 'predicted: from 3 at ring to 4 at tree.'


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('points, said', [
    (([1, 2, 3], [0.5, None, 0.3]), 'from 0.5 at 1 to 0.3 at 3.'),
    (([1, None, 3], [0.5, 9, 0.3]), 'from 0.5 at 1 to 0.3 at 3.'),
    ((np.ma.masked_less([1, 2, 3], 2), [7, 8, 9]), 'from 8 at 2 to 9 at 3.'),
    ((['a', 'b'], ['c', 'd']), 'from c at a to d at b.')])
def test_gaps_of_all_kinds_and_names_on_both_axes(axes, points, said):
    axes.plot(*points)
    assert words(axes) == said


def test_a_filled_contour_is_no_point(axes):
    axes.contourf(np.add.outer(np.arange(9), np.arange(9)))
    axes.scatter([1], [2])
    assert words(axes) == '1 point.'


def test_what_cannot_be_told_stops_no_figure(axes):
    class Odd(Line2D):
        def get_xdata(self, orig=True):
            raise RuntimeError('mine')
    CURVES.plot(ax=axes, title='Times')
    axes.add_line(Odd([1, 2], [3, 4]))
    assert words(axes) == (
        'Times. ring: from 1 at 1 to 9 at 4; tree: from 2 at 1 to 5 at 4, at '
        'most 7.')


def test_bars_between_ticks_are_told_by_their_places(axes):
    axes.bar(range(3), [5, 6, 7])
    axes.set_xticks([0, 2])
    assert words(axes) == '5 at 0, 6 at 1, 7 at 2.'


def test_a_legend_of_others_names_no_line(axes):
    axes.bar([1], [2], label='measured')
    axes.axhline(1)
    axes.legend()
    assert words(axes) == 'a line at 1; measured: 2 at 1.'


def test_a_second_picture_has_the_same_places():
    figure = rows.new_figure(layout=None)
    figure.subplots().plot([1, 2])
    figure.subplots_adjust(left=0.3)
    first = figures.svg(figure)
    assert figures.svg(figure) == first


def draw_pie(ax):
    ax.pie([1, 2], labels=['push', 'pull'])


def draw_odd(ax):
    ax.contour(np.add.outer(np.arange(4), np.arange(4)))
    ax.boxplot([[1, 2], [2, 3]])
    ax.errorbar([1], [2], yerr=1, label='error')
    ax.fill_between([1, 2], [3, 4], label='area')
    ax.scatter([1, 2], [3, 4], label='dots')
    ax.twinx().plot(np.ma.masked_array([1, 2], [True, False]))
    ax.figure.colorbar(ax.collections[0], ax=ax)


@pytest.mark.parametrize('draw, said', [
    (lambda ax: ax.plot([]), 'A figure that has no words.'),
    (draw_pie, 'push, pull.'), (draw_odd, 'dots: 2 points. 2 at 1')])
def test_a_readers_own_figure_is_shown_whatever_it_is(axes, draw, said):
    draw(axes)
    assert said in words(axes)
    assert figures.html(axes.figure).startswith('<img alt="')


# What is shown.
def test_an_image_is_small_and_has_its_words_as_words(axes):
    CURVES.plot(ax=axes, title='a < b & "c"', xlabel='0.125 devices')
    image = ElementTree.fromstring(
        figures.html(axes.figure).replace('>', '/>'))
    assert image.get('alt') == words(axes)
    data = image.get('src').removeprefix('data:image/svg+xml;base64,')
    root = ElementTree.fromstring(b64decode(data))
    texts = [text.text for text in root.iter(f'{SVG}text')]
    assert {'a < b & "c"', '0.125 devices', 'ring', 'tree'} <= {*texts}
    assert float(root.get('width')) == pytest.approx(5.4 * 96)
    assert int(image.get('width')) == round(5.4 * 96)
    assert len(data) < 20_000
    assert not root.findall('.//{*}metadata')


def test_a_figure_has_no_ground_and_is_the_same_each_time(axes):
    CURVES.plot(ax=axes)
    first = figures.svg(axes.figure)
    assert first == figures.svg(axes.figure)
    assert not re.search('fill: (#ffffff|white)', first)


def test_a_style_of_the_reader_keeps_its_ground():
    with plt.style.context('ggplot'):
        figure = plt.figure()
        figure.subplots().plot([1, 2])
    plt.close(figure)
    assert 'fill: #e5e5e5' in figures.svg(figure)


def test_letters_drawn_as_paths_keep_their_size(axes):
    axes.set_title('Times')
    with plt.rc_context({'svg.fonttype': 'path'}):
        assert 'scale(0.015625)' in figures.svg(axes.figure)


def test_photographs_are_pngs(axes):
    axes.imshow(np.eye(3))
    assert 'data:image/png' in figures.html(axes.figure)
    assert words(axes) == 'an image.'
    axes.set_title('7')
    assert words(axes) == 'an image: 7.'


def test_words_can_be_read_on_black(axes):
    axes.set_title('Times')
    axes.set_xscale('log')
    root = ElementTree.fromstring(figures.svg(axes.figure))
    color = re.search(r'style\*="(#\w+)"', figures.HALO)[1]
    assert figures.HALO in root.find(f'.//{SVG}style').text
    for text in root.iter(f'{SVG}text'):
        [group] = [one for one in root.iter() if text in [*one]]
        assert color in text.get('style', '') + group.get('style', '')


def test_lines_differ_without_colours():
    figures.use_style()
    ax = CURVES.plot(ax=rows.new_figure().subplots())
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


# In a notebook.
SHELL = """if True:
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.enable_gui = lambda gui=None: None  # a kernel's, which has one
    import d2lps
    from matplotlib import pyplot as plt
    def kinds():
        plt.plot([1, 2])
        data, _ = shell.display_formatter.format(plt.gcf())
        plt.close()
        return ' '.join(sorted(data))
"""
KINDS = 'text/html text/plain'


def test_a_notebook_shows_a_plot_once_a_readers_and_one_of_d2l(python):
    code = SHELL + """
    shell.enable_matplotlib('inline')
    print(kinds(), plt.rcParams['figure.figsize'])
    shell.enable_matplotlib('agg')
    shell.enable_matplotlib('inline')
    print(kinds())
    from d2l import mxnet as d2l
    shell.run_cell('pass')
    d2l.use_svg_display()
    print(kinds())
    """
    assert python('-c', code).stdout.splitlines() == [
        f'{KINDS} [5.4, 3.1]', KINDS, KINDS]


def test_a_kernel_shows_a_plot_in_the_cell_that_imports_pyplot():
    notebook = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell('import d2lps'),
        nbformat.v4.new_code_cell('from matplotlib import pyplot as plt\n'
                                  'plt.plot([1, 2]);')])
    NotebookClient(notebook, kernel_name='python3').execute()
    [output] = notebook.cells[1].outputs
    assert sorted(output.data) == ['text/html', 'text/plain']


def test_nothing_is_loaded_where_an_exercise_is_graded(python):
    code = SHELL.replace('import d2lps', """import d2lps, sys
    print('matplotlib' in sys.modules)""").split('def kinds')[0].replace(
        'from matplotlib import pyplot as plt', '')
    assert python('-c', code, D2LPS_CASES='cases').stdout == 'False\n'


def test_outside_of_a_notebook_matplotlib_is_not_loaded(python):
    code = 'import sys, d2lps; print("matplotlib" in sys.modules)'
    assert python('-c', code).stdout == 'False\n'


# Rows and bars.
def test_rows_are_named_from_the_top(axes):
    ax = rows.row_axes(['worker 0', 'worker 1'], 10, ax=axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        'worker 0', 'worker 1']
    assert ax.get_ylim() == (1.5, -0.5) and ax.get_xlim() == (0, 10)


def test_bars_of_one_colour_are_one_shape_and_one_entry(axes):
    rows.row_axes('ab', 10, ax=axes)
    rows.draw_bars(axes, [(0, 1, 0), (3, 5, 1)], '#0072B2', 'computes')
    _, shape = axes.patches  # the first one is for the legend only
    left, low = shape.get_path().vertices.min(axis=0)
    right, high = shape.get_path().vertices.max(axis=0)
    assert (left, right) == (0, 5)
    assert (low, high) == pytest.approx((-0.36, 1.36))
    rows.draw_bars(axes, [(0, 1e-9, 0), (3, 5, 1)], '#E69F00', 'waits')
    assert len(axes.patches) == 5  # what is thin has no edge
    assert axes.patches[4].get_linewidth() == 0
    rows.legend_below(axes)
    rows.legend_below(axes)  # as two panels do
    [legend] = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        'computes', 'waits']


def test_a_bar_is_named_if_there_is_room(axes):
    rows.row_axes('a', 100, ax=axes)
    rows.name_bar(axes, 0, 50, 0, 'layers 1-3', '#0072B2')
    rows.name_bar(axes, 0, 5, 0, 'layers 1-3', '#0072B2')
    [text] = axes.texts
    assert text.get_color() == 'white' and text.get_position() == (25, 0)


def test_parts_of_stacked_bars_are_labelled_if_they_fit_and_so_are_sums(axes):
    table = pd.DataFrame({'compute': [30.0, 80], 'push': [10, 0.1]})
    table.plot.barh(stacked=True, ax=axes)
    rows.label_parts(axes)
    texts = [text.get_text() for text in axes.texts]
    assert texts == ['30', '80', '10', '', '40', '80.1']
    assert axes.texts[0].get_color() == 'white'  # upon blue


def test_thin_bars_have_their_hatch_in_the_legend(axes):
    rows.row_axes('a', 10, ax=axes)
    rows.draw_bars(axes, [(0, 1e-9, 0)], '#E69F00', 'copy', hatch='//')
    [handle], [label] = axes.get_legend_handles_labels()
    assert (handle.get_hatch(), label) == ('//', 'copy')


def test_a_row_shows_figures_instead_of_their_cell():
    ax = rows.new_axes(None)
    ax.plot([1, 2])
    number = ax.figure.number
    assert plt.fignum_exists(number)
    row = Row(ax, ax.figure)
    assert not plt.fignum_exists(number)
    assert row.alt == repr(row) == ' '.join(2 * ['from 1 at 0 to 2 at 1.'])
    assert row._repr_html_().count('data:image/svg+xml') == 2
    with pytest.raises(ValueError, match='a Drawing, a Figure or Axes'):
        Row(3)
