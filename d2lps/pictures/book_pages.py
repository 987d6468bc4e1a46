"""Answers of the book's pages "Your Server" and "Planner", as HTML.

A browser runs this, with NumPy and without Matplotlib, pandas or NetworkX;
the book's builder runs it for the example of each page. All that came from a
reader is escaped here.
"""
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

from d2lps.checks import integer, one_of, positive
from d2lps.collectives.machines import command
from d2lps.collectives.machines.ask import numbers, read_wiring
from d2lps.collectives.machines.nccl_tests import read_log
from d2lps.collectives.machines.rates import CARD
from d2lps.command_line import one_line
from d2lps.pictures.drawing import html_of
from d2lps.pictures.drawings.draw_gpu_machine import TOO_MANY, draw_answer
from d2lps.planning import gpus
from d2lps.planning.gpu_memory import RESERVED
from d2lps.planning.model import (BLOOM_176B, GPT3_175B, LLAMA3_8B, LLAMA3_70B,
                                  LLAMA3_405B, Transformer)
from d2lps.planning.ranking import SIDES, ranked

MODELS = {'Llama 3 70B': LLAMA3_70B, 'Llama 3 8B': LLAMA3_8B,
          'Llama 3 405B': LLAMA3_405B, 'GPT-3 175B': GPT3_175B,
          'BLOOM 176B': BLOOM_176B}
GPUS = {gpu.name: gpu for gpu in (gpus.A100, gpus.H100, gpus.H200, gpus.B200,
                                  gpus.B300, gpus.GB200)}
SHAPE = ['layers', 'hidden', 'heads', 'kv_heads', 'ffn', 'vocab', 'sequence']
OPTIONS = ['gpu', 'use', 'log', 'machines', 'cards', 'card_gbit']
MOST_ROWS = 20  # of a ranking, if there are no more that are about as fast
MOST_GPUS, MOST_BATCH = 100_000, 1_000_000  # a ranking of more takes minutes
ERROR = 1.1  # by so much the planner is wrong, on average (chapter 20)


class Shown(NamedTuple):
    """html: the answer. says: the same in a sentence, to be read aloud."""
    html: str
    says: str


def card_gbit(gpu: gpus.Gpu) -> float:
    """Gbit/s of the network card that the planner gives to such a GPU."""
    return 100 * gpu.network / CARD.usable


def _number(text: str) -> Any:
    """A number, also as we write it; other texts, to be refused by name."""
    if re.fullmatch(r'\d{1,3}(,\d{3})+', text):
        text = text.replace(',', '')
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _given(form, name):
    """The number in a field; None if the field is empty."""
    text = form.get(name, '').strip()
    return _number(text) if text else None


def your_server(form: Mapping[str, str]) -> Shown:
    """The output of `d2lps server`, and the machine drawn.

    form: texts by name: 'table', and those of `OPTIONS`, which may be empty.
    Raises ValueError as the command does.
    """
    gpu, log = form.get('gpu') or None, form.get('log', '')
    use = None
    if form.get('use', '').strip():
        try:
            use = numbers(form['use'])
        except ValueError as error:
            raise ValueError(f'use: {error}') from None
    machines, cards, gbit = (_given(form, name) for name in OPTIONS[3:])
    machines = 1 if machines is None else machines
    command.check_options(gpu, log, None, machines, cards, gbit)
    answer = command.answered(form.get('table', ''), gpu, use,
                              log if log.strip() else None, None, machines,
                              cards, gbit)
    rows = command.rows(answer, machines)
    drawing = draw_answer(answer)
    if drawing is None:
        rows.append(('note', TOO_MANY))
    word = answer.verdict and answer.verdict.word
    html = ''.join(
        f'<dt>{escape(name)}</dt><dd{_mark(name, word)}>{escape(text)}</dd>'
        for name, text in rows)
    said = dict(rows)
    return Shown(f'<dl>{html}</dl>{html_of(drawing) if drawing else ""}',
                 f'Verdict: {said["verdict"]}' if 'verdict' in said else
                 f'Expected: {said["expected"]}')


def _mark(name, word):
    """The class of a row: how a verdict looks."""
    return f' class="ask-{word or "none"}"' if name == 'verdict' else ''


