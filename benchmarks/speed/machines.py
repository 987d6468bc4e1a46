"""From a posted table to what its machine should show."""


class Machines:
    """Seconds to read a table, find the rings, and say the range."""

    params = ['DGX-1', 'NVSwitch', 'pairs', 'two sockets']
    param_names = ['wiring']

    def setup(self, wiring):
        try:
            from d2lps.collectives import machines, topology
        except ImportError:
            raise NotImplementedError('it reads no machines') from None
        gpu, nvlinks = {'DGX-1': ('V100', 0), 'NVSwitch': ('H100', 18),
                        'pairs': ('A100', 12),
                        'two sockets': ('L40S', 0)}[wiring]
        text = machines.examples.posted(wiring, 8, nvlinks)
        # Older commits call them `topology.from_nvidia_smi` and `expected`.
        read = (getattr(machines, 'from_nvidia_smi', None)
                or topology.from_nvidia_smi)
        expected = (getattr(machines, 'expected_bandwidth', None)
                    or machines.expected)
        self.answer = lambda: expected(read(text, gpu))

    def time_expected(self, wiring):
        self.answer()
