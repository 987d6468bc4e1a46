"""Machines for tests: network namespaces, each with OpenSSH's real server.

    python opensshlab.py FOLDER

makes three namespaces behind a bridge (see `sshlab`), with an `sshd` in
each: `one` (10.9.0.1), `two` and `three`.  Then it runs every script whose
name comes in on standard input on the reader's machine 10.9.0.254, one after
the other, and answers each with a line of JSON.  It needs root.  In the
servers' own view of the file system, root has many names, each with a home
folder of its own: so what people do in `.bashrc` or `authorized_keys` can be
tried without touching anybody's.
"""
import ctypes
import json
import os
import pwd
import socket
import subprocess
import sys
import time
from pathlib import Path

import sshlab
from sshlab import HERE, LIBC, NEWNET

NEWNS, BIND, RECURSIVE, PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
SSHD = '/usr/sbin/sshd'
DROPPING = '10.9.0.78'  # as a firewall does that says nothing
HOSTS = {'one': '10.9.0.1', 'two': '10.9.0.2', 'three': '10.9.0.3'}
# Lines for .bashrc, by the name of the one who has them.
BASHRC = {
    'plain': '',
    'greeting': 'echo Welcome; echo "{\\"a\\": 1}"; seq 3000; printf "> "; '
                'echo careful >&2',
    'reads': 'read -r answer',
    'swallows': 'cat > /dev/null',
    'leaves': 'exit 0'}
# What the server runs in place of what it is asked to.
FORCED = {'date': 'date', 'cat': 'cat', 'sleep': 'sleep 20'}


def problem():
    """Why this lab cannot be, in a line; '' if it can."""
    if sys.platform != 'linux' or os.getuid():
        return "OpenSSH's server is tried as root on Linux only"
    if not os.access(SSHD, os.X_OK):
        return f'there is no {SSHD} (Debian: apt install openssh-server)'
    done = subprocess.run([sys.executable, __file__, '--try'], timeout=30,
                          capture_output=True, text=True)
    return '' if done.stdout.strip() == 'yes' else (
        'network and mount namespaces are not permitted here')


def mount(source, target, kind, flags):
    if LIBC.mount(*(str(word).encode() for word in (source, target, kind)),
                  flags, None):
        raise OSError(ctypes.get_errno(), f'mount {target}')


def own_files(folder):
    """Let this process see users, and a /run, that others do not have."""
    sshlab.unshare(NEWNS)
    mount('none', '/', '', RECURSIVE | PRIVATE)
    mount('tmpfs', '/run', 'tmpfs', 0)
    os.mkdir('/run/sshd', 0o755)  # where sshd has to have a folder
    for name in 'passwd', 'shadow':
        mount(folder / name, f'/etc/{name}', '', BIND)


def machine(name, folder):
    """Be an SSH server in a namespace of its own."""
    from pyroute2 import IPRoute
    sshlab.end_with_parent()
    sshlab.unshare(NEWNET)
    own_files(folder)
    print('here', flush=True)
    sys.stdin.readline()  # by then, there is an eth0
    with IPRoute() as ip:
        ip.link('set', index=1, state='up')
        index = ip.link_lookup(ifname='eth0')[0]
        ip.addr('add', index=index, address=HOSTS[name], prefixlen=24)
        ip.link('set', index=index, state='up')
    log = os.open(folder / f'{name}.log', os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 2)
    os.execv(SSHD, [SSHD, '-D', '-e', '-f', str(folder / f'{name}.conf')])


