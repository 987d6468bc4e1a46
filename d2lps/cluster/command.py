"""`python -m d2lps cluster`: a script on the workers of a cluster."""
import argparse
import sys
from pathlib import Path

from d2lps.cluster import worker
from d2lps.cluster.cluster import Cluster, ClusterError, WorkerError


def run(args):
    script = Path(args.script).resolve()
    if not script.is_file():
        sys.exit(f'd2lps: there is no script {args.script}')
    try:
        with Cluster(args.workers, args.servers, args.timeout) as c:
            c.run(worker.run_script, str(script), args.arguments)
    except (ValueError, OSError, ClusterError) as error:
        sys.exit(f'd2lps: {error}')
    except KeyboardInterrupt:
        sys.exit(130)
    except WorkerError as error:
        sys.exit('\n'.join(f"d2lps: worker {where['engine_id']} failed with "
                           f'{name}: {value}'
                           for name, value, _, where in error.elist))


def main(argv):
    p = argparse.ArgumentParser(
        prog='d2lps cluster',
        description='Run a script on the workers of a cluster.')
    p.add_argument('--workers', type=int, default=2, metavar='M')
    p.add_argument('--servers', type=int, default=1, metavar='N')
    p.add_argument('--timeout', type=float, default=60, metavar='SECONDS',
                   help='how long a worker waits for another (default: 60)')
    p.add_argument('script', help='what each worker runs; there, '
                   "mx.kv.create('dist_sync') makes the store")
    p.add_argument('arguments', nargs=argparse.REMAINDER,
                   help='arguments for the script')
    run(p.parse_args(argv))
