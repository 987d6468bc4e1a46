"""Notebooks and toys in a real JupyterLab, in headless Chromium.

One `make lab` and one page for all, with copies of the notebooks. Here is one
of each kind; nbval runs every chapter, and tests/exercises every exercise.
"""
import re
import shutil
from collections import Counter
from urllib.parse import urlsplit

import nbformat
import pytest
from labpage import GUESS, LIMIT, ROOT, STDERR, Lab, committed
from labserver import served, until

from d2lps.pictures.controls import NOT_RUN

pytestmark = pytest.mark.full

NOTEBOOKS = ROOT / 'notebooks'
# The map; pictures that play; tables and a store; workers that wait.
KINDS = ['index.ipynb', '03-where-to-sum.ipynb',
         '08-a-store-from-scratch.ipynb', '12-when-a-ring-hangs.ipynb']
# Steps with buttons; two pictures side by side; buttons alone; a tick.
TOYS = 'explore_plans', 'explore_clock', 'explore_store', 'explore_latency'
EXERCISE = 'semiring'
OURS = {'127.0.0.1', 'localhost', '::1', 'None', ''}
SLOW = '10.0.'  # addresses inside the slow network begin with it
# What workers say before the others are done, in chapter 12.
WAITED = re.compile(r'(\[worker \d\] PeerError: .*\s*)+')


def cells_of(path):
    """The cells with code of a notebook as it is committed."""
    return [cell for cell in nbformat.read(NOTEBOOKS / path, 4).cells
            if cell.cell_type == 'code']


@pytest.fixture(scope='module')
def lab(chromium, tmp_path_factory):
    with served(tmp_path_factory.mktemp('lab')) as server:
        yield Lab(chromium, server)


def test_nothing_is_asked_of_a_reader(lab):
    """No news and no question; and what opens is the index."""
    page = lab.page
    assert page.url.endswith('/lab/tree/index.ipynb')
    # News and updates are asked for when all is loaded.
    page.wait_for_load_state('networkidle', timeout=LIMIT)
    assert not page.locator('.jp-Dialog, .Toastify__toast').all_inner_texts()
    # Its panel asks whether it may fetch data from the web.
    assert not page.locator('[data-id^=extensionmanager]').count()


def test_looking_and_saving_change_nothing(lab, tmp_path):
    """No mark of a change on the tab, and the same bytes in the file."""
    path = '03-where-to-sum.ipynb'
    file = lab.server.notebooks / path
    before = file.read_bytes()
    with lab.notebook(path, tmp_path) as page:
        page.locator('.jp-NotebookPanel .jp-Toolbar').first.wait_for()
        lab.settle()
        assert not page.locator('.lm-TabBar-tab.jp-mod-dirty').count()
        lab.save(path)
    assert file.read_bytes() == before


def test_answers_are_hidden_until_the_reader_asks(lab, tmp_path):
    """A bar says nothing of the result; to run the cell opens it."""
    chapter = NOTEBOOKS / '05-rings.ipynb'
    copy = lab.server.notebooks / 'with-outputs.ipynb'
    shutil.copy(chapter, copy)
    with lab.notebook('with-outputs.ipynb', tmp_path) as page:
        bars = page.locator('.jp-OutputPlaceholder .jp-PlaceholderText')
        # What JupyterLab has not drawn yet has no words.
        bars.filter(has_text=GUESS).first.wait_for(state='attached')
        assert {*bars.all_text_contents()} <= {'', GUESS}
        lab.save('with-outputs.ipynb')
        assert copy.read_bytes() == chapter.read_bytes()
        answer = page.locator('.jp-MarkdownOutput details').first
        assert answer.get_attribute('open') is None
        answer.locator('summary').click()
        assert answer.locator('strong').first.inner_text() == 'Answer.'
        lab.run_all()
        assert not page.locator('.jp-OutputPlaceholder').count()


def test_links_to_what_is_beside_the_notebooks_open(lab, tmp_path):
    beside = lab.server.notebooks.parent / 'teaching'
    beside.mkdir()
    (beside / 'README.md').write_text('# Beside the notebooks')
    with lab.notebook('index.ipynb', tmp_path) as page:
        page.get_by_role('link', name='for teachers').first.click()
        page.get_by_role('heading', name='Beside the notebooks').wait_for()
        # The tests that follow find their notebook in front.
        lab.menu('File', 'Close Tab')
        page.locator('.jp-NotebookPanel .jp-Cell').first.wait_for()


def drawn(lab, wanted):
    """The kinds of outputs that are drawn, when the wanted ones are there."""
    def missing():
        found = [Counter(output['kind'] for output in cell['outputs']
                         if output['drawn']) for cell in lab.cells()]
        return [(number, [*less]) for number, (kinds, there) in enumerate(
            zip(wanted, found), 1) if (less := Counter(kinds) - there)]
    until(lambda: not missing(), lambda: f'outputs are drawn: {missing()}')


