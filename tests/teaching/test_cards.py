"""The cards lead to the results on the teacher's sheet."""
import re
import subprocess
import sys

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from d2lps import strategies
from teaching import cards
from teaching.walls import ROOT


def sections(page):
    """The cards of a page, and the teacher's sheet, each with its tables."""
    found = re.findall(r'<section class="(\w+)"><h2>(.*?)</h2>(.*?)</section>',
                       page, re.S)
    return [(kind, title, text, [
        read(table) for table in BeautifulSoup(text, 'html.parser')('table')])
        for kind, title, text in found]


def read(table):
    head, *rows = [[
        float(cell.text) if re.fullmatch(r'[\d.]+', cell.text) else cell.text
        for cell in row(['th', 'td'])] for row in table('tr')]
    return pd.DataFrame(rows, columns=head)


def test_a_step_on_two_devices_is_a_step_on_one():
    [*devices, (_, _, text, _)] = sections(cards.a_step())
    gradients = []
    for _, _, _, [table] in devices:
        gradients += [(a * 1 - b) * a for a, b in zip(table.x, table.y)]
    after = 1 - 0.1 * sum(gradients) / len(gradients)
    assert f'w = {after:g} after the step' in text


@pytest.mark.parametrize('plan', [
    strategies.ring(4), strategies.ring(3), strategies.gather_broadcast(4),
    strategies.sharded(3)], ids=str)
def test_who_follows_the_cards_of_a_plan_has_the_sum(plan):
    """Students act on their cards alone; each waits for its round."""
    [*devices, _] = sections(cards.all_to_all_sum(plan, 'A plan'))
    n, chunks = plan.num_devices, len(plan.weights)
    sheets = [[10 ** device] * chunks for device in range(n)]
    for line in range(len(plan.rounds)):
        table, before = {}, [[*own] for own in sheets]
        for device, (_, _, _, [rows]) in enumerate(devices):
            for chunk, to in re.findall(r'(\d+) to (\d+)',
                                        str(rows['send chunk'][line])):
                table[int(to), int(chunk), device] = before[device][int(chunk)]
        for device, (_, _, _, [rows]) in enumerate(devices):
            for chunk, src, verb in re.findall(
                    r'(\d+) from (\d+), (\w+)',
                    str(rows['receive chunk'][line])):
                came = table.pop((device, int(chunk), int(src)))
                own = sheets[device][int(chunk)] if verb == 'add' else 0
                sheets[device][int(chunk)] = own + came
        assert not table, 'what is sent is received'
    assert sheets == [[int('1' * n)] * chunks] * n


def test_the_server_gives_what_queues_give():
    """Queues, worked by a program of the test's own."""
    queues, value, pushed, done = ([], []), 0, [0, 0], 0
    got, waiting = [], []
    for rank, _, number in cards.CALLS:
        if number is None:
            waiting.append(rank)
        else:
            queues[rank].append(number)
            pushed[rank] += 1
        while all(queues):
            value, done = sum(queue.pop(0) for queue in queues), done + 1
        for one in [*waiting]:
            if done >= pushed[one]:
                waiting.remove(one)
                got.append(f'{one} gets {value}')
    *_, (_, _, text, [table]) = sections(cards.a_server())
    said = [f'{who[-1]} {result}' if result.startswith('gets')
            else result.removeprefix('worker ')
            for who, result in zip(table.who, table.result)
            if 'gets' in result]
    assert said == got and len(got) == 3
    calls = sum(len(card[3][0]) for card in sections(cards.a_server())[:2])
    assert calls == len(cards.CALLS)


def test_the_order_of_messages_decides_when_the_next_step_begins():
    *layers, _, (_, _, text, [table]) = sections(cards.an_order())
    assert len(layers) == 4
    table = table.set_index('order')['next forward pass']
    best = float(re.search(r'before (\d+) ms', text)[1])
    # By hand: ready at 3, 6, 12, 24 ms. Layer 4 leaves first, until 21; then
    # 2, 1 and 3 end at 25, 27 and 39, or 3, 2 and 1 at 33, 37 and 39.
    assert table['the first layer first'] == max(27 + 6 + 3, 39) + 2 + 2
    assert table['as they are ready'] == 39 + 6 + 3 + 2 + 2
    assert best == table['the first layer first'] == table.min()


def test_only_zero_3_fits():
    *groups, (_, _, text, [table]) = sections(cards.a_division())
    assert [title.split(': ')[1] for _, title, _, _ in groups] == [
        *table.iloc[:, 0]]
    assert 'These fit into 80 GB: ZeRO-3.' in text
    table = table.set_index(table.columns[0])
    assert abs(table.together['DDP'] - 16 * 70.6) < 1
    assert abs(table.sends['ZeRO-3'] / table.sends['DDP'] - 1.5) < 0.01


def test_the_command_writes_a_page_for_each_activity(tmp_path):
    subprocess.run([sys.executable, '-m', 'teaching.cards', tmp_path / 'to'],
                   cwd=ROOT, check=True, timeout=120)
    assert {path.stem for path in (tmp_path / 'to').iterdir()} == {
        *cards.ACTIVITIES}
