"""The pages "Your Server" and "Planner", with Python in the browser."""
import pytest
from chromium import PHONE
from labserver import ROOT
from playwright.sync_api import expect

pytestmark = pytest.mark.full

RESULTS = ROOT / 'notebooks/results'
SERVER, PLANNER = 'docs/book/your-server', 'docs/book/planner'
PAIR = '''\tGPU0\tGPU1\tCPU Affinity
GPU0\t X \tNV4\t0-7
GPU1\tNV4\t X \t0-7
'''


@pytest.fixture(scope='module')
def tabs(visit):
    """Each page in a tab, whose Python is ready."""
    opened = {}
    for path in SERVER, PLANNER:
        opened[path] = page = visit(f'{path}.html')
        expect(page.locator('.ask-status')).to_have_text('Python is ready.')
    return opened


@pytest.fixture
def server(tabs):
    return tabs[SERVER]


@pytest.fixture
def planner(tabs):
    return tabs[PLANNER]


def ask(page):
    """Click, and give the answer as text. It asks nobody."""
    asked = []

    def keep(request):
        asked.append(request)

    page.on('request', keep)
    page.get_by_role('button', name='Answer').click()
    expect(page.get_by_role('button', name='Answer')).to_be_enabled()
    page.remove_listener('request', keep)
    # A picture in the answer is its own address.
    assert [one.url for one in asked if not one.url.startswith('data:')] == []
    return page.locator('.ask-answer').inner_text()


def test_the_example_is_there_before_python(read):
    page = read(SERVER)
    assert 'healthy' in page.locator('.ask-answer').inner_text()
    assert 'opened from a file' in page.locator('.ask-status').inner_text()
    assert page.get_by_role('button', name='Answer').is_disabled()


def test_a_pasted_table_is_answered_and_drawn(server):
    server.get_by_label('Your table').fill(PAIR)
    server.get_by_label('Your GPU').select_option('A100')
    server.get_by_label('Your log').fill('')
    assert 'what was there before' in server.locator('.ask-whose').inner_text()
    said = ask(server)
    assert '2 A100: 0 1' in said and 'verdict' not in said
    assert 'GPU 1' in server.locator('.ask-answer img').get_attribute('alt')


def test_files_are_read_and_judged(server):
    for place, name in enumerate(('table', 'log')):
        server.get_by_label('or a file').nth(place).set_input_files(
            RESULTS / f'21-{name}.txt')
        expect(server.locator(f'#ask-{name}')).to_have_value(
            (RESULTS / f'21-{name}.txt').read_text())
    server.get_by_label('Your GPU').select_option('V100')
    assert 'healthy: 129 GB/s' in ask(server)


def test_what_is_wrong_stands_at_its_field(server):
    server.locator('#ask-machines').evaluate('it => it.value = "two"')
    assert ask(server) == ''
    field = server.locator('#ask-machines')
    expect(field).to_be_focused()  # its fold has opened
    assert field.get_attribute('aria-invalid') == 'true'
    assert "it was 'two'" in server.locator('#ask-machines-error').inner_text()
    field.fill('1')
    assert 'healthy' in ask(server)


def test_a_model_and_gpus_are_chosen_and_ranked(planner):
    before = planner.locator('.ask-answer').inner_text()
    planner.get_by_label('Model', exact=False).first.select_option(
        'Llama 3 8B')
    planner.locator('#ask-gpu').select_option('A100')
    assert planner.locator('#ask-layers').input_value() == '32'
    planner.locator('#ask-gpus').fill('16')
    said = ask(planner)
    assert said != before and '8.0 billion parameters on 16 A100' in said
    planner.locator('summary', has_text='Its numbers').click()
    planner.locator('#ask-layers').fill('16')
    planner.locator('#ask-layers').press('Enter')
    expect(planner.locator('.ask-answer')).to_contain_text(
        '4.5 billion parameters')
    assert planner.locator('#ask-model').input_value() == ''  # one's own


def test_what_is_typed_meanwhile_is_not_what_is_answered(planner):
    planner.locator('#ask-gpus').fill('4096')
    planner.locator('#ask-batch').fill('4096')
    planner.get_by_role('button', name='Answer').click()
    planner.locator('#ask-gpus').fill('8')
    expect(planner.locator('.ask-answer')).to_contain_text('on 4,096')
    assert 'what was there before' in (
        planner.locator('.ask-whose').inner_text())
    assert 'on 8 ' in ask(planner)
    assert planner.locator('.ask-whose').inner_text() == 'The answer:'
    planner.locator('#ask-model').select_option('')
    expect(planner.locator('#ask-layers')).to_be_visible()


@pytest.mark.parametrize('path', [SERVER, PLANNER])
def test_a_phone_has_room_for_it(visit, path):
    page = visit(f'{path}.html', **PHONE)
    expect(page.locator('.ask-status')).to_have_text('Python is ready.')
    assert page.evaluate('document.documentElement.scrollWidth') <= 390
    ask(page)
    assert page.evaluate('document.documentElement.scrollWidth') <= 390


def test_python_that_does_not_load_can_be_loaded_again(visit, site):
    page = visit(f'{PLANNER}.html')
    page.context.route('**/numpy*', lambda route: route.abort())
    page.reload()
    again = page.get_by_role('button', name='Load Python again')
    again.wait_for()
    assert 'Is the network there?' in page.locator('.ask-status').inner_text()
    page.context.unroute('**/numpy*')
    again.click()
    expect(page.locator('.ask-status')).to_have_text('Python is ready.')
    assert '64 H100' in ask(page)
