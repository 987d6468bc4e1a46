"""Devices and machines, joined by links with a bandwidth and a latency.

Bandwidth is in bytes per second, latency in seconds, both of one link. A
link goes one way; a full-duplex cable is two links. A message pays the
latency of every link on its way. All constants but NVLINK are nominal rates,
each way. With protocols the rates are lower (`machines.rates`).
"""
from collections.abc import Sequence
from functools import partial

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import checked, number, positive
from d2lps.collectives import limits
from d2lps.collectives.cables import P3_CABLES, rings_of  # noqa: F401
from d2lps.collectives.links import (Link, Topology, both_ways,  # noqa: F401
                                     star)

PCIE3 = 16e9  # 16 lanes
# One NVLink. 18 GB/s is the book's figure (Dive into Deep Learning) for the
# V100. NCCL counts on it for the P100, and on 20 GB/s for the V100.
NVLINK = 18e9
NVLINK_V100 = 25e9  # by NVIDIA's data sheet
ETHERNET_1G, ETHERNET_10G, ETHERNET_100G = 125e6, 1.25e9, 12.5e9
# The rate of data over TCP: Ethernet carries 1,500 bytes at a time and adds
# 14; TCP and IP take 52 of them.
PAYLOAD = 1448 / 1514


@checked(n=limits.up_to_100_000, bandwidth=positive, latency=number)
def pcie_switch(n: int, bandwidth: float = PCIE3,
                latency: float = 0.0) -> Topology:
    """n GPUs, 0 to n - 1, and the 'cpu', each with a cable to one switch.

    bandwidth: bytes/s of each cable in each direction (PCIe 3.0 x16).
    latency: seconds per cable; a message takes two of them.
    """
    links = star([*range(n), 'cpu'], 'switch', bandwidth, latency)
    return Topology(links, ['switch'], f'pcie_switch({n})')


@checked(hosts=limits.hosts, bandwidth=positive, latency=number)
def ethernet(hosts: int | Sequence[Node], bandwidth: float = ETHERNET_10G,
             latency: float = 0.0) -> Topology:
    """Machines on one network switch.

    hosts: how many (called 0, 1, ...), or a list of names, such as the
    `nodes` of a schedule. bandwidth: bytes/s of a port in each direction.
    latency: seconds per cable; a message takes two of them.
    """
    nodes = range(hosts) if isinstance(hosts, int) else hosts
    links = star(nodes, 'switch', bandwidth, latency)
    return Topology(links, ['switch'], f'ethernet({len(nodes)})')


@checked(bandwidth=positive, latency=number)
def nvlink_p3(bandwidth: float = NVLINK, latency: float = 0.0) -> Topology:
    """The NVLink cables of a p3.16xlarge: 8 V100 GPUs, called 0 to 7.

    bandwidth: bytes/s of one NVLink in each direction; two that join the
    same GPUs (see `P3_CABLES`) count as one of twice that. GPUs without a
    cable reach each other through one in between.
    latency: seconds per cable.
    """
    links = []
    for i, j in np.argwhere(np.triu(P3_CABLES)).tolist():
        links += star([i], j, int(P3_CABLES[i, j]) * bandwidth, latency)
    return Topology(links, name='nvlink_p3')


def _fits_in_memory(num_machines, num_devices, num_servers, **_):
    limits.check_size('num_machines, num_devices or num_servers',
                      num_machines * (num_devices + 1) + num_servers,
                      100_000, 'nodes')


@checked(_fits_in_memory, num_machines=limits.up_to_100_000,
         num_devices=limits.up_to_100_000, inside=positive, network=positive,
         num_servers=partial(limits.up_to_100_000, least=0), latency=number,
         network_latency=number)
def cluster(num_machines: int, num_devices: int, inside: float = PCIE3,
            network: float = ETHERNET_10G, num_servers: int = 0,
            latency: float = 0.0, network_latency: float = 0.0) -> Topology:
    """Machines with GPUs on a PCIe switch, joined by a network switch.

    Device d of machine m is node m * num_devices + d; each machine has a CPU,
    'cpu 0' and so on; `num_servers` are machines of their own, 'server 0', ...
    inside, network: bytes/s of each cable in each direction.
    latency, network_latency: seconds per cable.
    """
    links = []
    for m in range(num_machines):
        own = range(m * num_devices, (m + 1) * num_devices)
        links += star([*own, f'cpu {m}'], f'switch {m}', inside, latency)
        links += star([f'switch {m}'], 'network', network, network_latency)
    links += star([f'server {j}' for j in range(num_servers)], 'network',
                   network, network_latency)
    switches = ['network', *(f'switch {m}' for m in range(num_machines))]
    return Topology(links, switches, f'cluster({num_machines}, {num_devices})')
