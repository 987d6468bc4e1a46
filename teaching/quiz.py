"""The guesses of the chapters as a quiz: python -m teaching.quiz [TO].

Each **Predict** of a chapter becomes a question, and the answer below it in
the chapter becomes the answer. A chapter gets two files: one in GIFT, which
Moodle imports (Question bank, Import, GIFT format), and a page to print, with
the answers on a sheet of their own.
"""
import argparse
import html
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from latex2mathml.converter import convert
from nbconvert.filters.markdown import markdown2html

from teaching.results import write_whole
from teaching.walls import ROOT

NOTEBOOKS = ROOT / 'notebooks'
ANSWER = re.compile(r'<summary>.*?</summary>\s*(.*?)\s*</details>', re.S)
# Two forms that a formula may have; what is code has none.
FORMULA = re.compile(r'<(?P<code>code|pre)\b.*?</(?P=code)>'
                     r'|\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$]+)\$', re.S)
ELSEWHERE = ('If a guess names a picture, a table, code or a run, it is in '
             'the section of the chapter with this name.')
STYLE = '''
body { font: 11pt/1.4 sans-serif; max-width: 42em; margin: 2em auto; }
li { margin-bottom: 1.5em; break-inside: avoid; }
.lines { height: 7em; border-bottom: 1px solid; }
.answers { break-before: page; }
pre { background: #f4f4f4; padding: .5em; }
table { border-collapse: collapse; }
td, th { border: 1px solid; padding: 2px; }
'''


class Question(NamedTuple):
    """A guess of a chapter, in Markdown."""
    section: str
    text: str
    answer: str


def questions(path: Path) -> list[Question]:
    """The guesses of a chapter with their answers, in their order."""
    found: list[Question] = []
    asked: list[tuple[str, str]] = []
    section = ''
    for cell in json.loads(path.read_text(encoding='utf-8'))['cells']:
        text = ''.join(cell['source'])
        if cell['cell_type'] != 'markdown':
            continue
        answered = ANSWER.search(text)
        if answered:
            found += [Question(*one, _plain(answered[1])) for one in asked]
            asked = []
        section = ([section] + re.findall(r'^#+ (.+)$', text, re.M))[-1]
        if '**Predict' in text:
            asked.append((section, _plain(text)))
    if asked:
        raise ValueError(f'{path.name}: no answer is below "{asked[0][1]}"')
    return found


def _plain(text: str) -> str:
    """Without headings, the words *Predict* and *Answer*, links, and folds."""
    text = re.sub(r'^#+ .+\n*', '', ANSWER.sub('', text), flags=re.M)
    text = re.sub(r'\*\*(Predict|Answer)\.\*\*\s*', '', text)
    return re.sub(r'(?<!!)\[([^]]+)\]\([^)]+\)', r'\1', text).strip()


def as_html(text: str, formula: Callable[[str, bool], str]) -> str:
    """HTML of some Markdown. formula: TeX, and whether it has a line of its
    own, to HTML."""
    def replaced(match):
        tex = match['display'] or match['inline']
        return (match[0] if tex is None else
                formula(html.unescape(tex), match['display'] is not None))
    return FORMULA.sub(replaced, markdown2html(text)).strip()


def _mathml(tex: str, display: bool) -> str:
    return convert(tex, display='block' if display else 'inline')


def _for_moodle(tex: str, display: bool) -> str:
    """As Moodle's filter for MathJax reads it."""
    tex = html.escape(tex, quote=False)
    return rf'\[{tex}\]' if display else rf'\({tex}\)'


def gift(title: str, asked: list[Question]) -> str:
    """An essay for each question; its feedback is the answer.

    docs.moodle.org/en/GIFT_format has the format.
    """
    def escaped(text):
        text = re.sub(r'([\\~=#{}:])', r'\\\1', text)
        return text.replace('\n', r'\n')  # an empty line would end a question

    entries = [f'// {title}: {len(asked)} guesses\n// {ELSEWHERE}\n'
               f'$CATEGORY: d2lps/{title}\n']
    for number, one in enumerate(asked, 1):
        name = escaped(f'{number}. {one.section}'.replace('`', ''))
        text, answer = (escaped(as_html(part, _for_moodle))
                        for part in (one.text, one.answer))
        entries.append(f'::{name}::[html]{text}{{####{answer}}}\n')
    return '\n'.join(entries)


def paper(title: str, asked: list[Question]) -> str:
    """A page to print: the questions with room to write, then the answers."""
    def items(lines):
        return '\n'.join(f'<li>{line}</li>' for line in lines)

    asks = items(f'<b>{html.escape(one.section)}</b>'
                 f'{as_html(one.text, _mathml)}<div class="lines"></div>'
                 for one in asked)
    answers = items(as_html(one.answer, _mathml) for one in asked)
    title = html.escape(title)
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<title>{title}</title><style>{STYLE}</style></head><body>\n'
            f'<h1>{title}</h1>\n<p>{ELSEWHERE}</p>\n<p>Name:</p>\n'
            f'<ol>\n{asks}\n</ol>\n'
            f'<div class="answers"><h2>Answers: {title}</h2>\n'
            f'<ol>\n{answers}\n</ol></div></body></html>\n')


def write(to: Path) -> int:
    """Write both files of each chapter; returns the number of questions."""
    to.mkdir(parents=True, exist_ok=True)
    count = 0
    for path in sorted(NOTEBOOKS.glob('[0-9]*.ipynb')):
        asked = questions(path)
        first = json.loads(path.read_text(encoding='utf-8'))['cells'][0]
        heading = re.search(r'^# (.+)$', ''.join(first['source']), re.M)
        assert heading, path
        title = f'Chapter {int(path.name[:2])}, {heading[1]}'
        write_whole(to / f'{path.stem}.gift', gift(title, asked))
        write_whole(to / f'{path.stem}.html', paper(title, asked))
        count += len(asked)
    return count


def main(folder: str) -> None:
    to = Path(folder).resolve()
    try:
        count = write(to)
    except (ValueError, OSError) as error:
        sys.exit(f'd2lps: {error}')
    print(f'{count} questions, for Moodle and on paper: {to}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(prog='teaching.quiz')
    parser.add_argument('to', nargs='?', default='quiz')
    main(parser.parse_args().to)
