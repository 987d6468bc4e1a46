"""Things to play with in a notebook; each leaves a picture when saved."""
import io
from functools import partial
from threading import Lock

import ipywidgets
from IPython.display import Image, display
from matplotlib import pyplot as plt

from d2lps.checks import (checked, function, list_of, number, one_of, positive,
                          refuse, whole)
from d2lps.collectives import simulate
from d2lps_pictures.menus import CHOICES, LINKS, PLANS, STRATEGIES
from d2lps_pictures.plots import plot_comparison, plot_topology, shown_ms


def _controls(name, value):
    """A dict of ipywidgets by name."""
    if not isinstance(value, dict) or not all(
            isinstance(one, ipywidgets.Widget) for one in value.values()):
        refuse(name, value, 'a dict of ipywidgets by name')
    return value


@checked(draw=function, controls=_controls, margins=one_of('tight', None))
def live_picture(draw, controls, margins='tight'):
    """Show `controls` above a picture that follows them.

    controls: a dict of ipywidgets by name.
    draw: called with their values by name, returns axes, an array of them,
    or a `Drawing`. It may change controls, and is not called for that.
    margins: None, for 40 ms less, if `draw` sees to it that nothing is cut.

    The picture is an output of the cell, not part of a widget, so it is still
    there when the notebook is read without a kernel.
    """
    def picture():
        axes = draw(**{name: c.value for name, c in controls.items()})
        if hasattr(axes, '_repr_html_'):
            return axes  # a Drawing, which shows itself
        fig = getattr(axes, 'figure', None) or axes.flat[0].figure
        plt.close(fig)  # or the cell shows it a second time when it ends
        png = io.BytesIO()  # in one go: IPython would draw everything twice
        fig.savefig(png, dpi=144, bbox_inches=margins,
                    pil_kwargs={'compress_level': 1})  # a third faster
        return Image(png.getvalue(), retina=True)

    def follow(change):
        if drawing.locked():  # `draw` did it
            return
        with drawing:
            shown.update(picture())

    drawing, first = Lock(), picture()
    display(ipywidgets.Box(list(controls.values()),
                           layout={'flex_flow': 'row wrap'}))
    shown = display(first, display_id=True)
    for control in controls.values():
        control.observe(follow, 'value')


def choose(options, value, description):
    """A slider over `options`, to which `value` is added; it begins there."""
    return ipywidgets.SelectionSlider(
        options=sorted({*options, value}), value=value,
        description=description, continuous_update=False)


def _drawable(num_devices, plans, **_):
    """Two machines share the devices equally; not all links join a CPU."""
    if num_devices % 2:
        refuse('num_devices', num_devices, 'an even number')
    if plans and {*plans} == {'cpu'}:
        refuse('plans', plans, "more than 'cpu', which not all links join")


@checked(_drawable, links=one_of(*LINKS), megabytes=positive,
         bandwidth=positive, latency=number,
         num_devices=partial(whole, least=2, most=16),
         plans=list_of(one_of(*STRATEGIES), 'a list of names of strategies'))
def explore_synchronisation(links='one PCIe switch', num_devices=4,
                            megabytes=160, bandwidth=16, latency=0,
                            plans=None):
    """Choose links and data; see what each strategy would take.

    megabytes: of each device's array. bandwidth: GB/s of a cable, each way.
    latency: µs per cable, of which a message may cross several.
    plans: names of `STRATEGIES`; without it, all. 'cpu' is `gather_broadcast`
    on the CPU.
    """
    def draw(links, n, megabytes, bandwidth, latency, which):
        joined = LINKS[links](n, bandwidth * 1e9, latency / 1e6)
        schedules = [PLANS[name][1](n) for name in plans or STRATEGIES]
        timings = [simulate.time(plan, joined, megabytes * 1e6)
                   for plan in schedules
                   if {*plan.nodes} <= {*joined.nodes}]
        _, axes = plt.subplots(1, 2, figsize=(9.5, 3.6))
        plt.subplots_adjust(0.22, 0.13, 0.97, 0.92, wspace=0.1)
        plot_comparison(timings, axes[0])
        shown = which(timings, key=shown_ms)
        plot_topology(joined, shown.busy(), axes[1], False).set_title(
            f'{shown.schedule.name}, busy links dark')
        return axes

    live_picture(draw, dict(
        links=ipywidgets.Dropdown(options=[*LINKS], value=links),
        n=choose(CHOICES['devices'], num_devices, 'devices'),
        megabytes=choose(CHOICES['MB'], megabytes, 'MB'),
        bandwidth=choose(CHOICES['GB/s'], bandwidth, 'GB/s'),
        latency=choose(CHOICES['µs per cable'], latency, 'µs per cable'),
        which=ipywidgets.Dropdown(options={'best': min, 'worst': max})), None)
