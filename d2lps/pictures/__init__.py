"""Plots, players and widgets, for notebooks and what their checks draw.

    from d2lps import pictures
    pictures.plot_topology(topology.pcie_switch(4))

Charts are Matplotlib's: `plot_*` return `Axes`, or a list of them, which a
reader can change. Only plot_topology and plot_holdings are `Drawing`s. A
name is looked up when it is first used, so that what needs no MXNet does not
load it. In a notebook that has imported this, a small `Schedule` shows as a
drawing.
"""
import sys

from d2lps.lazy_names import lazy
from d2lps.pictures import sketch
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY

__getattr__, __dir__ = lazy(__name__, {
    '.plots': ('plot_comparison', 'plot_timing', 'plot_topology'),
    '.player': ('plot_holdings',),
    '.timeline_plots': ('explore_timeline', 'plot_timeline'),
    '.overlap_plots': ('FORWARD', 'explore_overlap', 'plot_step'),
    '.parameter_servers': ('explore_parameter_servers', 'predicted_seconds',
                           'simulated'),
    '.asynchrony': ('explore_clock', 'plot_accuracy', 'plot_plan',
                    'plot_staleness'),
    '.pipeline_plots': ('plot_pipeline',),
    '.message_plots': ('explore_hang', 'plot_messages'),
    '.exchange_plots': ('plot_exchange',),
    '.planning_plots': ('plot_division', 'plot_launch', 'plot_parts',
                        'plot_published'),
    '.recovery': ('explore_circle',),
    '.training_panel': ('TrainingPanel',),
    '.drawing': ('Drawing', 'Row'),
    '.rows': ('label_parts',),
    '.animation.animation': ('animate',),
    '.drawings.draw_cluster': ('draw_cluster', 'draw_keys',
                               'draw_seven_steps'),
    '.drawings.draw_plans': ('draw_cables', 'draw_sums'),
    '.drawings.draw_roads': ('draw_roads',),
    '.drawings.draw_rounds': ('draw_rounds',),
    '.drawings.draw_gpu_machine': ('draw_gpu_machine',),
    '.drawings.draw_store': ('draw_store',),
    '.drawings.draw_splits': ('draw_collectives', 'draw_layer_partition',
                              'draw_sharded_update', 'draw_splits'),
    '.drawings.draw_steps': ('draw_split_batch', 'draw_training_step'),
    '.toys.explore_devices': ('explore_devices',),
    '.toys.explore_keys': ('explore_keys',),
    '.toys.explore_latency': ('explore_latency',),
    '.toys.explore_pipeline': ('explore_pipeline',),
    '.toys.explore_plans': ('explore_plans',),
    '.toys.explore_rounding': ('explore_rounding',),
    '.meter': ('Meter',),
    '.toys.explore_gpu_machine': ('ask_gpu_machine', 'explore_gpu_machine',
                                  'plot_expected'),
    '.toys.explore_splits': ('explore_splits', 'split_costs'),
    '.toys.explore_steps': ('explore_steps',),
    '.toys.explore_store': ('explore_store',),
    '.toys.explore_sums': ('explore_sums',),
    '.toys.explore_synchronisation': ('explore_synchronisation',)})

if sys.modules.get('IPython'):
    from IPython import get_ipython
    if get_ipython():
        get_ipython().display_formatter.formatters[
            'text/html'].for_type_by_name(
                'd2lps.collectives.schedule', 'Schedule', sketch.html)
