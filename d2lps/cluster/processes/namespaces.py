"""Hosts of a network that exists only inside one process of a cluster.

Linux can give a process network interfaces of its own, a *network
namespace*.  The process that runs this makes one for a switch (a bridge) and
one for each host, and joins them with pairs of virtual interfaces whose ends
send no faster than stated.  Nothing in here has a name outside: the kernel
removes it all when the last process that is in it, or holds it, has ended.

A keeper calls this before it has threads: a process that has some may not
enter a user namespace.
"""
import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyroute2 import IPRoute

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
MANY = 1_000_000  # packets: more than may ever be under way
PREFIX = 16  # bits that all addresses have in common


class NotPermitted(Exception):
    """Raised with a line on what this machine does not permit."""


@contextmanager
def explain_refusal(feature: str) -> Iterator[None]:
    """Explain the kernel's refusal of what the slow network needs."""
    try:
        yield
    except Exception as error:
        code = getattr(error, 'code', None) or getattr(error, 'errno', None)
        if not code:
            raise
        lacking = code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENOSYS,
                           errno.EINVAL)
        # A limit that is reached is no full disk, as ENOSPC's words say.
        why = ('a limit in /proc/sys/user is reached'
               if code == errno.ENOSPC else os.strerror(abs(code)))
        raise NotPermitted(
            f"this machine's Linux {'lacks' if lacking else 'denies'} "
            f"{feature}{'' if lacking else ' to this user'} ({why})"
        ) from None


def call(name: str, *args: Any) -> None:
    """Call a function of the C library; OSError if it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*args):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter(host: int) -> None:
    """Go to a host that `build` has made."""
    call('setns', host, CLONE_NEWNET)


def leave() -> None:
    """Leave the machine's network, and its users if need be.

    Root may do that. Others first need a user namespace, inside which they
    may do what root may, but only to what belongs to that namespace.
    """
    try:
        call('unshare', CLONE_NEWNET)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        call('unshare', CLONE_NEWUSER | CLONE_NEWNET)
        for name, text in (('setgroups', 'deny'), ('uid_map', f'0 {user} 1'),
                           ('gid_map', f'0 {group} 1')):
            with open(f'/proc/self/{name}', 'w', encoding='utf-8') as file:
                file.write(text)


def build(hosts: Sequence[tuple[str, Sequence[str], bool]], bandwidth: float,
          delay: float, bucket: int, queue: int) -> list[int]:
    """Make a switch and hosts around it, in this process.

    Args:
        hosts: [name, addresses, is it behind a slow link?] for each.
        bandwidth: of the slow links, each way, in bytes per second.
        delay: seconds that every packet from a slow host waits.
        bucket: bytes that may leave at once after a pause.
        queue: bytes that may wait for a link; more are dropped.

    Returns:
        For each host, an open file with which a process can `enter` it.

    Raises:
        NotPermitted: if this machine does not permit it.
    """
    if sys.platform != 'linux':
        raise NotPermitted('the slow network needs Linux; this is '
                           f'{sys.platform}')
    from pyroute2 import IPRoute
    with explain_refusal('network namespaces'):
        leave()
    switch, files = here(), []
    with explain_refusal('a network bridge (module bridge)'), IPRoute() as ip:
        ip.link('add', ifname='switch', kind='bridge')
        ip.link('set', index=find(ip, 'switch'), state='up')
    for name, addresses, slow in hosts:
        with explain_refusal('more network namespaces'):
            call('unshare', CLONE_NEWNET)
        host = here()
        enter(switch)
        with IPRoute() as ip:
            card = plug(ip, link_of(name), host)
            if slow:
                limit(ip, card, bandwidth, bucket, queue)
        enter(host)
        with IPRoute() as ip:
            card = equip(ip, addresses)
            if slow:
                limit(ip, card, bandwidth, bucket, queue, delay)
        files.append(host)
    enter(switch)
    return files


def here() -> int:
    """The network namespace in which this process is, as an open file."""
    return os.open('/proc/self/ns/net', os.O_RDONLY)


def plug(ip: 'IPRoute', link: str, host: int) -> int:
    """Lay a cable from the switch, where this process is, to a host."""
    with explain_refusal('pairs of network interfaces (module veth)'):
        ip.link('add', ifname=link, kind='veth',
                peer={'ifname': 'eth0', 'net_ns_fd': host})
    card = find(ip, link)
    ip.link('set', index=card, state='up', master=find(ip, 'switch'))
    return card


def equip(ip: 'IPRoute', addresses: Iterable[str]) -> int:
    """Set up the host in which this process is."""
    ip.link('set', index=find(ip, 'lo'), state='up')
    card = find(ip, 'eth0')
    for address in addresses:
        ip.addr('add', index=card, address=address, prefixlen=PREFIX)
    ip.link('set', index=card, state='up')
    return card


def limit(ip: 'IPRoute', card: int, bandwidth: float, bucket: int, queue: int,
          delay: float = 0) -> None:
    """Let an interface first delay what it sends, then send it slowly."""
    where = {}
    if delay:
        where = {'parent': '1:1'}
        with explain_refusal(
                'delays for packets (module sch_netem); leave delay out'):
            ip.tc('add', 'netem', card, handle='1:', limit=MANY,
                  delay=round(delay * 1e6))
    with explain_refusal(
            'a limit for what an interface sends (module sch_tbf)'):
        ip.tc('add', 'tbf', card, rate=int(bandwidth), burst=bucket,
              limit=queue + bucket, **where)


def link_of(host: str) -> str:
    """The name of the switch's end of a host's link."""
    return host.replace(' ', '')


def find(ip: 'IPRoute', name: str) -> int:
    """The number of an interface."""
    return ip.link_lookup(ifname=name)[0]


def problem(function: Callable[[], Any]) -> str:
    """Call it and return why this machine does not permit it, or ''."""
    try:
        function()
    except NotPermitted as error:
        return str(error)
    except ImportError as error:
        return f'the slow network needs pyroute2 ({error})'
    return ''


if __name__ == '__main__':  # is it permitted?
    print(problem(lambda: build([('host', ['10.0.100.100'], True)], 125e6,
                                float(sys.argv[1]), 1 << 17, 1 << 22)))
