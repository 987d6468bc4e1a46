"""Common parts of all posts: spoilt texts, and the names of GPUs."""
import json
import re

from d2lps.checks import text
from d2lps.collectives.machines.rates import GPUS, find_gpu

# A line of a log file of Docker: {"log": "GPU0\t X \tNV4\n", "stream": ...}.
_DOCKER = re.compile(r'^\{"log": ?("(?:[^"\\\n]|\\.)*").*\}\r?$', re.M)
# 'GPU 0: NVIDIA A100-SXM4-80GB (UUID: ...)', of nvidia-smi -L.
_LISTED = re.compile(r'^[^\w\n]*GPU (\d{1,4}(?:,\d{1,4})*): +(.{1,80})', re.M)
# '|   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |', of nvidia-smi:
# number, name, whether the driver stays loaded, bus number.
_BOXED = re.compile(r'^[^\w\n]*(\d{1,3}) +(\S.{1,60}?) +(?:On|Off)[ |]+'
                    r'[\dA-F]{4,8}:[\dA-F]{2}:[\dA-F]{2}\.', re.M)
# 'Rank  0 ... device  0 [0x1a] NVIDIA A100-SXM4-80GB', of nccl-tests.
_RANKED = re.compile(r'device +\d{1,4} +\[[^\]\n]{1,40}\] +(\S.{0,80})')
# Words at the end of a name that make it another GPU.
_ENDS = 'ADA', 'TI', 'SUPER'


def posted(name: str, value: object, most: int, example: str) -> str:
    """A check: a text of at most `most` characters that is not empty.

    Lines of Docker's log files become the lines that were logged.
    """
    post = text(name, value, example, least=0)
    if not post.strip():
        raise ValueError(f'{name} is empty')
    if len(post) > most:
        raise ValueError(f'{name} has {len(post):,} characters, and at most '
                         f'{most:,} are read: post the table alone')
    return _DOCKER.sub(_logged, post)


def _logged(match):
    try:
        return json.loads(match[1])
    except ValueError:
        return match[0]  # a damaged line


def gpus_listed(text: str) -> list[tuple[list[int], str]]:
    """The numbers and the name in each line of nvidia-smi that names GPUs."""
    return [([*map(int, numbers.split(','))], name.split('(UUID')[0].strip())
            for numbers, name in [*_LISTED.findall(text),
                                  *_BOXED.findall(text)]]


def kind_of(text: str) -> tuple[str | None, tuple[str, ...]]:
    """The kind of GPU that a post names, a name of `rates.GPUS`, and notes.

    None where it names none. A note says it where it names several kinds,
    or one that is not known.
    """
    names = {name for _, name in gpus_listed(text)}
    kinds, lost = set(), set()
    for name in names | {name.strip() for name in _RANKED.findall(text)}:
        kind = _kind(name)
        if kind:
            kinds.add(kind)
        # Other words may stand there: 'GPU 0: 34 C'.
        elif re.search('NVIDIA|Tesla|GeForce|Quadro', name):
            lost.add(name)
    if len(kinds) == 1 and not lost:
        return kinds.pop(), ()
    if not kinds and not lost:
        return None, ()
    listed = ' and '.join(sorted(kinds | lost)[:4])
    return None, (f'The text lists {listed}: say which kind of GPU to take.',)


def _kind(name):
    """The kind of GPU with this name, or None.

    A name that nvidia-smi cut off, 'NVIDIA RTX 6000...', means a kind only if
    no end makes it another one: here it may be an RTX 6000 Ada.
    """
    begin = name.removesuffix('...')
    try:
        kind = find_gpu(begin).name
    except ValueError:
        return None
    others = {f'{kind} {end}' for end in _ENDS}
    return None if begin != name and others & GPUS.keys() else kind
