"""A toy in a notebook's page, moved with the mouse and with keys."""
from labpage import LIMIT
from labserver import until

CONTROLS = ('.noUi-handle, select, button:not(.mod-active), '
            'input[type=checkbox]')
# What is shown in the cell besides controls, as a short text.
PICTURE = '''cell => {
  let sum = 0;
  for (const output of cell.querySelectorAll('.jp-OutputArea-output'))
    if (!output.querySelector('.jupyter-widgets'))
      for (const one of output.querySelectorAll('img, svg'))
        for (const sign of one.src || one.outerHTML)
          sum = (31 * sum + sign.codePointAt(0)) % 1e9;
  return sum;
}'''
IS_LAST = '''it => it.tagName == 'SELECT' ?
    it.selectedIndex == it.options.length - 1 :
    it.ariaValueNow == it.ariaValueMax'''


def toys_in(page):
    """The cells with something to play with."""
    cells = page.locator('.jp-NotebookPanel .jp-CodeCell').filter(
        has=page.locator('.jupyter-widgets'))
    return cells.filter(has_text='explore_').all()


def controls_of(cell):
    """Each control that can be moved, and its kind, in the order of Tab."""
    return [(control, control.evaluate(
        "it => it.closest('.widget-play') ? 'play' : it.type || 'slider'"))
        for control in cell.locator('.jp-OutputArea').locator(CONTROLS).all()
        if control.is_visible() and control.is_enabled()]


def with_mouse(control, kind):
    if kind == 'slider':
        track = control.locator('xpath=ancestor::*[contains(@class, '
                                '"noUi-target")]')
        control.scroll_into_view_if_needed()
        a, b = control.bounding_box(), track.bounding_box()
        mouse = control.page.mouse
        x, y = a['x'] + a['width'] / 2, a['y'] + a['height'] / 2
        left = x < b['x'] + b['width'] / 2
        mouse.move(x, y)
        mouse.down()
        mouse.move(b['x'] + b['width'] * (0.9 if left else 0.1), y, steps=3)
        mouse.up()
    elif kind == 'select-one':
        here = control.evaluate('it => it.selectedIndex')
        control.select_option(index=1 if here == 0 else 0)
    else:
        control.click()


def with_keys(control, kind):
    """It has the keyboard, and keeps it."""
    last = control.evaluate(IS_LAST)
    for key in {'slider': ['ArrowLeft' if last else 'ArrowRight'],
                'select-one': ['Space', 'ArrowUp' if last else 'ArrowDown',
                               'Enter'],
                'checkbox': ['Space'], 'submit': ['Enter']}[kind]:
        control.page.keyboard.press(key)


def tab_to(control, before):
    """From the control before; a number between them can be typed into.

    JupyterLab takes the keyboard once more, a moment after all cells ran.
    """
    def led():
        before.focus()
        for _ in range(3):
            control.page.keyboard.press('Tab')
            if has_focus(control):
                return True
    until(led, 'Tab leads from one control to the next')


def has_focus(control):
    return control.evaluate('it => it === document.activeElement')


def try_toy(lab, cell):
    """The first control of each kind is moved with keys, the second without.

    First come the keys: a click makes JupyterLab take the keyboard for a
    moment. Menus are opened with a click only where there is nothing else.
    """
    cell.scroll_into_view_if_needed()
    controls = controls_of(cell)
    kinds = [*dict.fromkeys(kind for _, kind in controls if kind != 'play')]
    first = {kind: control for control, kind in reversed(controls)}
    second = {kind: [control for control, other in controls if other == kind
                     ][:2][-1] for kind in kinds}
    for kind in kinds:
        control, shown = first[kind], picture(lab, cell)
        k = controls.index((control, kind))
        if k:
            tab_to(control, controls[k - 1][0])
        else:
            control.focus()
        with_keys(control, kind)
        follows(lab, cell, shown, f'a {kind} moved with a key')
        assert has_focus(control) or control.is_disabled(), (
            f'a {kind} has lost the keyboard')
    others = [kind for kind in kinds if kind != 'select-one'] or kinds
    # A button first: a slider may be moved to where it has nothing to do.
    for kind in sorted(others, key='submit'.__ne__):
        shown = picture(lab, cell)
        with_mouse(second[kind], kind)
        follows(lab, cell, shown, f'a {kind} moved with the mouse')


def picture(lab, cell):
    """When nothing moves it any more: a late change is no sign of the next."""
    lab.settle()
    return cell.evaluate(PICTURE)


def follows(lab, cell, shown, what):
    lab.wait(f'([cell, shown]) => ({PICTURE})(cell) != shown',
             f'a picture follows {what}', LIMIT,
             [cell.element_handle(), shown], 50)
