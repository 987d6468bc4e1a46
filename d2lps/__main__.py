"""`python -m d2lps`: the commands of the package in a terminal."""
import argparse
import sys
from collections.abc import Sequence
from json import dumps
from typing import Any, NoReturn

import d2lps
from d2lps.missing import Missing


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
        print(f'd2lps server: {" ".join(str(error).split())}',
              file=sys.stderr)
        sys.exit(2)


def numbers(text: str) -> list[int]:
    from d2lps.collectives.machines import ask
    try:
        return ask.numbers(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class OneLine(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f'{self.prog}: error: {" ".join(message.split())}\n')


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; its options are the arguments of a function above."""
    parser = OneLine(prog='d2lps', description=d2lps.__doc__)
    parser.add_argument('--version', action='version',
                        version=f'd2lps {d2lps.__version__}')
    commands = parser.add_subparsers(required=True, metavar='COMMAND',
                                     parser_class=OneLine)

    step = OneLine(add_help=False)
    step.add_argument('--num-devices', type=int, default=2, metavar='K',
                      help='devices that share each minibatch (default: 2)')
    step.add_argument('--batch-size', type=int, default=256, metavar='B',
                      help='examples in a minibatch (default: 256)')

    p = commands.add_parser('train', parents=[step],
                            help='train LeNet on several devices')
    p.add_argument('--lr', type=float, default=0.1,
                   help='learning rate (default: 0.1)')
    p.add_argument('--num-epochs', type=int, default=10,
                   help='passes over the training set (default: 10)')
    p.add_argument('--data', default='digits',
                   choices=('digits', 'fashion_mnist', 'mnist'))
    p.add_argument('--root', help='folder with the IDX files of the data set')
    p.add_argument('--scale', type=scale,
                   help="start of the weights: a number, or 'xavier'")
    p.add_argument('--seed', type=int, default=0)
    p.set_defaults(run=train)

    p = commands.add_parser('timeline', parents=[step],
                            help='record what each device does in one step')
    p.add_argument('--json', action='store_true',
                   help='print the events themselves')
    p.set_defaults(run=timeline)

    p = commands.add_parser('machine', help='what this machine has')
    p.set_defaults(run=machine)

    p = commands.add_parser(
        'server', help='what a GPU server should show, read from what '
        'nvidia-smi topo -m prints',
        formatter_class=argparse.RawDescriptionHelpFormatter, description=(
            'Which bus bandwidth an all-reduce of large arrays should show, '
            'and whether a\nmeasurement is normal.'), epilog="""\
Example: which rings have the GPUs of a DGX-1, and is this log normal?
  nvidia-smi topo -m > table.txt
  all_reduce_perf -b 8 -e 8G -f 2 -g 8 > log.txt      (of nccl-tests)
  d2lps server table.txt --gpu V100 --log log.txt
Two machines like it, each with four network cards of 100 Gbit/s:
  d2lps server table.txt --gpu V100 --machines 2 --cards 4 --card-gbit 100""")
    p.add_argument('file', metavar='FILE', help="the table, or NCCL's XML; - "
                   'reads it from standard input')
    p.add_argument('--gpu', help='which GPU it is, such as A100: a table '
                   'does not say it')
    p.add_argument('--use', type=numbers, metavar='0,1,...',
                   help='GPUs that take part (default: all)')
    p.add_argument('--log', help='a log of nccl-tests to judge; - reads it '
                   'from standard input')
    p.add_argument('--measured', type=float, metavar='B',
                   help='or a bus bandwidth to judge, GB/s')
    p.add_argument('--machines', type=int, default=1, metavar='M',
                   help='machines like this one (default: 1)')
    p.add_argument('--cards', type=int, metavar='C',
                   help='network cards of each machine')
    p.add_argument('--card-gbit', type=float, metavar='G',
                   help='Gbit/s of one card')
    p.add_argument('--json', action='store_true', help='print one object')
    p.set_defaults(run=server)
    commands.add_parser('cluster', help='run a script on many workers')
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv[:1] == ['cluster']:  # takes a while to load
            from d2lps.cluster import command
            command.main(argv[1:])
            return
        arguments = vars(parser.parse_args(argv))
        run = arguments.pop('run')
        run(**arguments)
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f'd2lps: {error}')
    except Missing as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == '__main__':
    main()