def start(name, folder, to):
    server = subprocess.Popen(
        [sys.executable, '-W', 'ignore', __file__, '--machine', name,
         str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True)
    assert server.stdout.readline() == 'here\n'
    sshlab.join(server.pid, name, HOSTS[name], to)
    server.stdin.write('go\n')
    server.stdin.flush()
    end = time.monotonic() + 100
    while True:
        try:
            socket.create_connection((HOSTS[name], 22), 1).close()
            return server
        except OSError:
            assert time.monotonic() < end, name
            time.sleep(0.05)


def drop(index):
    """Have all that is sent to DROPPING go nowhere."""
    from pyroute2 import IPRoute
    with IPRoute() as ip:
        ip.neigh('replace', dst=DROPPING, lladdr='02:00:00:00:00:01',
                 ifindex=index, state='permanent')


def prepare(folder):
    """Keys, users and configurations, all below `folder`."""
    for key in 'key', 'other_key', 'host_key', 'wrong_host_key', *FORCED:
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f',
                        str(folder / key)], check=True)
    public = (folder / 'key.pub').read_text()
    users = [f'root:x:0:0:root:{pwd.getpwuid(0).pw_dir}:/bin/bash',
             'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin']
    for user in (*BASHRC, *FORCED):
        home = folder / 'home' / user
        (home / '.ssh').mkdir(parents=True)
        (home / '.bashrc').write_text(BASHRC.get(user, '') + '\n')
        (home / '.ssh' / 'authorized_keys').write_text(
            f'command="{FORCED[user]}" {public}' if user in FORCED
            else public)
        users.append(f'{user}:x:0:0::{home}:/bin/bash')
    (folder / 'passwd').write_text('\n'.join(users) + '\n')
    (folder / 'shadow').write_text(''.join(
        f'{user.split(":")[0]}:*:19000::::::\n' for user in users))
    for name, address in HOSTS.items():
        (folder / f'{name}.conf').write_text(f'''
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
UsePAM no
MaxStartups 10:100:10
StrictModes no
PermitRootLogin prohibit-password
AuthorizedKeysFile .ssh/authorized_keys
SetEnv MACHINE={name} TMPDIR={folder}/tmp LAB={folder}
''')
    host = (folder / 'host_key.pub').read_text()
    wrong = (folder / 'wrong_host_key.pub').read_text()
    (folder / 'known').write_text(''.join(
        f'{address} {host}' for address in HOSTS.values()))
    (folder / 'changed').write_text(f'{HOSTS["one"]} {wrong}')
    (folder / 'nobody_known').write_text('')
    (folder / 'config').write_text(''.join(
        f'Host {name} {" ".join(f"{user}@{name}" for user in BASHRC)}\n'
        f'  HostName {address}\n' for name, address in HOSTS.items()) + f'''
Host absent
  HostName 10.9.0.77
Host dropping
  HostName {DROPPING}
Host refusing
  HostName {HERE}
Host stranger unknown changed mastered
  HostName 10.9.0.1
Host stranger
  IdentityFile {folder}/other_key
Host unknown
  UserKnownHostsFile {folder}/nobody_known
Host changed
  UserKnownHostsFile {folder}/changed
Host mastered
  ControlMaster auto
  ControlPath {folder}/master
Host * !stranger
  IdentityFile {folder}/key
Host *
  User plain
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile none
''')


def main(folder):
    (folder / 'tmp').mkdir()
    prepare(folder)
    sshlab.enter()
    to, servers = sshlab.bridge(), {}
    os.environ |= {'LAB': str(folder), 'TMPDIR': str(folder / 'tmp')}

    def prepare_servers():
        for name in HOSTS:
            if name not in servers or servers[name].poll() is not None:
                servers[name] = start(name, folder, to)
        drop(to)  # a bridge forgets it when it gets a cable
        os.environ['SERVERS'] = json.dumps(
            {name: server.pid for name, server in servers.items()})
    sshlab.answer(prepare_servers)
    for server in servers.values():
        server.kill()
        server.wait()


# What scripts in the lab may use.

def ssh():
    return ('ssh', '-F', os.environ['LAB'] + '/config')


def server(name):
    import psutil
    return psutil.Process(json.loads(os.environ['SERVERS'])[name])


def sessions():
    """The servers' processes beside the servers themselves."""
    return [one for name in HOSTS for one in server(name).children(True)]


def left(seconds, allowed=()):
    """What is left of clusters in this lab after some seconds at most."""
    import psutil
    end = time.monotonic() + seconds
    while True:
        found = [str(path) for path in Path(os.environ['TMPDIR']).iterdir()]
        for process in [*psutil.process_iter()]:
            try:
                if (process.pid != os.getpid() and process.environ().get(
                        'LAB') == os.environ['LAB']):
                    found.append(' '.join(process.cmdline()))
            except psutil.Error:
                pass
        for one in sessions():
            try:
                found.append(' '.join(one.cmdline()))
            except psutil.Error:
                pass
        found = [one for one in found if one not in allowed]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def block(name, to, ports='20000:20999'):
    """Let a machine reach no such port of another one, until `unblock`."""
    in_network_of(name, lambda ip: ip.rule(
        'add', dst=to, dst_len=32, ip_proto=6, dport_range=ports,
        action='prohibit', priority=10))


def unblock(name):
    in_network_of(name, lambda ip: ip.rule('del', priority=10))


def in_network_of(name, function):
    """Call `function(ip)` with pyroute2 in a machine's network."""
    from pyroute2 import IPRoute
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            file = os.open(f'/proc/{server(name).pid}/ns/net', os.O_RDONLY)
            assert LIBC.setns(file, NEWNET) == 0
            with IPRoute() as ip:
                function(ip)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


if __name__ == '__main__':
    if sys.argv[1] == '--try':
        sshlab.enter()
        sshlab.bridge()
        sshlab.unshare(NEWNS)
        print('yes')
    elif sys.argv[1] == '--machine':
        machine(sys.argv[2], Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]))
