"""A chart of four curves: drawn, and written as SVG."""
import numpy as np


class Figures:
    rounds = repeat = 3

    def setup(self):
        try:
            from d2lps import figures
        except ImportError:
            raise NotImplementedError('charts are not Matplotlib\'s') from None
        figures.use_style()
        self.svg = figures.svg

    def time_four_curves_as_svg(self):
        from matplotlib.figure import Figure
        figure = Figure()
        figure.subplots().plot(np.add.outer(np.arange(40), np.arange(4)))
        self.svg(figure)
