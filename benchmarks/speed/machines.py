"""From a posted table to what its machine should show."""


class Machines:
    """Seconds to read a table, find the rings, and say the range."""

    params = ['DGX-1', 'NVSwitch', 'pairs', 'two sockets']
    param_names = ['wiring']

    def setup(self, wiring):
        try:
            from d2lps.collectives import machines
        except ImportError:
            raise NotImplementedError('it reads no machines') from None
        gpu, nvlinks = {'DGX-1': ('V100', 0), 'NVSwitch': ('H100', 18),
                        'pairs': ('A100', 12),
                        'two sockets': ('L40S', 0)}[wiring]
        text = machines.examples.posted(wiring, 8, nvlinks)
        self.answer = lambda: machines.expected_bandwidth(
            machines.from_nvidia_smi(text, gpu))

    def time_expected(self, wiring):
        self.answer()
