"""A reader of the book, who notes every request and every script's error."""
from axe_playwright_python.base import AXE_SCRIPT
from chromium import PAINTED

LIMIT = 60_000  # ms to wait for what must come
OURS = 'file:', 'data:', 'blob:'
# Contrast depends on colours and size, and it takes axe minutes to judge all
# words of all pages: of each kind of words in a page, the first is enough.
# What is coloured in code is thousands of elements, and text by then.
MARK_KINDS = '''() => {
  const seen = new Set(), grounds = new Map();
  const ground = it => {
    if (!it) return '';
    if (!grounds.has(it)) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(it);
      grounds.set(it, [ground(it.parentElement), opacity, backgroundImage,
        backgroundColor].filter(one => !['rgba(0, 0, 0, 0)', 'none', '1'
        ].includes(one)).join());
    }
    return grounds.get(it);
  };
  for (const it of document.querySelectorAll('body *')) {
    if (![...it.childNodes].some(one => one.nodeType === Node.TEXT_NODE &&
                                        one.data.trim())) continue;
    if (!it.checkVisibility({visibilityProperty: true})) continue;
    const {color, fontSize, fontWeight} = getComputedStyle(it);
    const kind = [color, fontSize, fontWeight, ground(it)].join('|');
    if (!seen.has(kind)) it.setAttribute('data-kind', '');
    seen.add(kind);
  }
  for (const token of document.querySelectorAll('pre span:not([data-kind])'))
    token.replaceWith(...token.childNodes);
  return seen.size;
}'''
AXE = '''async colours => {
  const common = {preload: false, resultTypes: ['violations']};
  const found = [await axe.run({include: ['[data-kind]']}, {
    ...common, runOnly: ['color-contrast']})];
  if (!colours) found.push(await axe.run(document, {
    ...common, rules: {'color-contrast': {enabled: false}}}));
  return found.flatMap(({violations}) => violations);
}'''
OVERFLOWING = '''() => {
  const sideways = [], cut = [], unreached = [];
  const name = it => it.outerHTML.slice(0, 100);
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > innerWidth)
    for (const it of document.querySelectorAll('.main *'))
      if (it.getBoundingClientRect().right > width + 1)
        sideways.push(name(it));
  for (const it of document.querySelectorAll('.main *')) {
    if (it.scrollWidth <= it.clientWidth + 1 || !it.clientWidth) continue;
    const {overflowX: how, clipPath} = getComputedStyle(it);
    if (clipPath !== 'none') continue;  // to be heard, not seen
    if (['hidden', 'clip'].includes(how)) cut.push(name(it));
    if (!['auto', 'scroll'].includes(how)) continue;
    if (it.querySelector('h1')) sideways.push(name(it));  // all of the page
    else if (it.tabIndex < 0 &&
             !it.querySelector('a, button, input, select, summary'))
      unreached.push(name(it));
  }
  return {sideways: sideways.slice(0, 3), cut, unreached};
}'''


class Reader:
    """Opens pages in one tab; in the end, all that was asked for was ours."""

    def __init__(self, browser, book, **settings):
        self.book, self.asked, self.failed = book, [], []
        self.context = browser.new_context(offline=True, **settings)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(LIMIT)
        self.tab.on('request', lambda one: self.asked.append(one.url))
        self.tab.on('websocket', lambda one: self.asked.append(one.url))
        self.tab.on('pageerror', lambda one: self.failed.append(str(one)))
        self.tab.on('console', lambda said: said.type == 'error' and
                    self.failed.append(said.text))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert not self.failed
            assert self.asked
            assert not [url for url in self.asked if not url.startswith(OURS)]

    def open(self, name, width=None):
        """A page by its name, without .html, and perhaps with a #heading."""
        if width:
            self.tab.set_viewport_size({'width': width, 'height': 900})
        path, _, heading = name.partition('#')
        address = (self.book / f'{path}.html').as_uri()
        self.tab.goto(f'{address}#{heading}' if heading else address)
        return self.tab

    def follow(self, link):
        """Click, and wait until the page is there that the link leads to."""
        address = link.evaluate('it => it.href')
        link.click()
        self.tab.wait_for_url(address)

    def name(self):
        """Of the page that is open: what `open` would take."""
        path, _, heading = self.tab.evaluate('decodeURI(location.href)'
                                             ).partition('#')
        start = f'{self.book.as_uri()}/'
        assert path.startswith(start), path
        name = path[len(start):].partition('?')[0].removesuffix('.html')
        return f'{name}#{heading}' if heading else name

    def unfold(self):
        """Open all that is folded on the page."""
        self.tab.evaluate('''() => {
          for (const one of document.querySelectorAll('article details'))
            one.open = true;
        }''')

    def overflowing(self, width):
        """What is wider than the window, or than its box; empty lists."""
        self.tab.set_viewport_size({'width': width, 'height': 900})
        self.unfold()
        self.tab.evaluate(PAINTED)
        found = self.tab.evaluate(OVERFLOWING)
        return {what: where for what, where in found.items() if where}

    def axe(self, colours=False):
        """Rules that the page breaks, and badly so: a line for each place.

        All rules, or contrast alone, where nothing but the colours differ.
        """
        assert self.tab.evaluate(MARK_KINDS) > 2
        self.tab.evaluate(AXE_SCRIPT)
        return [f'{self.name()}: {rule["id"]}: {node["html"][:200]}'
                for rule in self.tab.evaluate(AXE, colours)
                if rule['impact'] in ('serious', 'critical')
                for node in rule['nodes']]
