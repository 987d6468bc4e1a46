"""What the book's pages "Your Server" and "Planner" answer."""
import json
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from d2lps.collectives.machines import command
from d2lps.collectives.machines.examples import all_alike, posted
from d2lps.pictures.book_pages import (GPUS, MODELS, answer, card_gbit,
                                       planner, your_server)
from d2lps.planning import GPT3_175B, H100, LLAMA3_70B, best_divisions

RESULTS = Path(__file__).parents[2] / 'notebooks/results'
TABLE, LOG = (RESULTS / f'21-{name}.txt' for name in ('table', 'log'))
SERVER = {'table': TABLE.read_text(), 'gpu': 'V100', 'use': '', 'log': '',
          'machines': '1', 'cards': '', 'card_gbit': ''}
PLAN = {name: str(value) for name, value in asdict(LLAMA3_70B).items()} | {
    'gated': 'yes', 'gpu': 'H100', 'gpus': '64', 'batch': '128',
    'network': '400', 'domain': '8'}
# A size that comes again, with half the bandwidth.
TWICE = LOG.read_text() + LOG.read_text().splitlines()[-1].replace(
    '1818.8   73.79  129.14', '3637.6   36.90   64.57')
EVIL = '<img src=x onerror=alert(1)>'


def parsed(html):
    return BeautifulSoup(html, 'html.parser')


@pytest.mark.parametrize('more, options', [
    ({}, {}), ({'log': LOG.read_text()}, {'log': str(LOG)}),
    ({'use': '0, 1,4-5'}, {'use': [0, 1, 4, 5]}),
    ({'machines': '2', 'cards': '4', 'card_gbit': '100'},
     {'machines': 2, 'cards': 4, 'card_gbit': 100})])
def test_your_server_says_what_the_command_prints(more, options):
    with redirect_stdout(StringIO()) as out:
        command.server(str(TABLE), 'V100', **options)
    page = parsed(your_server(SERVER | more).html)
    names, words = page('dt'), page('dd')
    assert out.getvalue().splitlines() == [
        f'{name.text:9} {row.text}' for name, row in zip(names, words)]
    assert 'GPU 0' in page.img['alt']


def test_a_machine_that_is_too_large_to_draw_is_answered():
    shown = your_server(SERVER | {'table': all_alike(72, 18), 'gpu': 'GB200'})
    assert '<img' not in shown.html and 'not drawn' in shown.html


@pytest.mark.parametrize('fields', [
    {'table': f'GPU 0: NVIDIA {EVIL} (UUID: 1)\n{SERVER["table"]}'},
    {'table': SERVER['table'].replace('CPU Aff', f'{EVIL}\tCPU Aff')},
    {'log': f'{LOG.read_text()}\nTest NCCL failure {EVIL} all'}])
def test_what_is_pasted_is_no_html(fields):
    found = json.loads(answer('your-server', json.dumps(SERVER | fields)))
    page = parsed(found.get('html', ''))
    assert all(image['src'].startswith('data:') for image in page('img'))
    assert not page(onerror=True)


def test_what_is_pasted_stands_in_the_answer():
    """Or the test above would look for what is never there."""
    shown = your_server(SERVER | {
        'table': f'GPU 0: NVIDIA {EVIL} (UUID: 1)\n{SERVER["table"]}'})
    assert EVIL in parsed(shown.html).text


def test_planner_ranks_as_plan_does():
    table = best_divisions(LLAMA3_70B, 64, 128, H100)
    shown = planner(PLAN)
    page = parsed(shown.html)
    rows = [[cell.text for cell in row('td')] for row in page('tr')[1:]]
    sides = table[['data', 'tensor', 'pipeline', 'context']].iloc[:20]
    assert [row[:4] for row in rows] == sides.astype(str).values.tolist()
    seconds = [float(row[4]) for row in rows]
    assert seconds == pytest.approx(table.seconds[:20].tolist(), rel=0.01)
    near = (table.seconds <= 1.1 * table.seconds[0]).sum()
    assert f'The first {near} rows' in page.text
    assert f'{(table.problem == "").sum()} of {len(table)} div' in shown.says


def test_rows_that_are_about_as_fast_are_all_shown():
    shown = planner(PLAN | {name: str(value) for name, value in asdict(
        GPT3_175B).items()} | {'gpu': 'B200', 'gpus': '96', 'batch': '1,536',
                               'network': '200', 'domain': '4'})
    rows = len(parsed(shown.html)('tr')) - 1
    assert rows > 20 and f'The first {rows} rows differ' in shown.html
    assert f'the first {rows} of' in shown.html


def test_planner_says_what_it_would_take():
    shown = planner(PLAN | {'gpus': '1'})
    assert '0 of 1 divisions fit' in shown.says and 'needs 1,146 GB' in (
        shown.says)