def planner(form: Mapping[str, str]) -> Shown:
    """Divisions of a model among GPUs, the fastest first.

    form: texts by name: those of `SHAPE`, 'gated' ('yes' or ''), 'gpu' (one
    of `GPUS`), 'gpus', 'batch', 'network' (Gbit/s of a card) and 'domain'.
    Raises ValueError as `best_divisions` and `Transformer` do.
    """
    of_model = {name: _number(form.get(name, '').strip()) for name in SHAPE}
    for name in 'kv_heads', 'ffn':  # the usual ones, where left out
        of_model[name] = of_model[name] or 0
    model = Transformer(**of_model, gated=form.get('gated') == 'yes')
    kind = GPUS[one_of(*GPUS)('gpu', form.get('gpu'))]
    network = positive('network', _number(form.get('network', '')), 400,
                       1e-3, 1e6)
    gpu = replace(kind, network=network / 100 * CARD.usable,
                  domain=integer('domain', _number(form.get('domain', '')),
                                 most=100_000))
    number = integer('gpus', _number(form.get('gpus', '')), most=MOST_GPUS)
    batch = integer('batch', _number(form.get('batch', '')), most=MOST_BATCH)
    rows = ranked(model, number, batch, gpu)
    fit = [row for row in rows if not row['problem']]
    said = (f'{model.parameters / 1e9:,.1f} billion parameters on {number:,} '
            f'{kind.name}, {batch:,} sequence{"s" * (batch > 1)} of '
            f'{model.sequence:,} tokens in a step. {len(fit)} of {len(rows)} '
            f'divisions fit into {(gpu.memory - RESERVED) / 1e9:,.0f} GB on '
            'each GPU.')
    if not fit:
        said += (' The division that needs least memory '
                 f'{rows[0]["problem"]}.')
        return Shown(f'<p>{escape(said)}</p>', said)
    near = sum(row['seconds'] <= ERROR * fit[0]['seconds'] for row in fit)
    shown = fit[:max(near, MOST_ROWS)]
    html = f'<p>{escape(said)}</p>{_table(shown)}'
    if len(fit) > len(shown):
        html += f'<p>These are the first {len(shown)} of {len(fit)}.</p>'
    if near > 1:
        html += (f'<p>The first {near} rows differ by 10% at most, and the '
                 'planner is wrong by about as much on average. So it cannot '
                 'say which of them is the fastest: measure some.</p>')
    first = ', '.join(f'{side} {fit[0][side]}' for side in SIDES)
    others = f' {near - 1} others are about as fast.' if near > 1 else ''
    return Shown(html, f'{len(fit)} of {len(rows)} divisions fit. The first: '
                 f'{first}, {_seconds(fit[0])} s.{others}')


def _seconds(row):
    seconds = row['seconds']
    return f'{seconds:#.3g}' if seconds < 99 else f'{seconds:,.0f}'


COLUMNS: dict[str, Callable[[dict[str, Any]], object]] = {
    **{side: lambda row, side=side: row[side]  # type: ignore[misc]
       for side in SIDES},
    'seconds': _seconds, 'MFU': lambda row: f'{row["MFU"]:.0%}',
    'GB': lambda row: f'{row["GB"]:,.0f}',
    'micro-batch': lambda row: row['micro_batch'],
    'chunks': lambda row: row['interleave'],
    'ZeRO': lambda row: row['zero'],
    'recompute': lambda row: row['recompute']}


def _table(rows: Iterable[dict[str, Any]]) -> str:
    head = ''.join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    body = ''.join(
        '<tr>' + ''.join(f'<td>{escape(str(cell(row)))}</td>'
                         for cell in COLUMNS.values()) + '</tr>'
        for row in rows)
    # Of a class of its own: it stays a table on a phone, to compare rows.
    return ('<div class="table-wrapper" role="region" tabindex="0" '
            'aria-label="Divisions, the fastest first"><table class='
            f'"ranking docutils"><thead><tr>{head}</tr></thead><tbody>'
            f'{body}</tbody></table></div>')


PAGES: dict[str, Callable[[Mapping[str, str]], Shown]] = {
    'your-server': your_server, 'planner': planner}


def answer(page: str, fields: str) -> str:
    """The answer of a page to its fields; both are JSON.

    fields: texts by name. Returns 'html' and 'says' (see `Shown`), or 'error',
    one line, and 'about', the name of the field that it is about, or ''.
    """
    form = json.loads(fields)
    try:
        return json.dumps(PAGES[page](form)._asdict())
    except ValueError as error:
        message = one_line(error, OPTIONS if page == 'your-server' else ())
        about = _about(message, form)
        if page == 'your-server':
            about = about or _unreadable(form)
        return json.dumps({'error': message, 'about': about})


def _about(message, form):
    """The field with whose name an error begins; '' if there is none."""
    begin = re.match(r'(?:--|the )?([a-z-]+)', message.replace('_', '-'))
    name = begin[1].replace('-', '_') if begin else ''
    return name if name in form else ''


def _unreadable(form):
    """The field whose text alone is an error; '' if there is none."""
    for name, read in ('log', read_log), ('table', read_wiring):
        try:
            read(form[name])
        except ValueError:
            if form[name].strip():
                return name
    return ''
