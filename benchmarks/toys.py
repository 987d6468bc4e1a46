"""How soon a toy's picture follows a key, in JupyterLab: python toys.py

Each toy runs in a notebook of its own cell, in Chromium, as a reader sees it.
A key moves its first slider (of what has none, a button is clicked), from one
value to the next and back. Milliseconds from the key to the frame that shows
the new picture: the median of some keys, and the slowest one. The column
"draw" says what Python needs of it, in the median of as many pictures.
"""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from d2lps import pictures
from d2lps.pictures.controls import values_of
from d2lps.pictures.widgets import caught

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'browser'))

TOYS = sorted(name.removeprefix('explore_') for name in dir(pictures)
              if name.startswith('explore_'))
CODE = '''from d2lps import pictures
pictures.explore_{}()'''
# From what a reader does until the frame with another picture is painted.
WATCH = '''cell => {
  const begin = new Promise(done => {
    for (const kind of ['keydown', 'pointerdown'])
      document.addEventListener(kind, () => done(performance.now()),
                                {capture: true, once: true});
  });
  const pictures = () => [...cell.querySelectorAll(
    '.jp-OutputArea-output:not(:has(.jupyter-widgets)) img')];
  const seen = () => pictures().map(one => one.src).join();
  const before = seen();
  window.followed = new Promise(done => {
    const watch = new MutationObserver(async () => {
      if (!pictures().length || seen() == before) return;
      watch.disconnect();
      await Promise.all(pictures().map(one => one.decode()));
      requestAnimationFrame(() => {
        const painted = new MessageChannel();  // comes after the frame
        painted.port1.onmessage = async () =>
          done(performance.now() - await begin);
        painted.port2.postMessage(0);
      });
    });
    watch.observe(cell, {subtree: true, childList: true, attributes: true});
  });
}'''


def measure(lab, toy, times, folder):
    """Milliseconds of each key."""
    name = f'{toy}.ipynb'
    lab.write(name, [CODE.format(toy)])
    with lab.notebook(name, folder) as page:
        lab.run_all()
        cell = page.locator('.jp-NotebookPanel .jp-CodeCell').first
        cell.locator('.jp-OutputArea-output img').first.wait_for()
        handles = cell.locator('.noUi-handle')
        taken = []
        for k in range(times):
            lab.settle()
            cell.evaluate(WATCH)
            if handles.count():
                handles.first.focus()
                last = handles.first.evaluate(
                    'it => it.ariaValueNow == it.ariaValueMax')
                page.keyboard.press('ArrowLeft' if last or k % 2 else
                                    'ArrowRight')
            else:
                buttons = cell.locator('.jupyter-button')
                buttons.nth(2 * (k % 2)).click()
            taken.append(page.evaluate('window.followed'))
    return taken


def drawing(toy, times):
    """Milliseconds of Python for each of some pictures; None of a store."""
    with caught() as toys:
        if toy != 'store':
            getattr(pictures, f'explore_{toy}')()
    if not toys:
        return None
    values, taken = values_of(toys[0].controls), []
    name, control = next((name, one) for name, one in
                         toys[0].controls.items() if one.kind != 'menu')
    options = [value for _, value in control.options]
    for k in range(times):
        values[name] = options[k % 2]
        begin = time.perf_counter()
        toys[0].draw(**values)._repr_html_()
        taken.append(1e3 * (time.perf_counter() - begin))
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('toys', nargs='*', default=TOYS,
                        help='such as plans; without any, all')
    parser.add_argument('--times', type=int, default=11, help='keys for each')
    options = parser.parse_args()
    os.environ.setdefault('D2LPS_CHROMIUM', next(filter(None, map(
        shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), ''))
    from chromium import CHROMIUM, FLAGS
    from labpage import Lab
    from labserver import served
    from playwright.sync_api import sync_playwright
    print(f'{"toy":<20}{"median":>8}{"slowest":>9}{"draw":>7}   (ms)')
    with (tempfile.TemporaryDirectory() as folder,
          served(Path(folder)) as server, sync_playwright() as playwright):
        browser = playwright.chromium.launch(executable_path=CHROMIUM,
                                             args=FLAGS)
        lab = Lab(browser, server)
        for toy in options.toys:
            taken = measure(lab, toy, options.times, Path(folder))
            drawn = drawing(toy, options.times)
            print(f'{toy:<20}{statistics.median(taken):8.0f}'
                  f'{max(taken):9.0f}'
                  f'{statistics.median(drawn) if drawn else 0:7.1f}',
                  flush=True)
        browser.close()


if __name__ == '__main__':
    main()
