"""Controls as widgets of Jupyter, above a picture that follows them."""
import traceback
from collections.abc import Callable, Iterable
from html import escape
from threading import Lock

import ipywidgets
from IPython.display import DisplayHandle, display

from d2lps.pictures.controls import (NOT_RUN, Control, clamp_steps,
                                     values_of)
from d2lps.pictures.drawing import Picture

NARROW = {'description_width': 'initial'}  # as wide as the words


class Board(ipywidgets.Box):
    """Widgets side by side, in more than one row where there is no room.

    A notebook that is read without a kernel says how to get them.
    """

    def __init__(self, widgets: Iterable[ipywidgets.Widget]) -> None:
        super().__init__([*widgets], layout={
            'flex_flow': 'row wrap', 'align_items': 'center',
            'grid_gap': '0 16px'})

    def _repr_mimebundle_(self, **how):
        bundle = super()._repr_mimebundle_(**how)
        return bundle and {**bundle, 'text/plain': NOT_RUN}


def show(widgets: Iterable[ipywidgets.Widget], picture: Picture
        ) -> DisplayHandle:
    """Display widgets, and below them a picture, which can be updated."""
    display(Board(widgets))
    return display(picture, display_id=True)


class Problem:
    """An error with its traceback, in the place of a picture."""

    def __init__(self, error: Exception) -> None:
        self.lines = ''.join(traceback.format_exception(error)).rstrip()

    def __repr__(self) -> str:
        return self.lines

    def _repr_html_(self):
        return ('<pre style="color: #B00020; white-space: pre-wrap">'
                f'{escape(self.lines)}</pre>')


def widget_of(control: Control) -> ipywidgets.Widget:
    """The widget that has the value of a `Control`."""
    same = {'value': control.value, 'description': control.label,
            'style': NARROW}
    if control.kind == 'checkbox':
        return ipywidgets.Checkbox(indent=False, **same,
                                   layout={'width': 'auto'})
    if control.kind == 'menu':
        return ipywidgets.Dropdown(options=control.options, **same,
                                   layout={'width': 'max-content'})
    if control.kind == 'steps':
        return ipywidgets.IntSlider(max=len(control.options) - 1, **same)
    return ipywidgets.SelectionSlider(options=control.options, **same)


def step_buttons(slider: ipywidgets.IntSlider) -> ipywidgets.Widget:
    """Back, forward and play for a slider, in a row."""
    play = ipywidgets.Play(value=slider.value, min=slider.min,
                           max=slider.max, interval=1000)
    buttons = [ipywidgets.Button(icon=icon, tooltip=tooltip,
                                 layout={'width': '40px'})
               for icon, tooltip in (('step-backward', 'back'),
                                   ('step-forward', 'forward'))]
    for button, step in zip(buttons, (-1, 1)):
        button.on_click(lambda _, step=step: setattr(
            slider, 'value', slider.value + step))
    for trait in 'max', 'value':
        ipywidgets.link((play, trait), (slider, trait))
    return ipywidgets.HBox([play, *buttons])


class LivePicture:
    """The picture of some controls, drawn anew when one of them moves.

    If it moves on while a picture is drawn, the next one is of where it is
    by then. What goes wrong is shown in the picture's place, since nobody
    sees the kernel's own words.
    """

    def __init__(self, draw: Callable[..., Picture],
                 controls: dict[str, Control]) -> None:
        self._draw, self._controls = draw, controls
        self._moved, self._drawing = False, Lock()
        self.widgets = {name: widget_of(control)
                        for name, control in controls.items()}
        first = self._picture()
        self._shown = show(self._in_order(), first)
        for widget in self.widgets.values():
            widget.observe(self._follow, 'value')

    def _in_order(self):
        for name, widget in self.widgets.items():
            yield widget
            if self._controls[name].kind == 'steps':
                yield step_buttons(widget)

    def _read(self):
        for name, control in self._controls.items():
            control.value = self.widgets[name].value
        clamp_steps(self._controls)

    def _picture(self):
        self._read()
        for name, control in self._controls.items():
            if control.most:  # which may take the value down to it
                self.widgets[name].max = len(control.options) - 1
        self._moved = False  # what moves from here on is drawn later
        self._read()
        return self._draw(**values_of(self._controls))

    def _follow(self, change):
        self._moved = True
        while self._moved and self._drawing.acquire(blocking=False):
            self._moved = False
            try:
                self._shown.update(self._newest())
            finally:
                self._drawing.release()

    def _newest(self):
        try:
            return self._picture()
        except Exception as error:
            return Problem(error)
