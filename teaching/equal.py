"""Answers that are equal but for names, spaces and comments.

They are cut into words, and neither run nor parsed: deep nesting can crash
Python's parser.
"""
import builtins
import hashlib
import io
import keyword
import tokenize

from teaching import spreadsheets
from teaching.submissions import asked_for, defined, is_check

LONGEST = 20_000  # characters that are looked at
SHORT = 2  # statements: so few are equal by chance
LEFT_OUT = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING,
            tokenize.ENDMARKER)
BREAKS = tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT
AS_SOLUTION = 'as the published solution'
AS_OTHERS = 'as each other'


def answer_of(notebook, imports):
    """What an answer is without its names: [a digest, its statements].

    None if there is no answer, or one that is too long. notebook: as
    `rebuild` gives it, or the solved source. imports: our cell with these.
    """
    names = asked_for([cell for cell in notebook.cells if is_check(cell)])
    code = {}  # by name: of two, the last one counts
    for source in (cell.source for cell in notebook.cells
                   if cell.cell_type == 'code' and not is_check(cell)):
        pieces = [(name, ''.join(source.splitlines(keepends=True)[where]))
                  for name, where, is_stub in defined(source) if not is_stub]
        if names & {name for name, _ in pieces}:
            code.update(pieces)
    text = '\n'.join(code.values())
    if not text or len(text) > LONGEST:
        return None
    try:
        words, statements = _words(text, kept=_names_in(imports))
    except (tokenize.TokenError, SyntaxError, ValueError):
        words, statements = text.split(), len(text.splitlines())
    return [hashlib.sha256('\0'.join(words).encode(
        errors='backslashreplace')).hexdigest(), statements]


def _tokens(text):
    return tokenize.generate_tokens(io.StringIO(text).readline)


def _names_in(text):
    try:
        return {one.string for one in _tokens(text)
                if one.type == tokenize.NAME}
    except (tokenize.TokenError, SyntaxError):
        return set()


def _words(text, kept):
    """The words of code, names by their number, and how many statements.

    kept: names that mean something outside, as those of Python do.
    """
    kept = kept | {*keyword.kwlist, *dir(builtins)}
    words, numbers, statements = [], {}, 0
    line = []  # tokens of the logical line
    for one in _tokens(text):
        if one.type in LEFT_OUT:
            continue
        if one.type not in BREAKS:
            line.append(one)
            continue
        if all(token.type == tokenize.STRING for token in line) and line:
            line = []  # it says what a function does
            continue
        if line and line[0].string not in ('def', 'class', 'async', '@'):
            statements += 1 + sum(token.string == ';' for token in line)
        words += [*_renamed(line, kept, numbers), tokenize.tok_name[one.type]]
        line = []
    return words, statements


def _renamed(line, kept, numbers):
    """Attributes keep their names, but for those of self."""
    for k, one in enumerate(line):
        of_others = k > 1 and line[k - 1].string == '.' and (
            line[k - 2].string != 'self')
        if one.type != tokenize.NAME or one.string in kept or of_others:
            yield one.string
        else:
            yield f'name{numbers.setdefault(one.string, len(numbers))}'


def table(results, solutions):
    """equal.csv: whose answers are equal, for the teacher.

    solutions: from an exercise to what `answer_of` says of the solution.
    """
    groups = {}
    for one in results:
        if one.answer and one.answer[1] > SHORT:
            groups.setdefault((one.exercise, *one.answer), []).append(
                one.student)
    rows = [['exercise', 'equal', 'statements', 'students']]
    for (exercise, digest, statements), students in groups.items():
        published = digest == (solutions.get(exercise) or [None])[0]
        if published or len(students) > 1:
            rows.append([exercise, AS_SOLUTION if published else AS_OTHERS,
                         statements, ', '.join(students)])
    return spreadsheets.written(rows)
