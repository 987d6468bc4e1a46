"""Machines for tests: network namespaces, each with an SSH server.

    python sshlab.py FOLDER

makes a namespace of its own with a bridge, joins two more to it as `one`
(10.9.0.1) and `two` (10.9.0.2), and starts an SSH server in each.  Then it
runs every script whose name comes in on standard input on the reader's
machine 10.9.0.254, one after the other, and answers each with a line of JSON.
Nothing of this touches the real network, and all of it ends with the last
process.
"""
import asyncio
import ctypes
import faulthandler
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryFile

SECONDS = float(os.environ.get('LAB_SECONDS', 100))  # for one script
NEWNET, NEWUSER = 0x40000000, 0x10000000
HERE = '10.9.0.254'
HOSTS = {'one': '10.9.0.1', 'two': '10.9.0.2'}
LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), 'unshare')


def end_with_parent():
    LIBC.prctl(1, signal.SIGKILL)


def enter():
    """Go into a network namespace of our own."""
    uid, gid = os.getuid(), os.getgid()
    unshare(NEWNET if uid == 0 else NEWNET | NEWUSER)
    if uid:
        Path('/proc/self/setgroups').write_text('deny')
        Path('/proc/self/uid_map').write_text(f'0 {uid} 1')
        Path('/proc/self/gid_map').write_text(f'0 {gid} 1')


def permitted():
    """May we make namespaces, with a bridge?"""
    done = subprocess.run([sys.executable, __file__, '--try'], timeout=30,
                          capture_output=True, text=True)
    return done.stdout.strip() == 'yes'


def bridge():
    from pyroute2 import IPRoute
    with IPRoute() as ip:
        ip.link('set', index=1, state='up')
        ip.link('add', ifname='br0', kind='bridge')
        index = ip.link_lookup(ifname='br0')[0]
        ip.addr('add', index=index, address=HERE, prefixlen=24)
        ip.link('set', index=index, state='up')
    return index


def join(pid, name, address, to):
    """Give the namespace of a process a link to the bridge.

    A machine that is started again has the hardware address that it had:
    others remember it for 45 s, and send to the old one as long.
    """
    from pyroute2 import IPRoute
    number = int(address.split('.')[-1])
    with IPRoute() as ip:
        ip.link('add', ifname=name, kind='veth', peer={
            'ifname': 'eth0', 'net_ns_pid': pid,
            'address': f'02:00:0a:09:00:{number:02x}'})
        index = ip.link_lookup(ifname=name)[0]
        ip.link('set', index=index, master=to, state='up')


def machine(name, folder):
    """Be an SSH server in a namespace of its own."""
    from pyroute2 import IPRoute
    end_with_parent()
    unshare(NEWNET)
    print('here', flush=True)
    sys.stdin.readline()  # by then, there is an eth0
    with IPRoute() as ip:
        ip.link('set', index=1, state='up')
        index = ip.link_lookup(ifname='eth0')[0]
        ip.addr('add', index=index, address=HOSTS[name], prefixlen=24)
        ip.link('set', index=index, state='up')
    asyncio.run(serve(name, Path(folder)))


async def serve(name, folder):
    import asyncssh

    async def copy(source, sink):
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        except (OSError, asyncssh.Error):  # one end of it is gone
            pass
        if isinstance(sink, asyncio.StreamWriter):
            sink.close()

    async def handle(process):
        sock = process.get_extra_info('sockname')
        peer = process.get_extra_info('peername')
        environment = os.environ | {
            'MACHINE': name,
            'SSH_CONNECTION': f'{peer[0]} {peer[1]} {sock[0]} {sock[1]}'}
        # Some shells greet even those who cannot read it.
        command = f'echo Welcome to {name}; ' + process.command
        child = await asyncio.create_subprocess_shell(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment, cwd=folder)
        # Like OpenSSH's server: when the connection is gone, the pipes end,
        # and nothing else happens to the command.
        incoming = asyncio.create_task(copy(process.stdin, child.stdin))
        await asyncio.gather(copy(child.stdout, process.stdout),
                             copy(child.stderr, process.stderr))
        code = await child.wait()
        incoming.cancel()
        process.exit(code if code >= 0 else 128 - code)

    async with asyncssh.listen(
            HOSTS[name], 22, server_host_keys=[str(folder / 'host_key')],
            authorized_client_keys=str(folder / 'key.pub'), encoding=None,
            process_factory=handle):
        print('listening', flush=True)
        await asyncio.Event().wait()


