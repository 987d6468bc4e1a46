"""Sizes, memory, time and plans, held against figures worked by hand."""
from pathlib import Path

import pytest
from d2lps.collectives import simulate, strategies, topology
from d2lps.planning import (A100, B200, B300, BLOOM_176B, GB200, GPT3_175B,
                            H100, H200, LLAMA3_8B, LLAMA3_70B, LLAMA3_405B,
                            Division, Transformer, best_divisions,
                            compare_runs, divisions, gather_time,
                            layer_activations, memory, mfu, model_states,
                            read_runs, send_time, step_time, sum_time)
from d2lps.planning.network import SIMPLE, members
from d2lps.planning.published import published_seconds, run_of

RUNS = (Path(__file__).resolve().parents[2]
        / 'notebooks/results/20-published-runs.csv')
SMALL = Transformer(8, 512, 8, vocab=1000, sequence=128)


@pytest.mark.parametrize('model, parameters', [
    (LLAMA3_8B, 8_030_261_248), (LLAMA3_70B, 70_553_706_496),
    (LLAMA3_405B, 405_853_388_800)])
def test_llama_has_as_many_parameters_as_its_files(model, parameters):
    assert model.parameters == parameters


@pytest.mark.parametrize('model, billions', [
    (GPT3_175B, 174.6), (Transformer(24, 2304, 24), 1.7),
    (Transformer(128, 25600, 160), 1008.0)])
def test_gpt_has_as_many_parameters_as_narayanan_says(model, billions):
    assert model.parameters / 1e9 == pytest.approx(billions, abs=0.06)


def test_bloom_has_176_billion_parameters():
    assert BLOOM_176B.parameters / 1e9 == pytest.approx(176.2, rel=0.01)


def test_flops_of_a_step_are_equation_3_of_narayanan():
    """It counts the forward pass of all layers once more."""
    l, h, s, V = 96, 12288, 2048, 51200
    by_paper = 96 * s * l * h ** 2 * (1 + s / (6 * h) + V / (16 * l * h))
    again = GPT3_175B.forward - 2 * GPT3_175B.embedding
    assert s * (GPT3_175B.flops + again) == pytest.approx(by_paper)


def test_flops_are_about_six_for_each_parameter():
    assert LLAMA3_70B.flops / LLAMA3_70B.parameters == pytest.approx(
        6, rel=0.2)


@pytest.mark.parametrize('zero, GB', [(0, 120), (1, 31.4), (2, 16.6),
                                      (3, 1.9)])
def test_zero_needs_what_its_paper_says(zero, GB):
    """Figure 1 of Rajbhandari et al.: 7.5 billion parameters, 64 GPUs."""
    held = sum(model_states(7.5e9, 64, zero))
    assert held / 1e9 == pytest.approx(GB, abs=0.05)


def test_a_parameter_needs_16_bytes():
    need = memory(SMALL, Division())
    assert sum(need[:3]) == 16 * (8 * SMALL.layer + SMALL.embedding)


def test_activations_are_those_of_korthikanti():
    """s b h (34 + 5 a s / h), and its parts by tensor parallelism."""
    sbh, scores = 2048 * 12288, 5 * 96 * 2048 / 12288
    for division, by_paper in [
            (Division(flash=False), 34 + scores),
            (Division(tensor=8, flash=False), (34 + scores) / 8),
            (Division(tensor=8, flash=False, sequence_parallel=False),
             10 + (24 + scores) / 8),
            (Division(tensor=8, flash=False, recompute='selective'), 34 / 8),
            (Division(tensor=8), 34 / 8),
            (Division(recompute='full'), 2)]:
        assert layer_activations(GPT3_175B, division) == pytest.approx(
            sbh * by_paper), division


def test_full_recomputation_keeps_inputs_and_the_layer_in_work():
    """The layer has its scores: 34 s b h + 5 a s^2 b bytes."""
    s, b, h, a, layers, micro_batches = 2048, 4, 12288, 96, 48, 2
    need = memory(GPT3_175B, Division(
        pipeline=2, micro_batch=b, micro_batches=micro_batches, flash=False,
        recompute='full'))
    inputs = micro_batches * layers * 2 * s * b * h
    assert need.activations == pytest.approx(
        inputs + 34 * s * b * h + 5 * a * s ** 2 * b)


def test_the_first_stage_keeps_as_many_micro_batches_as_stages():
    one = memory(SMALL, Division(pipeline=4, micro_batches=1)).activations
    four = memory(SMALL, Division(pipeline=4, micro_batches=16)).activations
    mixed = memory(SMALL, Division(pipeline=4, micro_batches=16,
                                   interleave=2)).activations
    assert mixed == pytest.approx(four * (1 + 3 / 8))
    first = 2 * layer_activations(SMALL, Division())
    assert one >= first and four == pytest.approx(4 * first)


