"""What tests look for in an open page of the book."""
from axe_playwright_python.base import AXE_SCRIPT
from chromium import PAINTED

# Contrast depends on colours and size, and it takes axe minutes to judge all
# words of a page: of each kind of words in it, the first is enough. What is
# coloured in code is thousands of elements, and text by then.
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
}'''
AXE = '''async () => {
  const common = {preload: false, resultTypes: ['violations']};
  const found = [
    await axe.run({include: ['[data-kind]']}, {
      ...common, runOnly: ['color-contrast']}),
    await axe.run(document, {
      ...common, rules: {'color-contrast': {enabled: false}}})];
  return found.flatMap(({violations}) => violations);
}'''
# Elements that are cut, or that make all of the page wider than the window.
TOO_WIDE = '''() => {
  const found = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > innerWidth)
    for (const it of document.querySelectorAll('.main *'))
      if (it.getBoundingClientRect().right > width + 1) found.push(it);
  for (const it of document.querySelectorAll('.main *')) {
    const {overflowX: how, clipPath} = getComputedStyle(it);
    if (it.clientWidth && it.scrollWidth > it.clientWidth + 1 &&
        ['hidden', 'clip'].includes(how) && clipPath === 'none')
      found.push(it);  // what is clipped by a path is to be heard, not seen
  }
  return found.map(it => it.outerHTML.slice(0, 100));
}'''


def unfold(tab):
    """Open all that is folded on the page."""
    tab.evaluate('''() => {
      for (const one of document.querySelectorAll('article details'))
        one.open = true;
    }''')


def too_wide(tab):
    tab.evaluate(PAINTED)
    return tab.evaluate(TOO_WIDE)


def axe(tab):
    """Rules that the page breaks, and badly so: a line for each place."""
    tab.evaluate(MARK_KINDS)
    tab.evaluate(AXE_SCRIPT)
    return [f'{rule["id"]}: {node["html"][:200]}'
            for rule in tab.evaluate(AXE)
            if rule['impact'] in ('serious', 'critical')
            for node in rule['nodes']]