@pytest.mark.parametrize('name', GPUS)
def test_the_card_of_a_gpu_is_that_of_the_planner(name):
    fields = PLAN | {'gpu': name, 'network': f'{card_gbit(GPUS[name]):g}',
                     'domain': str(GPUS[name].domain)}
    best = best_divisions(LLAMA3_70B, 64, 128, GPUS[name]).iloc[0]
    first = [cell.text for cell in parsed(planner(fields).html)('td')]
    assert first[:4] == [str(best[side]) for side in (
        'data', 'tensor', 'pipeline', 'context')]
    assert float(first[4]) == pytest.approx(best.seconds, rel=0.01)


@pytest.mark.parametrize('page, fields, about, words', [
    ('your-server', {'table': ' '}, 'table', 'the table is empty'),
    ('your-server', {'table': 'x' * 10 ** 6}, 'table', 'at most 500,000'),
    ('your-server', {'table': SERVER['table'][:200]}, 'table', 'cut off'),
    ('your-server', {'log': TWICE}, 'log', 'are both about'),
    ('your-server', {'gpu': ''}, 'gpu', 'say A100'),
    ('your-server', {'use': '0,x'}, 'use', 'GPUs are numbers'),
    ('your-server', {'use': '0,9'}, 'use', '--use must be different GPUs'),
    ('your-server', {'log': 'x'}, 'log', 'the log has no row of nccl-tests'),
    ('your-server', {'machines': 'two'}, 'machines',
     "for example --machines=2; it was 'two'"),
    ('your-server', {'machines': '2', 'cards': '8', 'card_gbit': '0'},
     'card_gbit', '--card-gbit must be a positive number'),
    ('your-server', {'machines': '2', 'cards': '8', 'card_gbit': '1e100'},
     'card_gbit', '--card-gbit must be a positive number'),
    ('planner', {'gpus': ''}, 'gpus', "gpus=2; it was ''"),
    ('planner', {'gpus': '1e18'}, 'gpus', 'gpus must be a whole number'),
    ('planner', {'gpus': '100,001'}, 'gpus', 'from 1 to 100,000'),
    ('planner', {'batch': '1048576'}, 'batch', 'from 1 to 1,000,000'),
    ('planner', {'network': '1e-60'}, 'network', 'from 0.001'),
    ('planner', {'batch': '1.5'}, 'batch', 'it was 1.5'),
    ('planner', {'heads': '7'}, 'heads', 'a divisor of hidden=8192'),
    ('planner', {'network': '-3'}, 'network', 'it was -3'),
    ('planner', {'domain': '0'}, 'domain', 'from 1 to'),
    ('planner', {'gpu': 'H7'}, 'gpu', "'H100'"),
    ('planner', {'gpus': '64', 'heads': '1', 'kv_heads': '', 'layers': '1',
                 'batch': '1', 'sequence': '1'}, 'batch', 'no way to give')])
def test_an_error_is_a_line_that_stands_at_its_field(page, fields, about,
                                                     words):
    given = (SERVER if page == 'your-server' else PLAN) | fields
    found = json.loads(answer(page, json.dumps(given)))
    assert words in found['error'] and '\n' not in found['error']
    assert found['about'] == about


@pytest.mark.parametrize('name', MODELS)
def test_numbers_of_a_model_may_be_left_out_where_they_are_usual(name):
    of_model = {key: str(value)
                for key, value in asdict(MODELS[name]).items()}
    del of_model['gated']
    assert f'{MODELS[name].parameters / 1e9:,.1f} b' in planner(
        PLAN | of_model | {'gated': 'yes' * MODELS[name].gated}).html


WITHOUT = '''
import json, sys
for name in 'IPython', 'matplotlib', 'networkx', 'pandas':
    sys.modules[name] = None
from d2lps.pictures.book_pages import planner, your_server
from d2lps.pictures.drawing import width_of
server, plan = json.load(open('fields'))
width = width_of('PCIe slot: 12 GB/s', 10)
print(json.dumps([your_server(server).html, planner(plan).html, width]))
'''


def test_a_browser_needs_only_numpy(python, tmp_path):
    """Pictures are then drawn with widths of words that are a guess."""
    from d2lps.pictures.drawing import width_of
    server = SERVER | {'log': LOG.read_text()}
    (tmp_path / 'fields').write_text(json.dumps([server, PLAN]))
    done = python('-c', WITHOUT)
    assert done.returncode == 0, done.stderr
    [here, there, width] = json.loads(done.stdout)
    assert parsed(here).dl == parsed(your_server(server).html).dl
    assert parsed(here).img and there == planner(PLAN).html
    assert width == pytest.approx(width_of('PCIe slot: 12 GB/s', 10), 0.1)


def test_a_posted_machine_needs_no_log():
    found = json.loads(answer('your-server', json.dumps(
        SERVER | {'table': posted('DGX-1')})))
    assert found['says'].startswith('Expected: bus bandwidth 108 to 139')
