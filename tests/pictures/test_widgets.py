"""A picture follows the controls above it."""
import threading
from pathlib import Path

import ipywidgets
import pytest

from d2lps.pictures import board, widgets
from d2lps.pictures.controls import NOT_RUN, checkbox, choose, menu, steps
from d2lps.pictures.drawing import Drawing

WIDGET = 'application/vnd.jupyter.widget-view+json'


def picture(words):
    return Drawing(9, 9, words)


def alts(shown):
    return [one.alt for one in shown[1:]]


def test_a_picture_follows_its_controls(shown):
    widgets.live_picture(lambda **values: picture(str(values)), {
        'a': choose([1, 3], 3, 'first'), 'b': menu([5, 6], 5, 'second')})
    a, b = shown[0].children
    b.value = 6
    a.value = 1
    assert alts(shown) == [
        "{'a': 3, 'b': 5}", "{'a': 3, 'b': 6}", "{'a': 1, 'b': 6}"]


def test_a_notebook_that_was_not_run_says_how_to_get_controls(shown):
    widgets.live_picture(lambda n: picture('three boxes'),
                         {'n': steps(7, 3, 'round')})
    data = shown[0]._repr_mimebundle_()
    assert data['text/plain'] == NOT_RUN
    assert data[WIDGET]['model_id'] == shown[0].model_id
    assert 'img' in shown[1]._repr_html_()
    # Our JupyterLab says so, too, where it would say that a widget is gone.
    [style] = Path(__file__).parents[2].glob('setup/jupyter/**/style.css')
    assert f"content: '{NOT_RUN}'" in style.read_text()


def test_controls_are_what_was_described(shown):
    widgets.live_picture(lambda **_: picture('a'), {
        'n': choose([1, 1000, 0.5], 7.0, 'MB'), 'm': menu({'x y': 3}, 3, 'so'),
        'c': checkbox(True, 'also'), 's': steps(4, 2, 'round')})
    number, one, tick, step, buttons = shown[0].children
    assert [words for words, _ in number.options] == ['0.5', '1', '7', '1,000']
    assert number.value == 7 and one.value == 3 and tick.value is True
    assert (step.min, step.max, step.value) == (0, 4, 2)
    assert isinstance(buttons.children[0], ipywidgets.Play)
    assert all(one.description for one in (number, one, tick, step))


def test_steps_end_where_the_other_controls_say(shown):
    widgets.live_picture(lambda n, k: picture(f'{k} of {n}'), {
        'n': choose([3, 5, 8], 8, 'devices'),
        'k': steps(lambda n, k: None if n == 5 else n, 99, 'round')})
    n, k, buttons = shown[0].children
    play, back, forward = buttons.children
    assert k.value == k.max == play.max == 8
    n.value = 3  # takes the other down: one picture, no more
    assert k.value == k.max == play.max == play.value == 3
    back.click()
    n.value = 5
    assert (k.max, k.value) == (3, 2)
    play.value = 3  # what the browser does as time goes by
    forward.click()  # stays at the end
    assert alts(shown) == ['8 of 8', '3 of 3', '2 of 3', '2 of 5', '3 of 5']


def test_the_newest_value_wins(shown):
    """What moves while a picture is drawn, by whatever thread, is drawn."""
    def draw(n):
        if n == 2:
            for value in 3, 4, 5:
                mover = threading.Thread(target=setattr,
                                         args=(slider, 'value', value))
                mover.start()
                mover.join(10)
                assert not mover.is_alive()
        return picture(f'{n}')
    slider = None
    widgets.live_picture(draw, {'n': steps(9, 1, 'n')})
    slider = shown[0].children[0]
    slider.value = 2
    assert alts(shown) == ['1', '2', '5']


def test_what_moves_between_two_steps_of_a_picture_is_drawn_last(shown):
    """After the values were read, and while a picture is published."""
    moves = {3: 4, 5: 6}  # a value, and the next one, of another thread

    def move(value):
        if value in moves:
            mover = threading.Thread(target=setattr, args=(
                toy.widgets['n'], 'value', moves.pop(value)))
            mover.start()
            mover.join(10)
            assert not mover.is_alive()

    def most(n, k):
        if n == 3:
            move(n)
        return 9

    toy = board.LivePicture(lambda n, k: picture(str(n)), {
        'n': steps(9, 1, 'n'), 'k': steps(most, 1, 'k')})
    publish = toy._shown.update

    def update(drawing):
        move(int(drawing.alt))
        publish(drawing)

    toy._shown.update = update
    toy.widgets['n'].value = 3
    toy.widgets['n'].value = 5
    assert not moves
    assert alts(shown)[-1] == '6' and '4' in alts(shown)
    assert alts(shown).index('5') < alts(shown).index('6')


def test_what_goes_wrong_is_shown_and_the_next_one_is_drawn(shown):
    def draw(n):
        if n == 1:
            raise KeyboardInterrupt
        return picture(f'{6 // n}')
    widgets.live_picture(draw, {'n': choose([0, 1, 2, 3], 2, 'n')})
    slider, = shown[0].children
    slider.value = 0
    assert repr(shown[-1]).endswith(
        'ZeroDivisionError: integer division or modulo by zero')
    assert 'ZeroDivisionError' in shown[-1]._repr_html_()
    with pytest.raises(KeyboardInterrupt):
        slider.value = 1
    slider.value = 3
    assert shown[-1].alt == '2'


def test_a_picture_may_be_a_figure_and_follows_in_a_notebook(python):
    """Each is one image in the place of the one before, or the problem."""
    code = '''if True:
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        import d2lps
        from d2lps.pictures import board, widgets
        from d2lps.pictures.controls import choose
        from d2lps.pictures.rows import new_figure
        shown = []
        publish = shell.display_pub.publish
        shell.display_pub.publish = lambda data, *_, transient=None, **__: (
            shown.append((data, transient)))

        def draw(n):
            figure = new_figure(3, 2, None)
            figure.subplots().bar(["a", "b"], [1, 6 // n])
            return figure

        toy = board.LivePicture(draw, {"n": choose([0, 1, 2], 2, "n")})
        for n in 1, 0, 2:
            toy.widgets["n"].value = n
        pictures = [one for one in shown if (one[1] or {}).get("display_id")]
        assert len({one[1]["display_id"] for one in pictures}) == 1
        for data, _ in pictures:
            assert "image/png" not in data and "image/svg+xml" not in data
            print(data["text/html"].split(" src")[0][:40])
    '''
    lines = python('-c', code).stdout.splitlines()
    assert lines[0] == lines[3] == '<img alt="a 1, b 3." width="288" style="'
    assert lines[1] == '<img alt="a 1, b 6." width="288" style="'
    assert lines[2].startswith('<pre style="color')


def test_toys_can_be_caught(shown):
    with widgets.collected_toys() as toys:
        widgets.live_picture(lambda n, k: picture(f'{n}'), {
            'n': choose([1, 2], 1, 'servers'),
            'k': steps(lambda n, k: 3 * n, 9, 'round')})
    [toy] = toys
    assert not shown
    assert toy.draw(n=2, k=0).alt == '2'
    assert toy.controls['n'].options == [('1', 1), ('2', 2)]
    assert toy.controls['k'].options[-1] == ('3', 3)
    widgets.live_picture(lambda: picture('a'), {})
    assert len(shown) == 2 and len(toys) == 1
