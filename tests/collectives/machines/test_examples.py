"""Tables to try things with: what they say, and what is refused."""
import pytest

from d2lps.collectives.machines import examples
from d2lps.collectives.machines.gpu_machine import from_nvidia_smi


def test_a_wiring_is_read_back_as_it_was_asked_for():
    for wiring, n, nvlinks, cables, switched in (
            ('NVSwitch', 4, 12, 0, 12), ('pairs', 4, 12, 4 * 12, 0),
            ('all joined', 4, 4, 12 * 4, 0), ('two sockets', 4, 0, 0, 0),
            ('DGX-1', 8, 0, 8 * 6, 0)):
        gpu_machine = from_nvidia_smi(examples.posted(wiring, n, nvlinks),
                                      'V100' if n == 8 else 'A100')
        assert len(gpu_machine.gpus) == n
        assert gpu_machine.cables.sum() == cables
        assert gpu_machine.switched == switched


@pytest.mark.parametrize('wiring, n, nvlinks, words', [
    ('x', 8, 0, "wiring must be 'DGX-1', .* or 'two sockets'; it was 'x'"),
    ('pairs', 3, 2, 'n must be an even number: the GPUs are in pairs; .* 3'),
    ('pairs', 4, 0, 'nvlinks must be a whole number of at least 1'),
    ('NVSwitch', 8, 0, 'nvlinks must be a whole number of at least 1'),
    ('NVSwitch', 2.5, 12, 'n must be a whole number'),
    ('two sockets', 8, -1, 'nvlinks must be a whole number of at least 0'),
    ('DGX-1', 4, 0, 'n must be 8: so many GPUs a DGX-1 has; it was 4')])
def test_what_is_no_wiring_is_refused(wiring, n, nvlinks, words):
    with pytest.raises(ValueError, match=words):
        examples.posted(wiring, n, nvlinks)