def test_full_recomputation_needs_less_and_takes_longer():
    keep, again = (Division(8, micro_batch=4, recompute=how)
                   for how in ('none', 'full'))
    assert (memory(LLAMA3_8B, again).activations
            < memory(LLAMA3_8B, keep).activations / 5)
    assert (step_time(LLAMA3_8B, again, H100).compute
            > 1.2 * step_time(LLAMA3_8B, keep, H100).compute)


@pytest.mark.parametrize('inside, domains', [(8, 1), (1, 4), (4, 3), (8, 2)])
def test_a_sum_takes_what_the_simulator_says(inside, domains):
    """Of the whole plan on the whole topology, not of its parts."""
    n, call = inside * domains, SIMPLE.call
    nvlink, network = (SIMPLE.hops[kind] / 2 for kind in ('NVLink',
                                                          'network'))
    if domains == 1:
        plan, calls = strategies.ring(n), 1
        links = topology.star(range(n), 's', H100.nvlink, nvlink)
    elif inside == 1:
        plan, calls = strategies.ring(n), 1
        links = topology.star(range(n), 's', H100.network, network)
    else:
        plan, calls = strategies.hierarchical(domains, inside), 2
        links = topology.star(range(n), 'network', H100.network, network)
        for m in range(domains):
            links += topology.star(range(m * inside, (m + 1) * inside),
                                   f'domain {m}', H100.nvlink, nvlink)
    switches = {link.dst for link in links} - {*range(n)}
    whole = topology.Topology(links, sorted(switches))
    if domains > 1 and inside > 1:  # two ways, of which one is an NVLink
        assert whole.route(0, 1)[0].bandwidth == H100.nvlink
    for nbytes in 1e3, 1e9:
        seconds = simulate.timing(plan, whole, nbytes).seconds + calls * call
        assert sum_time(H100, inside, domains, nbytes) == pytest.approx(
            seconds)
    assert gather_time(H100, inside, domains, 1e9) == pytest.approx(
        sum_time(H100, inside, domains, 1e9) / 2)


def test_a_group_lies_in_as_few_domains_as_it_can():
    assert members(H100, 8, 1) == (8, 1)
    assert members(H100, 16, 1) == (8, 2)
    assert members(H100, 4, 4) == (2, 2)
    assert members(H100, 4, 8) == (1, 4)
    assert members(GB200, 64, 1) == (64, 1)


def test_a_message_inside_a_domain_is_faster():
    assert 5 * send_time(H100, 1, 8, 1e9) < send_time(H100, 8, 2, 1e9)
    assert send_time(H100, 4, 2, 1e9) == send_time(H100, 1, 8, 1e9)
    # Of four GPUs that are four ranks apart, two and two share a domain.
    assert send_time(H100, 4, 4, 1e9) == send_time(H100, 8, 2, 1e9)


@pytest.mark.parametrize('interleave', [1, 2])
def test_the_bubble_is_that_of_the_formula(interleave):
    """(p - 1) / (v m) of the time of all micro-batches."""
    d = Division(pipeline=4, micro_batches=8, interleave=interleave)
    model = Transformer(8, 4096, 32, vocab=1)  # no words to compute
    step = step_time(model, d, H100)
    assert step.bubble / (step.compute + step.tensor) == pytest.approx(
        3 / (8 * interleave), rel=1e-3)


def test_one_gpu_sends_nothing():
    step = step_time(SMALL, Division(), H100)
    assert step.compute > 0 and step.optimizer > 0
    assert step.tensor == step.context == step.bubble == 0
    assert step.sends == step.data == 0


def test_a_step_is_never_faster_than_its_matrix_products():
    model = LLAMA3_70B
    causal = 1 - 1.5 * model.layers * model.attention / model.flops
    for d in divisions(model, 64, 64, H100):
        used = mfu(model, d, H100, step_time(model, d, H100).seconds)
        assert 0 < used * causal < 0.70 * 794.5 / 989


