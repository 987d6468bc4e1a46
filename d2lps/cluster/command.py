"""`python -m d2lps cluster`: a script on the workers of a cluster."""
import argparse
import re
import shlex
import sys
from pathlib import Path

from d2lps.cluster.cluster import Cluster, ClusterError, WorkerError
from d2lps.cluster.network import Network
from d2lps.cluster.processes.cells import run_script

EXAMPLES = '''
examples:
  python -m d2lps cluster --workers 4 --servers 2 train.py --lr 0.1
  python -m d2lps cluster --bandwidth 125e6 --delay 0.001 train.py
  python -m d2lps cluster --hosts lab1,lab2 --workers 4 train.py

Every worker runs the whole script; in it, mx.kv.create('dist_sync') makes
the store. What worker 0 prints is shown behind [worker 0]. The exit code is
0, or 1 after an error, or 130 after Ctrl-C. With --hosts, read
docs/several-machines.md first: it opens ports on these machines.
'''


def network(args):
    """The slow network that was asked for, if any."""
    given = {'bandwidth': args.bandwidth, 'delay': args.delay,
             'colocated': args.colocated or None}
    given = {name: value for name, value in given.items()
             if value is not None}
    return Network(**given) if given else None


def names(texts):
    """['a,b', 'c'] → ['a', 'b', 'c']; None stays None."""
    return texts and re.split(r'[,\s]+', ' '.join(texts).strip())


def ports(text):
    """'20000-20999' → range(20000, 21000); ValueError for another."""
    found = re.fullmatch(r'(\d+)-(\d+)', text)
    if not found:
        raise ValueError('--ports must be the first and the last of a range '
                         f'such as 20000-20999; it was {text!r}')
    return range(int(found[1]), int(found[2]) + 1)


def several(args):
    """The options for several machines, as `Cluster` takes them."""
    return {'hosts': names(args.hosts), 'address': args.address,
            'python': args.python,
            'ssh': args.ssh and shlex.split(args.ssh),
            'ports': args.ports and ports(args.ports),
            'server_hosts': names(args.server_hosts)}


def look(args):
    """`--check`: the exit code."""
    from d2lps.cluster.processes.ssh import check
    given = several(args)
    hosts = (given['hosts'] or []) + (given.pop('server_hosts') or [])
    return check.main(**given | {'hosts': list(dict.fromkeys(hosts))})


def run(args):
    script = args.script and Path(args.script).resolve()
    if not (script and script.is_file()):
        sys.exit(f'd2lps: there is no script {args.script or ""}')
    hosts = names(args.hosts)
    workers = args.workers
    if workers is None:
        workers = len(hosts) if hosts else 2
    try:
        with Cluster(workers, args.servers, args.timeout,
                     network=network(args), **several(args)) as c:
            c.run(run_script, str(script), args.arguments)
    except (ValueError, OSError, ClusterError) as error:
        sys.exit(f'd2lps: {error}')
    except KeyboardInterrupt:
        sys.exit(130)
    except WorkerError as error:
        sys.exit('\n'.join([*error.__notes__, *(
            f'd2lps: worker {rank} failed with {words}'
            for rank, words in error.errors.items())]))


def main(argv):
    p = argparse.ArgumentParser(
        prog='d2lps cluster', epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Run a script on the workers of a cluster.')
    p.add_argument('--workers', type=int, metavar='M',
                   help='how many (default: 2, or one for each host)')
    p.add_argument('--servers', type=int, default=1, metavar='N',
                   help='parameter servers (default: 1)')
    p.add_argument('--timeout', type=float, default=60, metavar='SECONDS',
                   help='how long a worker waits for another (default: 60)')

    slow = p.add_argument_group('a slow network on this machine (Linux)')
    slow.add_argument('--bandwidth', type=float, metavar='BYTES',
                      help='of every link, each way, in bytes per second; '
                      '125e6 is 1 Gbit/s (the default, if another option of '
                      'these is given)')
    slow.add_argument('--delay', type=float, metavar='SECONDS',
                      help='from a host to another (default: 0)')
    slow.add_argument('--colocated', action='store_true',
                      help="servers share the workers' hosts")

    far = p.add_argument_group('several machines, over SSH')
    far.add_argument('--hosts', action='append', metavar='A,B,…',
                     help='where workers and servers run, in turn; as ssh '
                     'takes them')
    far.add_argument('--address', help="this machine's address, as the "
                     'hosts know it (default: found out)')
    far.add_argument('--python', help='the Python on the hosts that has '
                     'd2lps (default: the same path as here)')
    far.add_argument('--ssh', help="the command (default: 'ssh')")

    far.add_argument('--server-hosts', action='append', metavar='C,D,…',
                     help='where servers run, if not on these')
    far.add_argument('--ports', metavar='FIRST-LAST', help='on which all '
                     'machines can reach each other (default: 20000-20999)')
    far.add_argument('--check', action='store_true', help='see whether all '
                     'that a cluster needs of the hosts is there, and end')

    p.add_argument('script', nargs='?', help='a Python program')
    p.add_argument('arguments', nargs=argparse.REMAINDER,
                   help='arguments for the script')
    args = p.parse_args(argv)
    if args.check:
        try:
            sys.exit(look(args))
        except ValueError as error:
            sys.exit(f'd2lps: {error}')
        except KeyboardInterrupt:
            sys.exit(130)
    run(args)
