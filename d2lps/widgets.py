"""Things to play with in a notebook; each leaves a picture when saved."""
import gc
import io

import ipywidgets
from IPython.display import Image, display
from matplotlib import pyplot as plt

from d2lps import schedule, simulate, topology
from d2lps.engine import cores
from d2lps.plots import plot_comparison, plot_timeline, plot_topology
from d2lps.timeline import step_timeline

# Links between n devices, with a bandwidth and a latency.
MACHINES = {
    'one PCIe switch': topology.pcie_switch,
    'cables in a ring': lambda n, bandwidth, latency: topology.Topology(
        [link for i in range(n) for link in topology.both_ways(
            i, (i + 1) % n, bandwidth, latency)][:2 * n if n > 2 else 2]),
    'two machines, 1 GB/s apart': lambda n, bandwidth, latency:
        topology.cluster(2, n // 2, bandwidth, latency=latency / 2)}


def live_picture(draw, controls):
    """Show `controls` above a picture that follows them.

    Args:
        draw: called with the controls' values by name; returns matplotlib
            axes, or an array of them.
        controls: a dict of ipywidgets by name.

    The picture is an output of the cell, not part of a widget, so it is still
    there when the notebook is read without a kernel.
    """
    def picture():
        axes = draw(**{name: c.value for name, c in controls.items()})
        fig = getattr(axes, 'figure', None) or axes.flat[0].figure
        plt.close(fig)  # or the cell shows it a second time when it ends
        png = io.BytesIO()  # in one go: IPython would draw everything twice
        fig.savefig(png, dpi=144, pil_kwargs={'compress_level': 1})
        return Image(png.getvalue(), retina=True)

    display(ipywidgets.HBox(list(controls.values()),
                            layout={'flex_flow': 'row wrap'}))
    shown = display(picture(), display_id=True)
    gc.collect(); gc.freeze()
    for control in controls.values():
        control.observe(lambda change: shown.update(picture()), 'value')


def choose(options, value, description):
    return ipywidgets.SelectionSlider(
        options=sorted({*options, value}), value=value,
        description=description, continuous_update=False)


def explore_timeline(num_devices=2, batch_size=256):
    """Choose devices and batch size, see one training step's timeline."""
    most = min(cores() + 2, 8)  # what MXNet can record, see `Timeline`
    live_picture(
        lambda num_devices, batch_size: plot_timeline(
            step_timeline(num_devices, batch_size),
            title=f'{batch_size / num_devices:.0f} examples on each device'),
        dict(num_devices=choose(range(1, most + 1), num_devices, 'devices'),
             batch_size=choose([16, 32, 64, 128, 256, 512, 1024], batch_size,
                               'batch size')))


def explore_synchronisation(machine='one PCIe switch', num_devices=4,
                            megabytes=160, bandwidth=16, latency=0):
    """Choose links and data, see what each strategy would take.

    bandwidth is in GB/s, latency in µs. On the right the links as the best,
    or the worst, of the strategies uses them.
    """
    def draw(machine, n, megabytes, bandwidth, latency, which):
        place = MACHINES[machine](n, bandwidth * 1e9, latency * 1e-6)
        plans = [schedule.hierarchical(2, n // 2)] + [
            schedule.gather_broadcast(n, root) for root in (0, 'cpu')] + [
            make(n) for make in (
            schedule.sharded, schedule.running_sum,
            schedule.ring, schedule.bidirectional_ring, schedule.tree,
            schedule.double_tree, schedule.recursive_doubling)]
        timings = [simulate.time(plan, place, megabytes * 1e6)
                   for plan in plans if {*plan.nodes} <= {*place.nodes}]
        _, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), gridspec_kw=dict(left=.2, right=.98, wspace=.1, top=.92, bottom=.13))
        plot_comparison(timings, axes[0])
        timing = which(timings, key=lambda timing: timing.seconds)
        plot_topology(place, timing.busy(), axes[1])
        axes[1].set_title(timing.schedule.name, fontsize=10)
        return axes

    live_picture(draw, dict(
        machine=ipywidgets.Dropdown(options=[*MACHINES], value=machine,
                                    description='links'),
        n=choose(range(2, 17, 2), num_devices, 'devices'),
        megabytes=choose([.01, .1, 1, 10, 40, 160, 1000], megabytes, 'MB'),
        bandwidth=choose([1, 2, 4, 10, 16, 32, 100], bandwidth, 'GB/s'),
        latency=choose([0, 1, 5, 20, 100, 1000], latency, 'latency / µs'),
        which=ipywidgets.Dropdown(options={'best': min, 'worst': max},
                                  description='picture')))
