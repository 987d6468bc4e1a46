"""`python -m d2lps cluster`: a script on the workers of a cluster."""
import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from d2lps.cluster.network import Network
from d2lps.cluster.processes.calls import ClusterError, WorkerError
from d2lps.cluster.processes.cells import run_script
from d2lps.command_line import OneLine, one_line

EXAMPLES = '''
Examples:
  d2lps cluster --num-workers 4 --num-servers 2 train.py --lr 0.1
  d2lps cluster --bandwidth 125e6 --delay 0.001 train.py

Every worker runs the whole script. In the script, mx.kv.create('dist_sync')
makes the store. With --num-servers 0 there is no store, and
d2lps.join_peers() connects the workers. The output of worker 0 is shown
behind [worker 0]. The exit code is 0, or 1 after an error, or 130 after
Ctrl-C.
'''


def parser() -> argparse.ArgumentParser:
    p = OneLine(
        prog='d2lps cluster', epilog=EXAMPLES,
        usage='d2lps cluster [OPTION ...] SCRIPT [ARGUMENT ...]',
        description='Run a script on the workers of a cluster.')
    p.add_argument('--num-workers', type=int, default=2, metavar='M',
                   help='number of workers (default: 2)')
    p.add_argument('--num-servers', type=int, default=1, metavar='N',
                   help='number of parameter servers (default: 1; 0: no '
                   'store, and MXNet is not needed)')
    p.add_argument('--timeout', type=float, default=60, metavar='SECONDS',
                   help='timeout of a worker that waits (default: 60)')

    p.add_argument('--restarts', type=int, metavar='K',
                   help='after a death, start all processes and the script '
                   'anew, at most K times (default: 0)')
    p.add_argument('--elastic', action='store_true', default=None,
                   help='then continue without the dead worker')

    slow = p.add_argument_group('a slow network on this machine (Linux)')
    slow.add_argument('--bandwidth', type=float, metavar='BYTES',
                      help='bytes per second of every link, in each direction '
                      '(default, with another of these: 125e6, 1 Gbit/s)')
    slow.add_argument('--delay', type=float, metavar='SECONDS',
                      help='latency from a host to another (default: 0)')
    slow.add_argument('--colocated', action='store_true', default=None,
                      help='servers share the hosts of the workers')

    p.add_argument('script', nargs='?', metavar='SCRIPT',
                   help='a Python program, or a shell script (.sh)')
    p.add_argument('arguments', nargs=argparse.REMAINDER, metavar='ARGUMENT',
                   help='arguments for the script')
    return p


def given(args: argparse.Namespace, *options: str) -> dict[str, Any]:
    """Those of the options that are on the command line."""
    return {name: value for name, value in vars(args).items()
            if name in options and value is not None}


def run(args: argparse.Namespace) -> None:
    """Run the script."""
    from d2lps.cluster.cluster import Cluster  # --help needs no cloudpickle
    if not args.script:
        sys.exit('d2lps: name a script: d2lps cluster train.py')
    script = Path(args.script).resolve()
    if not script.is_file():
        sys.exit(f'd2lps: {args.script} is a folder; name a script'
                 if script.is_dir() else
                 f'd2lps: there is no script {args.script}')
    slow = given(args, 'bandwidth', 'delay', 'colocated')
    again = given(args, 'restarts', 'elastic')
    try:
        with Cluster(args.num_workers, args.num_servers, args.timeout,
                     network=Network(**slow) if slow else None, **again) as c:
            c.run(run_script, str(script), args.arguments)
    except WorkerError as error:
        sys.exit('\n'.join([*error.__notes__, *(
            f'd2lps: worker {rank} failed with {reason}'
            for rank, reason in error.errors.items())]))


def main(argv: Sequence[str]) -> None:
    args = parser().parse_args(argv)
    try:
        run(args)
    except ClusterError as error:
        sys.exit(f'd2lps: {error}')
    except (ValueError, OSError) as error:
        sys.exit(f'd2lps: {one_line(error, vars(args))}')
    except KeyboardInterrupt:
        sys.exit(130)
