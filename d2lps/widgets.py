"""Things to play with in a notebook; each leaves a picture when saved."""
import ipywidgets
from IPython.display import display
from matplotlib import pyplot as plt

from d2lps.engine import cores
from d2lps.plots import plot_timeline
from d2lps.timeline import step_timeline


def live_picture(draw, controls):
    """Show `controls` above a picture that follows them.

    Args:
        draw: called with the controls' values by name; returns matplotlib
            axes, or an array of them.
        controls: a dict of ipywidgets by name.

    The picture is an output of the cell, not part of a widget, so it is still
    there when the notebook is read without a kernel.
    """
    def figure():
        axes = draw(**{name: c.value for name, c in controls.items()})
        fig = getattr(axes, 'figure', None) or axes.flat[0].figure
        plt.close(fig)  # or the cell shows it a second time when it ends
        return fig

    display(ipywidgets.HBox(list(controls.values())))
    picture = display(figure(), display_id=True)
    for control in controls.values():
        control.observe(lambda change: picture.update(figure()), 'value')


def explore_timeline(num_devices=2, batch_size=256):
    """Choose devices and batch size, see one training step's timeline."""
    most = min(cores() + 2, 8)  # what MXNet can record, see `Timeline`
    live_picture(
        lambda num_devices, batch_size: plot_timeline(
            step_timeline(num_devices, batch_size),
            title=f'{batch_size / num_devices:.0f} examples on each device'),
        dict(num_devices=ipywidgets.IntSlider(
                 num_devices, 1, most, description='devices',
                 continuous_update=False),
             batch_size=ipywidgets.SelectionSlider(
                 options=[16, 32, 64, 128, 256, 512, 1024], value=batch_size,
                 description='batch size', continuous_update=False)))
