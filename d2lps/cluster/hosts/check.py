"""`python -m d2lps cluster --check`: will a cluster work on these machines?"""
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from d2lps.annotations import Message
from d2lps.cluster.hosts.machines import SshPlaces, head_of
from d2lps.cluster.hosts.ssh_command import (SshCommand, check_hosts,
                                             check_ports)
from d2lps.cluster.processes import messages, probe
from d2lps.cluster.processes.calls import ClusterError

ANSWER_PATIENCE = SshPlaces.patience  # seconds for an answer
HERE = 'this machine'
# What to do if these words are in an error.
ADVICE = {
    'resolve hostname': 'Is the name right? Is it in ~/.ssh/config?',
    'Permission denied': 'Copy your key there: ssh-copy-id {host}',
    'IDENTIFICATION HAS CHANGED': 'Was it installed again? Then: ssh-keygen '
    '-R {host}; ssh {host}, and compare the key',
    'Host key verification': 'Run ssh {host} once, and compare the key',
    'kex_exchange': 'Too many logins at once, or a firewall: try again',
    'Connection refused': 'Install and start its SSH server',
    'timed out': 'Is it on? Does its firewall let SSH (port 22) in?',
    'No route to host': 'Is it on, and in this network?',
    'must not read': 'Look at the login scripts there, such as .bashrc',
    'without running': 'Does a login script there exit (.bashrc)? Is your key '
    'restricted to one command?',
    'no answer': 'Does ssh {host} true end at once, without a question?',
    'not installed': 'Install d2lps there, or say where it is: --python',
    'must be the same': 'Name the Python that has d2lps there: --python',
    'o such file': 'Name the Python that has d2lps there: --python',
    'not found': 'Name the Python that has d2lps there: --python'}


class Session:
    """An SSH session with a host's keeper, which answers questions in turn.

    Attributes:
        status: what the keeper has answered first; {} if it has not.
        problem: what is wrong, in a line, or ''.
    """

    def __init__(self, ssh_command: SshCommand, host: str,
                 question: Message) -> None:
        self.host, self._ssh = host, subprocess.Popen(
            ssh_command.to(host, 'keeper.main()'), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, errors='replace')
        self.problem, self.status = '', {}
        self.status = self.ask('address', 'begin', look=question)

    def ask(self, answer: str, do: str, patience: float = ANSWER_PATIENCE,
            **fields: Any) -> Message:
        """The first message that has the key `answer`, or {}.

        do, fields: of a message of `messages.TO_KEEPER`.
        """
        messages.check(messages.TO_KEEPER, do, fields)
        timer = threading.Timer(patience, self._ssh.kill)
        timer.start()
        output, errors = self._ssh.stdout, self._ssh.stderr
        assert output and errors  # they are pipes
        try:
            # The second line shows whether the first was lost.
            print(json.dumps({'do': do, **fields}), '{"do": "ping"}',
                  sep='\n', file=self._ssh.stdin, flush=True)
            for line in output:
                if line.startswith('{"keeper"'):
                    status = json.loads(line)['keeper']
                    if answer in status:
                        return status
        except OSError:  # it has ended, and has said why
            pass
        finally:
            timer.cancel()
        code = self._ssh.wait()
        words = errors.read().strip() or (
            f'no answer within {patience:.0f} s' if code < 0 else
            'it ended without running anything')
        changed = 'IDENTIFICATION HAS CHANGED'
        self.problem = changed if changed in words else words.split('\n')[-1]
        return {}

    def close(self) -> None:
        self._ssh.communicate()


def check(hosts: Sequence[str], address: str | None = None,
          ports: range | None = None,
          **options: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (what was looked at, what is wrong or '', what to do).

    Arguments as for `SshPlaces`, whose ValueErrors it raises.
    """
    hosts, numbers = check_hosts('hosts', hosts), check_ports(ports, 2)
    ssh_command = SshCommand(**options)
    question = {'ports': numbers, 'python': list(sys.version_info[:2])}
    with ThreadPoolExecutor(len(hosts)) as pool:
        sessions = [*pool.map(
            lambda host: Session(ssh_command, host, question), hosts)]
        try:
            yield from _check(sessions, address, numbers, pool.map)
        finally:
            for session in sessions:
                session.close()


def _check(sessions, address, ports, each):
    for session in sessions:
        yield f'{session.host}: SSH and Python', session.problem, next(
            (advice.format(host=session.host) for words, advice
             in ADVICE.items() if words in session.problem), '')
    sessions = [session for session in sessions if session.status]
    patience = ANSWER_PATIENCE + probe.IMPORT
    loaded = each(lambda session: session.ask('load', 'load', patience,
                                              args=[]), sessions)
    for session, status in zip(sessions, loaded):
        yield (f'{session.host}: d2lps and MXNet',
               session.problem or status['load'],
               'Install d2lps there, into this Python, or name another: '
               '--python')
    sessions = [session for session in sessions if not session.problem]
    if not sessions:
        return
    addresses = [session.status['address'] for session in sessions]
    problem = ''
    try:
        head = head_of([session.host for session in sessions], addresses,
                       address or sessions[0].status['reader'])
    except ClusterError as error:
        problem = str(error)
    yield 'addresses', problem, 'See address= in docs/several-machines.md'
    if problem:
        return
    free = [port for port in ports if probe.is_free(head, port)]
    for name, left in ((HERE, free), *(
            (session.host, session.status['ports']) for session in sessions)):
        if not left:
            yield (f'{name}: free ports', f'none of {ports[0]} to {ports[-1]} '
                   'is free', 'End what uses them, or choose others: --ports')
            return
    places = [[HERE, head, port] for port in {*free[:1], *free[-1:]}]
    probe.listen(head, [port for *_, port in places])
    for session, where in zip(sessions, addresses):
        free = session.status['ports']
        mine = [*{*free[:1], *free[-1:]}]
        places += [[session.host, where, port] for port in mine]
        session.ask('listen', 'listen', args=[where, mine])

    def reach(session):
        name = session.host if session else HERE
        targets = [one for one in places if one[0] != name]
        if not session:
            return name, probe.reach(targets)
        status = session.ask('reach', 'reach', args=[targets])
        return name, status.get('reach', [[*one, session.problem]
                                        for one in targets])
    for name, found in each(reach, [None, *sessions]):
        for other in dict.fromkeys(one for one, *_ in found):
            wrong = [f'{where}:{port}: {words}' for one, where, port, words
                     in found if one == other and words]
            yield (f'{name} reaches {other}', ', '.join(wrong),
                   f"Open {other}'s TCP ports {ports[0]} to {ports[-1]} for "
                   f'{name}')


def main(**options: Any) -> int:
    """Print a line for each check; return the exit code."""
    failed = 0
    for what, wrong, advice in check(**options):
        failed += bool(wrong)
        print(f'FAIL  {what}: {wrong.rstrip(".")}. {advice}' if wrong
              else f'ok    {what}', flush=True)
    print(f'{failed} of these checks failed' if failed else 'all is well')
    return int(bool(failed))