def start(name, folder, to):
    server = subprocess.Popen(
        [sys.executable, '-W', 'ignore', __file__, '--machine', name,
         str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True)
    assert server.stdout.readline() == 'here\n'
    join(server.pid, name, HOSTS[name], to)
    server.stdin.write('go\n')
    server.stdin.flush()
    assert server.stdout.readline() == 'listening\n'
    return server


def answer(prepare):
    """Run the scripts; `prepare()` returns what they find defined.

    Each is a fork of this process, which has loaded d2lps for all of them.
    The answer is the exit code, and what was printed and written as errors.
    """
    import d2lps.cluster  # noqa: F401
    faulthandler.enable()
    print('ready', flush=True)
    for line in sys.stdin:
        given = prepare()
        with TemporaryFile('w+') as out, TemporaryFile('w+') as err:
            pid = os.fork()
            if not pid:
                run(line.strip(), given, out, err)
            code = ended(pid)
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)


def run(script, given, *files):
    """Be the process that runs a script."""
    code = 1
    try:
        os.setsid()
        with open(os.devnull) as nothing:
            for number, file in enumerate((nothing, *files)):
                os.dup2(file.fileno(), number)
        sys.path.insert(0, str(Path(script).parent))
        runpy.run_path(script, given, '__main__')
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def ended(pid):
    """Wait for a process; when it takes too long, it shows where it hangs."""
    end = time.monotonic() + SECONDS
    while not (found := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGABRT)
            end += 10
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(found[1])


def left(seconds):
    """What is left of clusters in this lab after some seconds at most."""
    import psutil
    end = time.monotonic() + seconds
    while True:
        found = [str(path) for path in Path(os.environ['TMPDIR']).iterdir()]
        for process in psutil.process_iter():
            try:
                if (process.pid != os.getpid() and '--machine' not in
                        process.cmdline() and process.environ().get('LAB')
                        == os.environ['LAB']):
                    found.append(str(process))
            except psutil.Error:
                pass
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def main(folder):
    import asyncssh
    import psutil
    from pyroute2 import IPRoute
    (folder / 'tmp').mkdir()
    os.environ |= {'LAB': str(folder), 'TMPDIR': str(folder / 'tmp')}
    for name in ('key', 'host_key'):
        key = asyncssh.generate_private_key('ssh-ed25519')
        key.write_private_key(folder / name)
        key.write_public_key(folder / f'{name}.pub')
        (folder / name).chmod(0o600)
    hosts = [f'Host {name}\n  HostName {address}'
             for name, address in HOSTS.items()]
    (folder / 'config').write_text('\n'.join(hosts) + f'''
Host nobody
  HostName 10.9.0.77
Host refusing
  HostName {HERE}
Host stranger
  HostName 10.9.0.1
  IdentityFile {folder}/host_key
Host * !stranger
  IdentityFile {folder}/key
Host *
  User tester
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile {folder}/known
  LogLevel ERROR
''')
    enter()
    to, servers = bridge(), {}

    def prepare():
        """Have all servers run, and all cables plugged in."""
        for name in HOSTS:
            if name not in servers or servers[name].poll() is not None:
                servers[name] = start(name, folder, to)
            with IPRoute() as ip:
                [index] = ip.link_lookup(ifname=name)
                ip.link('set', index=index, state='up')
        return {'servers': {name: psutil.Process(server.pid)
                            for name, server in servers.items()},
                'folder': folder, 'left': left,
                'ssh': ('ssh', '-F', str(folder / 'config'))}
    answer(prepare)
    for server in servers.values():
        server.kill()
        server.wait()


if __name__ == '__main__':
    if sys.argv[1] == '--try':
        enter()
        bridge()
        print('yes')
    elif sys.argv[1] == '--machine':
        machine(*sys.argv[2:])
    else:
        main(Path(sys.argv[1]))
