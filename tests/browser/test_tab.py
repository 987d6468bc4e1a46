"""Chapters and exercises in a browser tab, as the pages lead to them.

The pages come from a server on this machine, and Python for the browser from
the folder that D2LPS_PYODIDE names. Nothing is asked of anybody else.
"""
import re
import tomllib

import nbformat
import pytest
from chromium import PHONE
from labserver import ROOT
from playwright.sync_api import expect

pytestmark = pytest.mark.full

ROWS = tomllib.loads((ROOT / 'docs/book/tab.toml').read_text('utf-8'))
CHAPTERS = [f'notebooks/{name}' for name, row in ROWS['chapters'].items()
            if row['runs'] in ('all', 'recorded')]
SOLUTIONS = [f'notebooks/exercises/solutions/{name}'
             for name, row in ROWS['exercises'].items() if row['runs'] != 'no']
RINGS = 'notebooks/05-rings'
# What workers say before the others are done, in chapter 12.
WAITED = 'PeerError: in round'


def says(page, words):
    page.locator('#d2lps-bar [role=status]', has_text=words).wait_for()


def click(page, name):
    page.get_by_role('button', name=name, exact=True).click()


# What cells of the notebook in front have as outputs.
CELLS = '''() => [...jupyterapp.shell.currentWidget.content.model.cells]
  .map(cell => cell.toJSON()).filter(cell => cell.cell_type == 'code')'''
# The errors and the red words of a notebook that runs in the Python of the
# one in front. What a picture shows in its place has a traceback.
RUN = '''async path => {
  const {kernel} = jupyterapp.shell.currentWidget.sessionContext.session;
  const notebook = await (await fetch(`../files/${path}.ipynb`)).json();
  const found = [];
  const run = async code => {
    const future = kernel.requestExecute({code, stop_on_error: false});
    future.onIOPub = ({header, content}) => {
      if (header.msg_type == 'error' || content.name == 'stderr')
        found.push(content.evalue || content.text);
      if (content.data?.['text/plain']?.startsWith('Traceback'))
        found.push(content.data['text/plain']);
    };
    await future.done;
  };
  await run(`%reset -f\\nimport os\\nos.chdir('/drive/${
    path.split('/').slice(0, -1).join('/')}')`);
  for (const cell of notebook.cells)
    if (cell.cell_type == 'code') await run(cell.source.join(''));
  await run(`
import ipywidgets
for widget in [*ipywidgets.widgets.widget._instances.values()]:
    if isinstance(widget, (ipywidgets.Dropdown, ipywidgets.SelectionSlider)):
        for widget.index in 0, len(widget.options) - 1:
            pass
    elif isinstance(widget, ipywidgets.IntSlider):
        for widget.value in widget.min, widget.max:
            pass
    elif isinstance(widget, ipywidgets.Checkbox):
        widget.value = not widget.value
    elif isinstance(widget, ipywidgets.Button):
        widget.click()
ipywidgets.Widget.close_all()`);
  return found;
}'''


@pytest.fixture(scope='module')
def rings(visit):
    """Chapter 5, begun from its page, at the section that one reads."""
    page = visit(f'{RINGS}.html')
    page.locator('section', has=page.locator('h2', has_text='Is the Sum')
                 ).last.evaluate('it => it.scrollIntoView()')
    page.get_by_role('link', name='Run this chapter here').dispatch_event(
        'click')
    page.locator('#d2lps-bar button:enabled', has_text='Run all').wait_for()
    return page


def test_a_chapter_begins_where_one_reads_and_runs(rings):
    assert rings.evaluate('''() => {
      const heading = [...document.querySelectorAll('.jp-Notebook h2')].find(
        one => one.textContent.startsWith('Is the Sum Always Right'));
      const {top, bottom} = heading.getBoundingClientRect();
      return 0 < top && bottom < innerHeight}''')
    says(rings, 'Python is ready')
    click(rings, 'Run all cells')
    says(rings, 'Done')
    cells = rings.evaluate(CELLS)
    assert [cell['execution_count'] for cell in cells] == [
        *range(1, len(cells) + 1)] != []
    assert all(output.get('execution_count', count) == count
               for count, cell in enumerate(cells, 1)
               for output in cell['outputs'])
    assert not [output for cell in cells for output in cell['outputs'] if
                output['output_type'] == 'error' or 'name' in output and
                output['name'] != 'stdout']


