"""The time of an all-reduce of any size, by NCCL's three protocols.

The rate of the links decides how long a large array takes, and `expectation`
is about that. A smaller array takes longer than its bytes, in two ways: the
call itself costs some microseconds, and each of the 2 (n - 1) hops of a ring
waits for the hop before it. NCCL therefore has three protocols, and takes
the one that it thinks is the fastest for the size:

* LL (low latency) sends each 4 bytes of data with 4 bytes of flag. The
  receiver sees at once that they arrived, so a hop is short. Half of the
  rate is lost.
* LL128 sends 120 bytes of data with 8 bytes of flag. It needs links that
  keep 128 bytes together, so NCCL does not use it over PCIe, nor on GPUs
  older than V100.
* Simple sends whole buffers without flags, and the GPUs synchronize after
  each buffer. Hops are long, and no rate is lost.

The time of each is a line: seconds of the call and its hops, plus bytes over
rate. The constants are NCCL's own (version 2.30, `src/graph/tuning.cc`). The
form is simpler than NCCL's. Every plan counts as a ring, and what another
plan (trees, switches that add) gains shows in the rate alone. Given the cost
of a call, NCCL's whole model did no better on 17 curves that owners posted.

What a call costs depends on the program that calls, too: on machines of
eight GPUs with NVLink the smallest arrays took from 13 to 49 microseconds,
where NCCL's constants say 15. A log that starts with small arrays shows this
cost, and `time` takes it as `smallest`. With it, 89 of 92 rows above 4 KiB
from five such machines were within 25 %, and 65 for one cost and one rate.
Without it, fewer than half of all rows were. Networks that answer slowly
(EFA) and GPUs that exchange through a CPU are outside of 25 % in both.
"""
from functools import partial
from typing import NamedTuple

from d2lps.checks import checked, integer, one_of, positive, refuse
from d2lps.collectives.machines.rates import find_gpu

US = 1e-6  # seconds


class Protocol(NamedTuple):
    """Constants of one of NCCL's protocols, in a ring.

    name: as NCCL calls it. call: seconds of a call, whatever its size.
    hops: seconds of one hop, over each kind of link that it can use.
    share: what is left of the rate of the links.
    """
    name: str
    call: float
    hops: dict[str, float]
    share: float


# `baseLatencies` and `hwLatencies` for rings, and what is left of a rate.
PROTOCOLS = (
    Protocol('LL', 6.6 * US, {'NVLink': 0.6 * US, 'PCIe': 1.0 * US,
                              'network': 2.7 * US}, 0.5),
    Protocol('LL128', 14.0 * US, {'NVLink': 1.9 * US,
                                  'network': 4.0 * US}, 0.92),
    Protocol('Simple', 8.4 * US, {'NVLink': 3.4 * US, 'PCIe': 5.7 * US,
                                  'network': 14.0 * US}, 1.0),
)
# The highest bus bandwidth of LL, bytes/s (`llMaxBws`): on one machine by the
# least compute capability of its GPUs; on two machines, and on more. The
# last two are for Intel's processors; for AMD's they are 22.5e9 and 19e9.
LL_MOST = {100: 282e9, 90: 141e9, 80: 87.7e9, 0: 39e9}
LL_MOST_2, LL_MOST_MORE = 39e9, 20.4e9


class Call(NamedTuple):
    """One all-reduce: how long it takes, and by which protocol."""
    seconds: float
    protocol: str


def _rule(ranks, machines, **others):
    if ranks < 2:
        refuse('ranks', ranks, '2 GPUs or more')
    if ranks % machines:
        refuse('ranks', ranks, f'as many GPUs on each of {machines} machines')


@checked(_rule, nbytes=positive, ranks=integer, machines=integer,
         rate=partial(positive, example=370e9),
         hops=one_of('NVLink', 'PCIe'), smallest=partial(positive,
                                                         example=15e-6))
def call_time(nbytes: float, ranks: int, rate: float, gpu: str,
              machines: int = 1, hops: str = 'NVLink',
              smallest: float | None = None) -> Call:
    """The time of an all-reduce of any size, and its protocol.

    nbytes: bytes on each GPU.
    ranks: how many GPUs take part, on all machines together.
    rate: bus bandwidth of large arrays, bytes/s, such as
        `expected_bandwidth` returns.
    gpu: the name of a GPU that `rates.find_gpu` knows, such as 'H100'.
    machines: the GPUs are on so many machines, as many on each.
    hops: the links inside a machine, 'NVLink' or 'PCIe'.
    smallest: seconds of the smallest arrays in a log of this machine, of at
        most some KiB. It replaces NCCL's estimate for them, and all larger
        arrays take as much longer or shorter.

    Raises ValueError for fewer than 2 GPUs, for GPUs that do not divide
    evenly among the machines, and for a GPU of unknown kind.
    """
    options = _lines(ranks, rate, gpu, machines, hops)
    estimate = min(latency for latency, _ in options.values())
    more = 0.0 if smallest is None else smallest - estimate
    return min(Call(latency + more + nbytes * per_byte, protocol)
               for protocol, (latency, per_byte) in options.items())


def _lines(ranks, rate, gpu, machines=1, hops='NVLink'):
    """The line of each protocol: seconds of no bytes, and seconds per byte.

    A dict by protocol, of those that the links permit. The arguments are
    those of `time`.
    """
    sm = find_gpu(gpu).sm
    steps = 2 * (ranks - 1)
    far = 2 * (machines - 1)  # steps over the network
    calls = {}
    for name, start, hop, share in PROTOCOLS:
        if hops not in hop or name == 'LL128' and sm < 70:
            continue
        latency = start + (steps - far) * hop[hops] + far * hop['network']
        bus = rate * share
        if name == 'LL':
            bus = min(bus, _ll_most(sm, machines))
        calls[name] = latency, steps / ranks / bus
    return calls


def _ll_most(sm, machines):
    if machines > 1:
        return LL_MOST_2 if machines == 2 else LL_MOST_MORE
    return next(most for least, most in LL_MOST.items() if sm >= least)
