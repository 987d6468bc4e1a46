"""What is drawn before it is coded: read, and true."""
import re
from xml.etree import ElementTree

import pytest
from d2lps import devices
from d2lps.engine import mx
from d2lps.kvstore.placement import place
from d2lps.pictures import (draw_cluster, draw_collectives, draw_keys,
                            draw_seven_steps, draw_sharded_update,
                            draw_split_batch, draw_splits,
                            draw_training_step)
from d2lps.pictures.drawing import INK, Row, color
from d2lps.training.data_parallel import split_batch

SVG = '{http://www.w3.org/2000/svg}'
LENET = {0: 180, 1: 20, 2: 25_000, 3: 50, 4: 102_400, 5: 128, 6: 1280, 7: 10}
LONG = {'a rather long name of a weight': 10**9, 'b': 1, 'c': 2}
DRAWINGS = [
    *((draw_splits, (only, n)) for only in (
        None, 'layers', 'channels', 'examples') for n in (2, 3, 4)),
    *((draw_collectives, (only, n)) for only in (
        None, 'all-reduce', 'reduce-scatter', 'all-gather')
      for n in (2, 3, 4)),
    *((draw_sharded_update, (n,)) for n in (2, 3)),
    *((draw_split_batch, (rows, n)) for rows in (1, 4, 7, 8)
      for n in (1, 2, 3, 4)),
    *((draw_training_step, (n,)) for n in (2, 3, 4)),
    *((draw_cluster, (m, n, machines)) for m, n in (
        (1, 1), (2, 2), (1, 4), (4, 1), (3, 2), (4, 4))
      for machines in (None, 'apart', 'together')),
    *((draw_keys, (sizes, n, split)) for sizes in (
        LENET, LONG, {k: k + 1 for k in range(12)}) for n in (1, 2, 8)
      for split in (1_000, 1_000_000)),
    *((draw_seven_steps, (step,)) for step in (None, *range(1, 8)))]


@pytest.mark.parametrize('draw, arguments', DRAWINGS,
                         ids=lambda it: getattr(it, '__name__', it))
def test_words_can_be_read_and_the_drawing_fits_a_page(draw, arguments,
                                                       faults):
    drawn = draw(*arguments)
    for drawing in drawn.drawings if isinstance(drawn, Row) else [drawn]:
        assert not faults(drawing)
        assert drawing.width <= 720 and drawing.height <= 460
        assert len(drawing.alt) > 60 and drawing.alt.endswith('.')
    if isinstance(drawn, Row):  # in one line, with a blank between
        assert sum(one.width + 8 for one in drawn.drawings) <= 728


def shapes(drawing, kind):
    return [shape for shape in ElementTree.fromstring(drawing.svg())
            if shape.tag == f'{SVG}{kind}']


@pytest.mark.parametrize('n', [2, 3, 4])
def test_what_crosses_in_each_way_to_split(n, texts):
    layers, channels, examples = (
        texts(draw_splits(only, n)) for only in (
            'layers', 'channels', 'examples'))
    assert layers.count('activations') == layers.count('gradients') == n - 1
    assert channels.count('activations, gradients') == 3  # between 4 layers
    assert channels.count('activations') == 1  # the scores
    assert channels.count(f'1/{n}') == examples.count('all') == 4 * n
    assert examples.count('sums of gradients') == 1
    assert [layers, channels, examples] == [
        texts(one) for one in draw_splits(None, n).drawings]


@pytest.mark.parametrize('n', [2, 3, 4])
def test_the_numbers_of_the_collectives_are_right(n):
    def rows(only):
        words = shapes(draw_collectives(only, n), 'text')
        found = [int(word.text) for word in words if word.text.isdigit()
                 and word.get('fill') == INK]  # in boxes
        return [found[k:k + n] for k in range(0, len(found), n)]
    own = [[(c + 1) * 10 ** d for c in range(n)] for d in range(n)]
    sums = [sum(column) for column in zip(*own)]
    assert rows('all-reduce') == own + [sums] * n
    assert rows('reduce-scatter') == own + [sums]  # one on each device
    assert rows(None) == own + [sums] + [sums] * n
    mine = [own[d][d] for d in range(n)]
    assert rows('all-gather') == [mine] + [mine] * n