def test_a_toy_follows_a_click(rings):
    toy = rings.locator('.jp-OutputArea:has(.jupyter-widgets)').filter(
        has=rings.get_by_title('forward')).first
    expect(toy.locator('img')).to_have_attribute(
        'alt', re.compile('after round 1 of 6'))
    toy.get_by_title('forward').click()
    expect(toy.locator('img')).to_have_attribute(
        'alt', re.compile('after round 2 of 6'))


def test_a_link_leads_to_a_page_of_the_book(rings):
    with rings.context.expect_page() as opened:
        rings.locator('.jp-Notebook a[href*="03-where"]').first.click()
    opened.value.locator('h1', has_text='Where to Sum').wait_for()
    assert opened.value.url.partition('#')[0].endswith(
        '/notebooks/03-where-to-sum.html')
    opened.value.close()


@pytest.mark.parametrize('path', [*CHAPTERS, *SOLUTIONS])
def test_what_claims_to_run_does(rings, path):
    """And no error comes when each control moves to both of its ends."""
    assert [words for words in rings.evaluate(RUN, path)
            if WAITED not in words and words.strip()] == []


SET = '''source => [...jupyterapp.shell.currentWidget.content.model.cells]
  .find(cell => cell.id == 'answer').sharedModel.setSource(source)'''
# The notebook in front has such lines, as soon as there is one.
HAS = '''lines => {
  const model = window.jupyterapp?.shell.currentWidget?.content.model;
  return [...model?.cells ?? []].some(cell =>
    cell.sharedModel.source.includes(lines));
}'''


def test_an_exercise_is_solved_kept_and_handed_in(visit, tmp_path):
    page = visit('notebooks/exercises/README.html')
    page.get_by_role('link', name='tree, in this tab').click()
    page.locator('#d2lps-bar button:enabled', has_text='Run all').wait_for()

    def answered(answer):
        page.evaluate(SET, answer)
        page.evaluate(
            "() => jupyterapp.commands.execute('notebook:run-all-cells')")
        return '\n'.join(str(output) for cell in page.evaluate(CELLS)
                         for output in cell['outputs'])

    said = answered('def up_and_down(n):\n    return d2lps.strategies.ring(n)')
    assert 'Wrong' in said, said
    solved = nbformat.read(
        ROOT / 'notebooks/exercises/solutions/tree.ipynb', 4)
    answer = next(cell.source for cell in solved.cells if cell.id == 'answer')
    said = answered(answer)
    assert 'Wrong' not in said and 'ight' in said, said
    with page.expect_download() as download:
        click(page, 'Download')
    assert download.value.suggested_filename == 'tree.ipynb'
    download.value.save_as(tmp_path / 'tree.ipynb')
    file = nbformat.read(tmp_path / 'tree.ipynb', 4)
    assert answer in [cell.source for cell in file.cells]
    page.evaluate(SET, f'{answer}  # kept')
    page.wait_for_function('() => !jupyterapp.shell.currentWidget.context'
                           '.model.dirty')
    page.reload()  # the lines are still there
    page.wait_for_function(HAS, arg='  # kept')
    page.on('dialog', lambda one: one.accept())
    click(page, 'Start over')
    page.wait_for_function(HAS, arg='NotImplementedError')


def test_of_two_tabs_one_keeps_the_lines(rings, site):
    other = rings.context.new_page()
    other.goto(f'{site}/lite/notebooks/index.html?path={RINGS}.ipynb')
    says(other, 'open in another tab, too. Work there')
    other.close()


def test_a_phone_has_room_for_all_of_it(visit):
    page = visit(f'lite/notebooks/index.html?path={RINGS}.ipynb', **PHONE)
    page.locator('#d2lps-bar button:enabled', has_text='Run all').wait_for()
    assert page.evaluate('document.documentElement.scrollWidth') <= 390
    for button in page.locator('#d2lps-bar button').all():
        box = button.bounding_box()
        assert 0 <= box['x'] and box['x'] + box['width'] <= 390


def test_a_page_from_a_file_says_what_a_tab_needs(read):
    page = read(RINGS)
    page.get_by_role('link', name='Run this chapter here').click()
    page.get_by_role('status').filter(has_text='make book-serve').wait_for()
    assert page.url.startswith('file:')


def test_a_chapter_that_does_not_run_says_why(read):
    page = read('notebooks/09-a-real-parameter-server')
    assert not page.locator('.tab-box a.tab-start').count()
    words = page.locator('.tab-box').inner_text()
    assert words.startswith('Does not run in a browser tab: it starts workers')