def right(cells, wanted, first=1):
    """All have run, in order, without an error or a warning."""
    wrong = [output['words'] for cell in cells for output in cell['outputs']
             if output['kind'] == STDERR and not WAITED.fullmatch(
                 output['words'].strip())]
    assert not wrong, '\n'.join(wrong)
    # What is folded shows a bar in place of its number.
    runs = {i: int(cell['prompt'].strip('[ ]:') or 0)
            for i, cell in enumerate(cells) if not cell['folded']}
    assert len(cells) == len(wanted)
    assert runs == {i: runs[0] + i for i in runs}
    assert runs[0] == first or not first and runs[0]


@pytest.mark.parametrize('notebook', KINDS)
def test_a_notebook_runs_and_is_saved_with_its_pictures(lab, notebook,
                                                        tmp_path):
    """And nothing is wider than its place, in both sizes of the window."""
    wanted = committed(notebook)
    with lab.notebook(notebook, tmp_path):
        right(lab.run_all(), wanted)
        drawn(lab, wanted)
        cut = lab.cut()
        lab.resize()
        cut += lab.cut()
        assert not cut, '\n'.join(cut)
        saved = lab.save(notebook)
        assert all(has_picture(cell) for cell in saved.cells
                   if re.search(r'\bexplore_\w+\(', cell.source))


def has_picture(cell):
    """One that is seen without a kernel."""
    return cell.cell_type == 'markdown' or any(
        'image/png' in output.get('data', {}) or '<img' in output.get(
            'data', {}).get('text/html', '') for output in cell.outputs)


# What is shown in the cell besides controls.
PICTURE = '''cell => [...cell.querySelectorAll('.jp-OutputArea-output img')
  ].map(one => one.src).join()'''
# The height of a cell's outputs and the pictures in it, frame by frame.
WATCHED = '''cell => {
  const outputs = cell.querySelector('.jp-Cell-outputArea');
  const seen = window.seen = {heights: [], pictures: []};
  const look = () => {
    seen.heights.push(outputs.getBoundingClientRect().height);
    seen.pictures.push([...outputs.querySelectorAll('img')].map(
      image => image.src).join());
    requestAnimationFrame(look);
  };
  look();
}'''
SEEN = '''() => ({heights: [...new Set(window.seen.heights)],
                pictures: new Set(window.seen.pictures).size})'''
SMALL = '''cell => [...cell.querySelectorAll('.jp-Cell-outputArea *')].filter(
  one => one.textContent.trim() && parseFloat(getComputedStyle(one).fontSize)
    < 12).map(one => one.textContent)'''


@pytest.mark.parametrize('toy', TOYS)
def test_a_toy_stands_still_and_follows_a_drag(lab, toy, tmp_path):
    """Every control has words, and what is below stays where it is."""
    lab.write(f'{toy}.ipynb', [
        f'from d2lps import pictures\npictures.{toy}()'])
    with lab.notebook(f'{toy}.ipynb', tmp_path) as page:
        assert not [one for cell in lab.run_all() for one in cell['outputs']
                    if one['kind'] == STDERR]
        cell = page.locator('.jp-NotebookPanel .jp-CodeCell').first
        cell.locator('.jp-OutputArea-output img').first.wait_for()
        lab.settle()
        assert cell.evaluate(SMALL) == [] and lab.cut() == []
        for control in cell.locator('.widget-dropdown, .widget-slider').all():
            assert control.locator('.widget-label').inner_text().strip()
        cell.evaluate(WATCHED)
        handles = [slider.locator('.noUi-handle')
                   for slider in cell.locator('.widget-slider').all()
                   if toy != 'explore_plans' or 'devices' not in
                   slider.inner_text()]  # which has a row for each device
        for handle in handles:
            with_keys(handle, lab)
        if handles:
            drag(lab, cell, handles[0])
        else:
            for button in cell.locator('.jupyter-button').all():
                button.click()
                lab.settle()
        seen = page.evaluate(SEEN)
        assert len(seen['heights']) == 1, seen['heights']
        assert seen['pictures'] > 1


def with_keys(handle, lab):
    """To one end, and to the other."""
    handle.focus()
    for key in 'End', 'Home':
        handle.page.keyboard.press(key)
        lab.settle()


def drag(lab, cell, handle):
    """Its picture is another one before the mouse is let go."""
    page, track = handle.page, handle.locator(
        'xpath=ancestor::*[contains(@class, "noUi-target")]')
    box, wide = handle.bounding_box(), track.bounding_box()
    y = box['y'] + box['height'] / 2
    before = cell.evaluate(PICTURE)
    page.mouse.move(box['x'] + box['width'] / 2, y)
    page.mouse.down()
    page.mouse.move(wide['x'] + 0.95 * wide['width'], y, steps=10)
    lab.wait(f'([cell, before]) => ({PICTURE})(cell) != before',
             'a picture follows before the mouse is let go', LIMIT,
             [cell.element_handle(), before], 50)
    page.mouse.up()
    lab.settle()