@pytest.mark.parametrize('n', [2, 3])
def test_in_a_sharded_update_each_device_has_one_sum_and_one_weight(n, texts):
    words = texts(draw_sharded_update(n))
    sums = [str(sum((c + 1) * 10 ** d for d in range(n))) for c in range(n)]
    assert all(words.count(total) == 1 for total in sums)
    # A new weight is on its own device first, and then on all of them.
    assert all(words.count(f'w{c}') == 1 + n for c in range(n))
    assert f'each keeps 1/{n}' in words


def test_after_a_reduce_scatter_device_i_has_chunk_i_alone():
    boxes = [(float(box.get('x')), float(box.get('y')))
             for box in shapes(draw_collectives('reduce-scatter', 3), 'rect')
             if box.get('stroke') == '#bbb']  # those that stay empty
    columns, rows = (sorted({*places}) for places in zip(*boxes))
    assert {(columns.index(x), rows.index(y)) for x, y in boxes} == {
        (c, d) for c in range(3) for d in range(3) if c != d}


@pytest.mark.parametrize('rows, n', [(4, 2), (7, 3), (8, 4), (5, 1), (2, 4)])
def test_the_drawing_cuts_as_split_batch_does(rows, n, texts):
    X = mx.np.arange(5 * rows).reshape(rows, 5)
    y = mx.np.arange(rows)
    expected = [[*map(int, [*X_i.reshape(-1), *y_i])]
                for X_i, y_i in zip(*split_batch(X, y, devices(n)))]
    names, found = texts(draw_split_batch(rows, n)), {}
    for word in names:
        if word.startswith(('device', 'X_shards')):
            found[word] = group = []
        elif word.isdigit():
            group.append(int(word))
    drawn = [sorted(group) for name, group in found.items()
             if name.startswith('X_shards')]
    # Each number stands twice: where it was, and where it goes.
    assert drawn == [sorted(2 * part) for part in expected]
    assert names.count('no examples') == n - min(n, rows)


def test_a_training_step_has_five_frames_and_one_sum_on_every_device(texts):
    for n in 2, 3, 4:
        words = texts(draw_training_step(n))
        assert [w for w in words if w in '12345' and len(w) == 1][:5] == [
            *'12345']
        assert words.count('sum') == 2 + n
        assert {f'g{d}' for d in range(n)} == {
            w for w in words if re.fullmatch(r'g\d', w)}


@pytest.mark.parametrize('m, n', [(1, 1), (2, 2), (3, 2), (4, 4)])
def test_everybody_pushes_to_every_server_and_pulls(m, n, texts):
    drawing = draw_cluster(m, n)
    between = [path for path in shapes(drawing, 'path')
               if path.get('stroke') in (color(0), color(3))]
    dashed = [path for path in between if path.get('stroke-dasharray')]
    # And one of each as an explanation.
    assert len(dashed) == len(between) - len(dashed) == m * n + 1
    assert {'push', 'pull', 'scheduler', f'worker {m - 1}'} <= {
        *texts(drawing)}
    for server in range(n):
        keys = [k for k in range(8) if place(k, 1, n)[0][0] == server]
        words = texts(drawing)
        assert words[words.index(f'server {server}') + 1] == (
            f'keys {", ".join(map(str, keys))}' if n > 1 else 'keys 0 to 7')


def test_machines_are_frames_around_processes():
    def frames(machines):
        return sum(box.get('stroke-dasharray') is not None
                   for box in shapes(draw_cluster(3, 2, machines), 'rect'))
    assert [frames(how) for how in (None, 'apart', 'together')] == [0, 5, 3]


@pytest.mark.parametrize('sizes, n, split', [
    (LENET, 2, 1_000_000), (LENET, 3, 10_000), (LONG, 8, 100),
    ({'w': 5}, 2, 1_000_000)])
