"""The toys in a real JupyterLab: keys move them, and pictures follow."""
import time

import nbformat
import pytest
from test_lab import (SETUP, lab, opened, pytestmark,  # noqa: F401
                      run_all)

SLIDER, MENU = '.noUi-handle', 'select'
# Each toy with what is moved in it: a place, and a key or a menu's option.
TOYS = {
    "explore_plans('sharded', 4)": [
        ('.jupyter-button >> nth=-1', 'Enter'),
        (f'{SLIDER} >> nth=1', 'ArrowRight'),
        ('select >> nth=1', 'sums of 1, 2, 3, …'),
        (MENU, 'hierarchical, 2 machines'), (SLIDER, 'ArrowRight')],
    'explore_latency()': [(SLIDER, 'ArrowRight'),
                          (f'{SLIDER} >> nth=2', 'ArrowLeft'),
                          ('input[type=checkbox]', 'Space')],
    'explore_store()': [('.jupyter-button >> nth=2', 'Enter'),
                        ('.jupyter-button >> nth=0', 'Space'),
                        (MENU, 'async: nobody waits')],
    'explore_keys()': [(SLIDER, 'ArrowRight'),
                       (f'{SLIDER} >> nth=1', 'ArrowLeft')],
    'explore_sums()': [(SLIDER, 'ArrowLeft'), (MENU, 'in pairs, as in a tree'),
                       ('select >> nth=1', 'float32')],
    'explore_devices()': [(SLIDER, 'ArrowRight'), (MENU, 'sharded')],
    'explore_timeline()': [(f'{SLIDER} >> nth=1', 'ArrowRight')]}


def source(cell):
    image = cell.locator('.jp-OutputArea-output img').last
    image.wait_for(timeout=60_000)
    return image.get_attribute('src')


def seconds_to_follow(cell, where, key):
    """Move something; how long it takes until there is another picture."""
    control, before = cell.locator(where).first, source(cell)
    control.focus()
    begin = time.monotonic()
    if 'select' in where:
        control.select_option(key)
    else:
        control.press(key)
    while source(cell) == before:
        assert time.monotonic() < begin + 60, f'{where}, {key}: no picture'
        time.sleep(0.01)
    took = time.monotonic() - begin
    assert control.evaluate('it => it === document.activeElement'), (
        f'{where} has lost the keyboard')
    return took


def pictures_saved(folder):
    """How many cells have one that is seen without a kernel."""
    cells = nbformat.read(folder / 'cells.ipynb', 4).cells
    return sum(any('image/png' in output.get('data', {}) or '<img' in
                   output.get('data', {}).get('text/html', '')
                   for output in cell.outputs) for cell in cells)


@pytest.mark.parametrize('width', [1280, 1024])
def test_toys_follow_keys(lab, tmp_path, width):  # noqa: F811
    """And no control or picture is wider than the window's notebook."""
    calls = [f'pictures.{call}' for call in TOYS]
    with opened(lab, tmp_path, [SETUP, *calls]) as page:
        page.set_viewport_size({'width': width, 'height': 900})
        run_all(page)
        cells = page.locator('.jp-Notebook .jp-CodeCell')
        source(cells.nth(len(TOYS)))  # all have run
        for number, (call, moves) in enumerate(TOYS.items(), 1):
            cell = cells.nth(number)
            cell.scroll_into_view_if_needed()
            source(cell)
            cell.screenshot(path=tmp_path / f'{number}-{width}-begin.png')
            for move in moves:
                print(f'{call} {move}: '
                      f'{seconds_to_follow(cell, *move):.2f} s')
            cell.screenshot(path=tmp_path / f'{number}-{width}-moved.png')
            assert cell.locator('.jp-OutputArea').first.evaluate(
                'area => area.scrollWidth <= area.clientWidth + 1'), call
            assert 'Error' not in cell.inner_text()
        page.keyboard.press('Control+s')
        deadline = time.monotonic() + 60
        while pictures_saved(tmp_path) < len(TOYS):
            assert time.monotonic() < deadline, 'pictures are not saved'
            time.sleep(0.5)
