"""How the notebooks become the pages of a book; see `make book`.

Sphinx reads this. Its sources are the whole project, so that links between
notebooks and docs/ are what they are there. No kernel runs: the pages show
what the committed notebooks show.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'setup'),
                str(ROOT / 'docs' / 'book' / 'extensions')]

from sources import sources  # noqa: E402

project = 'd2lps'
extensions = ['myst_nb', 'access', 'ask', 'folding', 'formulas', 'front',
              'headings', 'pages', 'front_race', 'sources', 'stills',
              'narrow_tables', 'tab', 'toys']
root_doc = 'docs/book/index'
include_patterns = sources()
nb_execution_mode = 'off'
# Controls need a kernel; the picture under them is shown without one.
nb_mime_priority_overrides = [
    ('html', 'application/vnd.jupyter.widget-view+json', None)]
myst_enable_extensions = ['amsmath', 'attrs_block', 'dollarmath']
myst_heading_anchors = 4
myst_heading_slug_func = 'headings.slug'
html_math_renderer = 'mathml'
html_theme = 'furo'
html_static_path = ['static', '../pictures', '../../notebooks/pictures']
html_css_files = ['book.css', 'pictures.css', 'paper.css']
html_title = 'd2lps'
html_logo = html_favicon = 'static/ring.svg'
html_theme_options = {
    'light_css_variables': {'color-brand-primary': '#00528a',
                            'color-brand-content': '#00528a',
                            'color-brand-visited': '#6b3d8f',
                            'picture-filter': 'none'},
    'dark_css_variables': {'color-brand-primary': '#7cc0f0',
                           'color-brand-content': '#7cc0f0',
                           'color-brand-visited': '#c9a7e8',
                           'picture-filter':
                               'invert(0.925) hue-rotate(180deg)'}}
pygments_style = 'a11y-high-contrast-light'
pygments_dark_style = 'a11y-high-contrast-dark'
html_extra_path = ['extra']  # index.html, which leads to the first page
html_copy_source = False
html_show_copyright = False
html_use_index = False  # the search finds more
html_show_search_summary = False  # a page in a file may not read others
language = 'en'