def test_servers_have_what_the_store_gives_them(sizes, n, split, texts):
    drawing = draw_keys(sizes, n, split)
    words = texts(drawing)
    for server in range(n):
        elements = sum(end - start for key, size in sizes.items()
                       for k, start, end in place(key, size, n, split)
                       if k == server)
        assert words[words.index(f'server {server}') + 1] == (
            f'{elements:,} elements')
        assert f'Server {server} has {elements:,} elements' in drawing.alt
    lines = sum(len(place(key, size, n, split))
                for key, size in sizes.items())
    assert len(shapes(drawing, 'path')) == lines


def test_widths_of_keys_go_by_their_size():
    def wide(sizes):
        boxes = [box for box in shapes(draw_keys(sizes, 1), 'rect')
                 if box.get('x') == '130' and box.get('stroke')]
        return [float(box.get('width')) for box in boxes]
    one, three = wide({'a': 100, 'b': 300})
    assert three == pytest.approx(3 * one)
    assert wide({'a': 1, 'b': 10**9})[0] > 0  # it is seen all the same


@pytest.mark.parametrize('step', range(1, 8))
def test_a_step_lights_its_own_arrows_and_words_and_no_others(step):
    drawing = draw_seven_steps(step)
    lit = [text for text in shapes(drawing, 'text')
           if text.get('font-weight') and text.get('fill') == INK]
    assert lit  # the words of the step, bold
    badges = [(badge.get('fill'), number.text) for badge, number in zip(
        shapes(drawing, 'circle'),
        [text for text in shapes(drawing, 'text')
         if text.get('fill') == 'white'])]
    dark = [number for fill, number in badges if fill == INK]
    assert {*dark} == {str(step)} and len(dark) == (
        5 if step == 1 else 4 if step in (4, 5) else 3)
    assert {number for fill, number in badges} == {*'1234567'}
    shafts = [path for path in shapes(drawing, 'path')
              if path.get('fill') == 'none' and path.get('stroke') == INK]
    assert len(shafts) == len(dark) - 1  # one is in the list
    assert f'Arrows with numbers: {step}: ' in drawing.alt


def test_without_a_step_all_are_lit_and_the_map_stays_where_it_is():
    every = draw_seven_steps()
    assert all(badge.get('fill') == INK for badge in shapes(every, 'circle'))
    assert all(f'{k}: ' in every.alt for k in range(1, 8))

    def places(drawing):
        return [(b.get('x'), b.get('y')) for b in shapes(drawing, 'rect')]
    assert all(places(draw_seven_steps(k)) == places(every)
               for k in range(1, 8))


@pytest.mark.parametrize('draw, bad', [
    (draw_splits, dict(only='rows')), (draw_splits, dict(num_devices=1)),
    (draw_splits, dict(num_devices=5)), (draw_splits, dict(num_devices='2')),
    (draw_collectives, dict(only='sum')),
    (draw_collectives, dict(num_devices=9)),
    (draw_sharded_update, dict(num_devices=4)),
    (draw_split_batch, dict(rows=0)), (draw_split_batch, dict(rows=9)),
    (draw_split_batch, dict(num_devices=0)),
    (draw_split_batch, dict(num_devices=None)),
    (draw_training_step, dict(num_devices=1.5)),
    (draw_cluster, dict(num_workers=0)), (draw_cluster, dict(num_servers=5)),
    (draw_cluster, dict(machines=2)),
    (draw_keys, dict(sizes={})), (draw_keys, dict(sizes={0: -1})),
    (draw_keys, dict(num_servers=9)), (draw_keys, dict(split_from=0)),
    (draw_keys, dict(sizes=dict.fromkeys(range(13), 1))),
    (draw_seven_steps, dict(step=0)), (draw_seven_steps, dict(step=8)),
    (draw_seven_steps, dict(step='one'))])
def test_a_wrong_argument_is_named(draw, bad):
    [name] = bad
    needed = dict(sizes={0: 3}, num_servers=2) if draw is draw_keys else {}
    with pytest.raises(ValueError, match=rf'{name}\S* must '):
        draw(**{**needed, **bad})