def test_tensor_parallelism_across_machines_is_slow():
    eight, sixteen = (step_time(LLAMA3_70B, Division(
        64 // t, t, micro_batches=t // 8 * 4), H100).tensor for t in (8, 16))
    assert sixteen > 3 * eight


def test_gradients_hide_behind_the_backward_pass():
    hidden = step_time(LLAMA3_8B, Division(64, micro_batch=4), H100)
    assert hidden.data == 0
    short = Transformer(32, 4096, 32, sequence=64)
    seen = step_time(short, Division(64), H100)
    assert seen.data > seen.compute


def test_context_parallelism_sends_keys_and_values():
    long = Transformer(8, 4096, 32, vocab=1000, sequence=131072)
    step = step_time(long, Division(context=8), H100)
    assert step.context == 0  # attention takes longer than the ring
    whole = step_time(long, Division(), H100)
    assert step.compute == pytest.approx(whole.compute / 8)


def test_a_faster_gpu_is_faster():
    d = Division(8, 8, micro_batches=4)
    slow, fast, faster = (step_time(LLAMA3_70B, d, gpu).seconds
                          for gpu in (A100, H100, B200))
    assert slow > fast > faster


@pytest.mark.parametrize('gpu, reported', [
    (A100, 79.1), (H100, 79.1), (H200, 139.8), (B200, 178.3), (B300, 267.6),
    (GB200, 184.3)], ids=lambda one: getattr(one, 'name', ''))
def test_a_gpu_is_no_better_than_what_programs_find(gpu, reported):
    """GiB that PyTorch reports; products and links below the data sheet's."""
    assert 1.04 < reported * 2 ** 30 / gpu.memory < 1.07
    assert gpu.matmul < 0.9 * gpu.peak and gpu.nvlink > 4 * gpu.network


def test_all_divisions_use_all_gpus_and_the_whole_batch():
    found = [*divisions(LLAMA3_70B, 64, 128, H100)]
    assert {d.gpus for d in found} == {64}
    assert {d.batch for d in found} == {128}
    assert max(d.tensor for d in found) == 8
    assert len({*found}) == len(found) > 100


def test_a_plan_says_what_is_fastest_and_what_does_not_fit():
    table = best_divisions(LLAMA3_70B, 64, 128, H100)
    fits = table[table.problem == '']
    assert fits.seconds.is_monotonic_increasing and fits.index[0] == 0
    assert fits.GB.max() <= 76 < table[table.problem != ''].GB.min()
    sides = table[['data', 'tensor', 'pipeline', 'context']]
    assert (sides.prod(axis=1) == 64).all() and not sides.duplicated().any()
    parts = [name for name in table if name.endswith(' s')]
    assert table[parts].sum(axis=1).to_numpy() == pytest.approx(
        table.seconds.to_numpy())
    assert table.MFU.between(0.01, 0.7).all()


def test_of_two_settings_as_fast_a_plan_has_the_one_with_less_memory():
    """ZeRO-2 and 3 hide all that they send here; ZeRO-3 holds less."""
    model = Transformer(40, 5120, 40, ffn=13824, vocab=32000, sequence=4096,
                        gated=True)
    best = best_divisions(model, 16, 256, H100).iloc[0]
    two, three = (Division(16, micro_batches=16, zero=zero)
                  for zero in (2, 3))
    assert step_time(model, two, H100) == step_time(model, three, H100)
    assert best.zero == 3
    assert best.GB * 1e9 == pytest.approx(memory(model, three).total)


def test_a_plan_for_a_thousand_gpus():
    table = best_divisions(LLAMA3_405B, 1024, 1024, H100)
    assert table.problem[0] == '' and table.tensor[0] * table.data[0] > 8


@pytest.mark.parametrize('call, words', [
    (lambda: Transformer(8, 100, 3), 'heads must be a divisor of hidden=100'),
    (lambda: Transformer(8, 512, 8, kv_heads=3), 'kv_heads must be a divisor'),
    (lambda: Transformer(0, 512, 8), 'layers must be a whole number'),
    (lambda: Division(tensor=0), 'tensor must be a whole number'),
    (lambda: Division(zero=4), 'zero must be'),
    (lambda: Division(recompute='some'), "'none', 'selective' or 'full'"),
    (lambda: Division(interleave=2), 'interleave must be 1'),
    (lambda: step_time(SMALL, Division(tensor=3), H100),
     '8 heads are not divisible by 3'),
    (lambda: step_time(SMALL, Division(pipeline=16), H100),
     '8 layers are too few for 16 parts'),
    (lambda: step_time(SMALL, Division(context=5), H100),
     '128 tokens are not divisible by twice 5'),
    (lambda: step_time(SMALL, 8, H100), 'division must be a Division'),
    (lambda: best_divisions(SMALL, 8, 1, 'H100'), 'gpu must be a Gpu'),
    (lambda: best_divisions(SMALL, 11, 3, H100), 'no way to give 11 GPUs'),
    (lambda: memory('x', Division()), "model must be a Transformer"),
    (lambda: memory(SMALL, 8), 'division must be a Division'),
    (lambda: memory(SMALL, Division()).fits('H100'), 'gpu must be a Gpu'),
    (lambda: sum_time('H100', 8, 1, 1), 'gpu must be a Gpu'),
    (lambda: mfu(SMALL, Division(), H100, 0), 'seconds must be a positive'),
    (lambda: compare_runs(read_runs(RUNS).assign(unit='tokens')),
     "unit of the run 'GPT 1.7B' in runs must be 'seconds', .*'tokens'"),
    (lambda: compare_runs(read_runs(RUNS).assign(published=-1)),
     "published of the run 'GPT 1.7B' in runs must be a positive"),
    (lambda: compare_runs(read_runs(RUNS).assign(gpu='H900')),
     "gpu of the run 'GPT 1.7B' in runs must be 'A100', "),
    (lambda: compare_runs(read_runs(RUNS).drop(columns='heads')),
     "with a column 'heads'"),
    (lambda: read_runs(RUNS.with_name('21-curves.csv')),
     "21-curves.csv must be a table of runs")])
def test_bad_calls_say_what_would_work(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_published_runs_are_predicted():
    runs = read_runs(RUNS)
    table = compare_runs(runs)
    error = abs(table.ratio - 1)
    old = runs.group == 'ZeRO-3 2021'
    assert error[runs.role == 'in view'].mean() < 0.07
    assert error[(runs.role == 'aside') & ~old].mean() < 0.09
    assert error[~old].max() < 0.30
    assert table.ratio[old].max() < 0.85  # we say that these are not
    assert error.mean() < 0.15


@pytest.mark.parametrize('gpu', [A100, H100, H200, B200, B300, GB200],
                         ids=lambda gpu: gpu.name)
def test_a_run_may_be_on_each_gpu(gpu):
    [run] = read_runs(RUNS)[:1].assign(gpu=gpu.name).iloc
    assert run_of(run)[2] is gpu


def test_more_runs_are_what_their_sources_say():
    """GPUs, sequences in a step, and MFU as the sources print them."""
    runs = read_runs(RUNS.with_name('20-more-runs.csv'))
    assert (runs[['data', 'tensor', 'pipeline', 'context']].prod(axis=1)
            == runs.gpus).all()
    runs['batch'] = runs.data * runs.micro_batch * runs.micro_batches
    known = runs.set_index('run').assign(
        MFU=compare_runs(runs)['published MFU'].to_numpy())
    for run, batch, MFU in (
            ('Llama 3 8B, 8 GPUs', 128, 0.594),
            ('Llama 3 70B, 64 GPUs', 128, 0.541),
            ('Llama 3 405B, 576 GPUs', 252, 0.558),
            ('GPT-3 175B, 128 GPUs', 256, 0.499),
            ('MPT 7B, 65,536 tokens', 16, 0.286),
            ('MPT 13B, 16,384 tokens', 72, 0.356)):
        assert known.batch[run] == batch
        assert known.MFU[run] == pytest.approx(MFU, rel=0.01), run


def test_published_runs_are_what_their_sources_say():
    """Narayanan's equation 3; Korthikanti's MFU; the GPUs of each row."""
    runs = read_runs(RUNS)
    largest, = (row for _, row in runs.iterrows()
                if row['run'] == 'GPT 1008B')
    assert published_seconds(largest) == pytest.approx(
        96 * 3072 * 2048 * 128 * 25600 ** 2 * (
            1 + 2048 / 6 / 25600 + 51200 / 16 / 128 / 25600)
        / 3072 / 163e12)
    table = compare_runs(runs).set_index('run')['published MFU']
    for model, MFU in ('22B', 0.415), ('175B', 0.514), ('530B', 0.56), (
            '1000B', 0.563):
        assert table[f'GPT {model}, selective'] == pytest.approx(MFU,
                                                                 abs=0.003)
    assert (runs[['data', 'tensor', 'pipeline', 'context']].prod(axis=1)
            == runs.gpus).all()
    assert (runs.source != '').all() and (runs.verified != '').all()


@pytest.mark.parametrize('gpu, gigabits', [
    (A100, 200), (H100, 400), (H200, 400), (B200, 400), (B300, 800),
    (GB200, 400)], ids=lambda value: getattr(
        value, 'name', str(value)))
def test_a_gpu_has_the_card_of_its_servers(gpu, gigabits):
    """One for each GPU. What it carries is a little less than its name."""
    assert 0.9 * gigabits < 8 * gpu.network / 1e9 <= gigabits
