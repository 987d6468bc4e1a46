"""Real machines, from what their owners post: wiring, rings, expectations.

`rates`: what a link carries, with sources. `wiring`: what a text says.
`nvidia_smi`, `nccl_xml`: the texts. `posts`: what all posts have in common.
`gpu_machine`: the topology of one machine. `expectation`: what bus bandwidth
it should show. `nccl_tests`: what it showed.
`protocols`: how long small arrays take. `examples`: tables to try. `ask`: all
of it for one post; `command`: in a terminal.
"""
from d2lps.collectives.machines import examples, protocols, rates
from d2lps.collectives.machines.expectation import (Expectation, Verdict,
                                                    expected_bandwidth)
from d2lps.collectives.machines.gpu_machine import from_nvidia_smi
from d2lps.collectives.machines.nccl_tests import read_nccl_tests
