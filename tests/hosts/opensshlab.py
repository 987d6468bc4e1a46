"""Machines for a test: network namespaces, each with OpenSSH's real server.

    python opensshlab.py FOLDER SCRIPT

makes three namespaces behind a bridge, with an `sshd` in each: `one`
(10.9.0.1), `two` and `three`. Then it runs the script on the reader's machine
10.9.0.254. It needs root. The namespaces have no names: all of it ends with
this process.
"""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NEWNET, NEWNS = 0x40000000, 0x20000
RECURSIVE, PRIVATE = 0x4000, 0x40000
SSHD = '/usr/sbin/sshd'
HERE = '10.9.0.254'
HOSTS = {'one': '10.9.0.1', 'two': '10.9.0.2', 'three': '10.9.0.3'}
LIBC = ctypes.CDLL(None, use_errno=True)


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


def unshare(flags):
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), 'unshare')


def mount(source, target, kind, flags):
    if LIBC.mount(*(word.encode() for word in (source, target, kind)), flags,
                  None):
        raise OSError(ctypes.get_errno(), f'mount {target}')


def bridge():
    """Connect the reader's machine with a bridge; returns its number."""
    from pyroute2 import IPRoute
    with IPRoute() as ip:
        ip.link('set', index=1, state='up')
        ip.link('add', ifname='br0', kind='bridge')
        [index] = ip.link_lookup(ifname='br0')
        ip.addr('add', index=index, address=HERE, prefixlen=24)
        ip.link('set', index=index, state='up')
    return index


def machine(name, folder):
    """Be an SSH server in a namespace of its own."""
    from pyroute2 import IPRoute
    LIBC.prctl(1, signal.SIGKILL)  # when the lab ends
    unshare(NEWNET | NEWNS)
    mount('none', '/', '', RECURSIVE | PRIVATE)
    mount('tmpfs', '/run', 'tmpfs', 0)
    os.mkdir('/run/sshd', 0o755)  # where sshd has to have a folder
    print('here', flush=True)
    sys.stdin.readline()  # by then, there is an eth0
    with IPRoute() as ip:
        ip.link('set', index=1, state='up')
        [index] = ip.link_lookup(ifname='eth0')
        ip.addr('add', index=index, address=HOSTS[name], prefixlen=24)
        ip.link('set', index=index, state='up')
    log = os.open(folder / f'{name}.log', os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 2)
    os.execv(SSHD, [SSHD, '-D', '-e', '-f', str(folder / f'{name}.conf')])


def start(name, folder, to):
    """Start a machine, and plug its cable into the bridge."""
    from pyroute2 import IPRoute
    server = subprocess.Popen(
        [sys.executable, __file__, '--machine', name, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True)
    assert server.stdout.readline() == 'here\n'
    with IPRoute() as ip:
        ip.link('add', ifname=name, kind='veth', peer={
            'ifname': 'eth0', 'net_ns_pid': server.pid})
        [index] = ip.link_lookup(ifname=name)
        ip.link('set', index=index, master=to, state='up')
    print('go', file=server.stdin, flush=True)
    end = time.monotonic() + 100
    while True:
        try:
            socket.create_connection((HOSTS[name], 22), 1).close()
            return server
        except OSError:
            assert time.monotonic() < end, name
            time.sleep(0.05)


def prepare(folder):
    """Keys and configurations, all in `folder`."""
    (folder / 'tmp').mkdir()
    for key in 'key', 'other_key', 'host_key':
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f',
                        str(folder / key)], check=True)
    for name, address in HOSTS.items():
        (folder / f'{name}.conf').write_text(f'''
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
AuthorizedKeysFile {folder}/key.pub
SetEnv MACHINE={name} TMPDIR={folder}/tmp LAB={folder}
''')
    host = (folder / 'host_key.pub').read_text()
    (folder / 'known').write_text(''.join(
        f'{address} {host}' for address in HOSTS.values()))
    (folder / 'config').write_text(''.join(
        f'Host {name}\n  HostName {address}\n'
        for name, address in HOSTS.items()) + f'''
Host stranger
  HostName 10.9.0.1
  IdentityFile {folder}/other_key
Host * !stranger
  IdentityFile {folder}/key
Host *
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile none
''')


def main(folder, script):
    prepare(folder)
    unshare(NEWNET)
    to = bridge()
    servers = [start(name, folder, to) for name in HOSTS]
    done = subprocess.run([sys.executable, script], env=os.environ | {
        'LAB': str(folder), 'TMPDIR': str(folder / 'tmp')})
    for server in servers:
        server.kill()
        server.wait()
    sys.exit(done.returncode)


if __name__ == '__main__':
    if sys.argv[1] == '--try':
        unshare(NEWNET | NEWNS)
        bridge()
        print('yes')
    elif sys.argv[1] == '--machine':
        machine(sys.argv[2], Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]), sys.argv[2])