def test_a_notebook_that_was_not_run_says_how_to_get_toys(lab, tmp_path):
    """Whether JupyterLab trusts it, since it ran here before, or not."""
    lab.write('day-1.ipynb', ['from d2lps import pictures\n'
                              'pictures.explore_plans()'])
    shown = '''([one, words]) => one.innerText.trim() == words ||
        getComputedStyle(one, '::after').content == `"${words}"` &&
        getComputedStyle(one).fontSize == '0px' '''
    with lab.notebook('day-1.ipynb', tmp_path) as page:
        lab.run_all()
        saved = lab.save('day-1.ipynb')
        page.reload()  # its kernel lives on, with controls that do nothing
        outputs = page.locator('.jp-OutputArea-output')
        outputs.locator('img').first.wait_for()
        lab.wait(shown, 'a page loaded anew says how to get a toy', LIMIT,
                 [outputs.first.element_handle(), NOT_RUN])
    # A second after it was loaded anew, JupyterLab opens once more what the
    # page's address names, though it has been closed meanwhile.
    lab.begin_again()
    cell = saved.cells[0]
    assert cell.outputs[0].data['text/plain'] == NOT_RUN
    cell.source += '  # of somebody else, whose notebook has no signature'
    nbformat.write(saved, lab.server.notebooks / 'day-2.ipynb')
    for name in 'day-2.ipynb', 'day-1.ipynb':
        with lab.notebook('index.ipynb', tmp_path):
            pass
        with lab.notebook(name, tmp_path) as page:
            outputs = page.locator('.jp-OutputArea-output')
            outputs.locator('img').first.wait_for()
            lab.wait(shown, f'{name} says how to get a toy', LIMIT,
                     [outputs.first.element_handle(), NOT_RUN])


def test_a_student_solves_an_exercise(lab, tmp_path):
    """Runs it with nothing written yet, writes the answer, runs it again.

    By then it is what the solution is, but for the checks that are hidden.
    """
    task, solution = (f'exercises/{folder}/{EXERCISE}.ipynb'
                      for folder in ('tasks', 'solutions'))
    cells = cells_of(solution)
    names = [cell.metadata.get('nbgrader', {}).get('grade_id', '')
             for cell in cells]
    number = names.index('answer')
    wanted = [[] if name.startswith('hidden') else kinds  # there for teachers
              for name, kinds in zip(names, committed(solution))]
    with lab.notebook(task, tmp_path) as page:
        first = [output for cell in lab.run_all()
                 for output in cell['outputs']][-1]
        assert first['kind'] == STDERR and re.search(
            r'Not yet\.|NotImplementedError: write your answer here',
            first['words'])
        page.locator('.jp-CodeCell .cm-content').nth(number).click()
        page.keyboard.press('Control+a')
        page.keyboard.insert_text(cells[number].source)
        right(lab.run_all(), wanted, first=None)
        drawn(lab, wanted)
        cut = lab.cut()
        lab.resize()
        cut += lab.cut()
        assert not cut, '\n'.join(cut)


PANEL = '''import d2lps
import tempfile
folder = tempfile.TemporaryDirectory()
c = d2lps.Cluster(2, 2, restarts=3)
panel = d2lps.pictures.TrainingPanel(c, folder.name, num_steps=400,
                                     batch_size=32)
'''
WAIT = '''trained = await panel.wait()
print('went on:', len(trained.losses), [death.who for death in c.deaths])
c.close()
'''


def test_a_click_kills_and_training_goes_on(lab, tmp_path):
    """Though the kernel waits in another cell meanwhile."""
    from playwright.sync_api import expect
    lab.write('click.ipynb', [PANEL, WAIT])
    with lab.notebook('click.ipynb', tmp_path) as page:
        lab.menu('Run', 'Run All Cells')
        kill = page.locator('button', has_text='kill server')
        image = page.locator('.jp-OutputArea-output img').first
        image.wait_for()
        before = image.get_attribute('src')
        expect(image).not_to_have_attribute('src', before, timeout=LIMIT)
        page.locator('.widget-dropdown select').select_option('server 1')
        kill.click()
        page.get_by_text('server 1 was killed').wait_for()
        expect(kill).to_be_disabled(timeout=LIMIT)  # it has ended by itself
        page.get_by_text("went on: 400 ['server 1']").wait_for()


def test_nothing_was_sent_to_the_outside(lab):
    """By all tests above: what the page asked for, and whom Python sought."""
    hosts = {urlsplit(url).hostname for url in lab.requests
             if not url.startswith(('data:', 'blob:'))}
    assert hosts == {'127.0.0.1'}
    sought = set(lab.server.spied.read_text().splitlines())
    sought = {one for one in sought if not one.startswith(SLOW)}
    assert sought and sought <= OURS  # the spy is there
