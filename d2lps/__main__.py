"""`python -m d2lps`: the commands of the package in a terminal."""
import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from json import dumps
from textwrap import fill
from typing import Any

import d2lps
from d2lps.command_line import OneLine, meant, one_line
from d2lps.missing import NotInstalled


def train(num_epochs: int, **arguments: Any) -> None:
    result = d2lps.train(num_epochs=num_epochs, **arguments)
    if len(result.seconds) < num_epochs:
        sys.exit(130)  # what a shell expects after Ctrl-C


def timeline(json: bool, **arguments: Any) -> None:
    recorded = d2lps.step_timeline(**arguments)
    print(dumps(recorded.events) if json else recorded)


def machine() -> None:
    print(d2lps.machine())


def scale(text: str) -> str | float:
    try:
        return text if text == 'xavier' else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"it must be a number or 'xavier'; it was {text!r}") from None


def server(**arguments: Any) -> None:
    from d2lps.collectives.machines import command  # loads NumPy
    try:
        command.server(**arguments)
    except (ValueError, OSError) as error:
        options = arguments.keys() - {'file'}
        print(f'd2lps server: {one_line(error, options)}', file=sys.stderr)
        sys.exit(2)


def numbers(text: str) -> list[int]:
    from d2lps.collectives.machines import ask
    try:
        return ask.numbers(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


EXAMPLES = """\
Examples:
  d2lps train --num-devices 2 --num-epochs 3
  d2lps server table.txt --gpu V100 --log log.txt
  d2lps cluster --num-workers 4 train.py

"d2lps COMMAND --help" shows the options of a command."""
OF_SERVER = """\
Tell which bus bandwidth an all-reduce of large arrays should reach on your
GPU server, and whether a measurement is normal."""
EXAMPLES_OF_SERVER = """\
Examples:
  nvidia-smi topo -m > table.txt
  d2lps server table.txt --gpu V100

  all_reduce_perf -b 8 -e 8G -f 2 -g 8 > log.txt      (of nccl-tests)
  d2lps server table.txt --gpu V100 --log log.txt

Two machines like it, each with four network cards of 100 Gbit/s:
  d2lps server table.txt --gpu V100 --machines 2 --cards 4 --card-gbit 100"""


def in_lines(names: Iterable[str]) -> str:
    """Names in lines of 79 columns that break no name."""
    whole = ', '.join(name.replace(' ', '\xa0') for name in names)
    return fill(whole, 79).replace('\xa0', ' ')


class GpuName(argparse.Action):
    """`--gpu list` prints the names, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser,
                 namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        if values == 'list':
            from d2lps.collectives.machines.rates import GPUS
            print(in_lines(GPUS), flush=True)
            parser.exit()
        namespace.gpu = values


def parsed(argv: Sequence[str]) -> dict[str, Any]:
    """The options of a command, and 'run', the function that takes them."""
    parser = OneLine(prog='d2lps', epilog=EXAMPLES, description=(
        'Tools of the d2lps notebooks for the terminal.'))
    parser.add_argument('--version', action='version',
                        version=f'd2lps {d2lps.__version__}')
    commands = parser.add_subparsers(title='commands', metavar='COMMAND',
                                     parser_class=OneLine)

    step = OneLine(add_help=False)
    step.add_argument('--num-devices', type=int, default=2, metavar='K',
                      help='devices that share each minibatch (default: 2)')
    step.add_argument('--batch-size', type=int, default=256, metavar='B',
                      help='examples in a minibatch (default: 256)')

    p = commands.add_parser(
        'train', parents=[step], help='train LeNet on several devices',
        description='Train LeNet on several devices of this machine.')
    p.add_argument('--lr', type=float, default=0.1, metavar='R',
                   help='learning rate (default: 0.1)')
    p.add_argument('--num-epochs', type=int, default=10, metavar='E',
                   help='passes over the training set (default: 10)')
    p.add_argument('--data', default='digits',
                   choices=('digits', 'fashion_mnist', 'mnist'),
                   help='images (default: digits, which need no download)')
    p.add_argument('--root', metavar='FOLDER',
                   help='folder with the IDX files of the data set')
    p.add_argument('--scale', type=scale, metavar='S',
                   help='standard deviation of the first weights, or xavier, '
                   'which differs between layers')
    p.add_argument('--seed', type=int, default=0, metavar='N',
                   help='seed of the weights and of the order of the examples '
                   '(default: 0)')
    p.set_defaults(run=train)

    p = commands.add_parser(
        'timeline', parents=[step],
        help='record what the devices do in a step of training',
        description='Record a step of training: its seconds, and the part of '
        'them in which\nseveral devices work at once.')
    p.add_argument('--json', action='store_true',
                   help='print each operation, as JSON')
    p.set_defaults(run=timeline)

    p = commands.add_parser(
        'machine', help='show cores, memory and copy speed of this machine',
        description='Show cores, memory and copy speed of this machine.')
    p.set_defaults(run=machine)

    p = commands.add_parser(
        'server', help='tell whether your GPU server is as fast as it should '
        'be', description=OF_SERVER, epilog=EXAMPLES_OF_SERVER)
    p.add_argument('file', metavar='FILE', help='what "nvidia-smi topo -m" '
                   "printed, or NCCL's XML; - reads it from standard input")
    p.add_argument('--gpu', action=GpuName, metavar='NAME', help='the kind of '
                   'GPU, such as A100, which a table does not contain; "--gpu '
                   'list" prints all names')
    p.add_argument('--use', type=numbers, metavar='0,1,...',
                   help='GPUs that take part (default: all)')
    p.add_argument('--log', metavar='FILE', help='a log of nccl-tests to '
                   'judge; - reads it from standard input')
    p.add_argument('--measured', type=float, metavar='B',
                   help='or a bus bandwidth to judge, in GB/s')
    p.add_argument('--machines', type=int, default=1, metavar='M',
                   help='number of machines like this one (default: 1)')
    p.add_argument('--cards', type=int, metavar='C',
                   help='number of network cards of each machine')
    p.add_argument('--card-gbit', type=float, metavar='G',
                   help='rate of a card, in Gbit/s')
    p.add_argument('--json', action='store_true',
                   help='print the answer as JSON')
    p.set_defaults(run=server)
    commands.add_parser('cluster', help='run a script on the workers of a '
                        'cluster')
    known = commands.choices
    if not argv:
        parser.error('a command is missing; there are '
                     f'{", ".join(known)}')
    if argv[0] not in known and argv[0][:1] != '-':
        parser.error(f'there is no command {argv[0]!r}'
                     f'{meant(argv[0], known)}')
    return vars(parser.parse_args(argv))


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; its options are the arguments of a function above."""
    argv = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:
        sys.exit('d2lps: standard output is closed, so nothing can be shown')
    arguments: dict[str, Any] = {}
    try:
        if argv[:1] == ['cluster']:  # takes a while to load
            from d2lps.cluster import command
            command.main(argv[1:])
            return
        arguments = parsed(argv)
        arguments.pop('run')(**arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # of `d2lps ... | head`: nobody reads the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f'd2lps: {one_line(error, arguments)}')
    except NotInstalled as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == '__main__':
    main()
