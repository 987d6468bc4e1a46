"""Which kernels are chosen for a processor, and how much of it we may use."""
import os
import platform
import subprocess
import sys

import pytest
from d2lps import processor

# What Linux says of them in /proc/cpuinfo, as far as it matters here.
SSE = 'fpu sse sse2 ssse3 sse4_1 sse4_2'
AVX2 = f'{SSE} avx fma avx2 bmi2'
AVX512 = f'{AVX2} avx512f avx512dq avx512bw avx512vl amx_tile'
ALIKE = {'OPENBLAS_CORETYPE': 'Haswell', 'DNNL_MAX_CPU_ISA': 'AVX2'}


@pytest.mark.parametrize('flags, chosen', [
    ('fpu sse sse2', {}),
    (SSE, {'OPENBLAS_CORETYPE': 'Nehalem'}),
    (f'{SSE} avx', {'OPENBLAS_CORETYPE': 'Sandybridge'}),
    (f'{SSE} avx avx2', {'OPENBLAS_CORETYPE': 'Sandybridge'}),
    (AVX2, ALIKE), (AVX512, ALIKE)])
def test_kernels_that_suit_the_processor(monkeypatch, flags, chosen):
    """From AVX2 on all get the same; its kernels use fma as well."""
    monkeypatch.setattr(processor, 'abilities', lambda: {*flags.split()})
    assert processor.settings() == chosen


def test_an_arm_chooses_itself(monkeypatch):
    monkeypatch.setattr(platform, 'machine', lambda: 'aarch64')
    assert processor.settings() == {}


def test_what_an_intel_mac_says(monkeypatch):
    said = ('FPU SSE SSE2 SSSE3 FMA SSE4.1 SSE4.2 AVX1.0\n'
            'RDWRFSGS BMI1 AVX2 BMI2\n')
    monkeypatch.setattr(platform, 'machine', lambda: 'x86_64')
    monkeypatch.setattr(sys, 'platform', 'darwin')
    monkeypatch.setattr(subprocess, 'run', lambda command, **_: (
        subprocess.CompletedProcess(command, 0, stdout=said)))
    assert processor.settings() == ALIKE


@pytest.mark.full
@pytest.mark.skipif(not processor.settings(), reason='nothing to choose here')
def test_mxnet_takes_them_and_what_the_user_has_chosen(python):
    code = ('import os, d2lps, mxnet\n'
            'print(d2lps.processor.kernels_in_use(),'
            '      os.environ.get("DNNL_MAX_CPU_ISA"))')
    chosen = processor.settings()
    done = python('-c', code)
    assert done.stdout.split() == [chosen['OPENBLAS_CORETYPE'], str(
        chosen.get('DNNL_MAX_CPU_ISA'))], done.stderr
    done = python('-c', code, OPENBLAS_CORETYPE='Nehalem',
                  DNNL_MAX_CPU_ISA='SSE41')
    assert done.stdout.split() == ['Nehalem', 'SSE41'], done.stderr


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """A tree of control groups, in which this process has a place."""
    monkeypatch.setattr(processor, 'CGROUPS', tmp_path)
    ours = tmp_path / 'own'
    ours.write_text('0::/user/lab\n')
    monkeypatch.setattr(processor, 'OURS', ours)

    def write(**limits):
        for name, text in limits.items():
            folder = tmp_path / name.replace('_', '/').strip('/')
            folder.mkdir(parents=True, exist_ok=True)
            (folder / 'cpu.max').write_text(text)
    return write


@pytest.mark.parametrize('limits, allowed', [
    ({'user_lab': 'max 100000\n'}, None),
    ({'user_lab': '150000 100000\n'}, 1.5),
    ({'user_lab': 'max 100000\n', 'user': '50000 100000\n'}, 0.5),
    ({'_': '200000 100000\n', 'user_lab': '300000 100000\n'}, 2)])
def test_the_tightest_limit_of_a_container_counts(groups, limits, allowed):
    groups(**limits)
    assert processor.limit() == allowed


@pytest.mark.parametrize('quota, allowed', [('-1', None), ('50000', 0.5)])
def test_the_limit_as_linux_had_it_before(groups, tmp_path, quota, allowed):
    groups()
    (tmp_path / 'cpu').mkdir()
    (tmp_path / 'cpu' / 'cpu.cfs_quota_us').write_text(f'{quota}\n')
    (tmp_path / 'cpu' / 'cpu.cfs_period_us').write_text('100000\n')
    assert processor.limit() == allowed


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'), reason='on Linux')
def test_cores_are_those_that_this_process_may_use(python):
    done = python('-c', 'import os\nfrom d2lps.processor import cores\n'
                  'os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n'
                  'print(cores())')
    assert done.stdout == '1\n', done.stderr


@pytest.mark.parametrize('each, load', [(15, 15), (0.1, 1)])
def test_how_many_processes_want_a_core(monkeypatch, each, load):
    monkeypatch.setattr(os, 'getloadavg',
                        lambda: (each * processor.cores(), 0, 0))
    assert processor.load() == load
    monkeypatch.delattr(os, 'getloadavg')  # as on Windows
    assert processor.load() == 1
