// What is folded opens for who comes to it by a link, or by the search; and
// all of it for paper. A browser's own search opens it by itself, or not.
'use strict';
{
  const openAround = (node) => {
    for (let it = node?.closest('details'); it;
      it = it.parentElement.closest('details')) it.open = true;
  };
  const goTo = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const there = document.getElementById(name);
    if (!there?.closest('details:not([open])')) return;
    openAround(there);
    there.scrollIntoView();
  };
  addEventListener('hashchange', goTo);
  addEventListener('load', goTo);

  // Sphinx marks what was searched for, all at once, a moment later.
  const marked = new MutationObserver(() => {
    const found = document.querySelectorAll('article .highlighted');
    if (found.length) marked.disconnect();
    for (const one of found) openAround(one);
  });
  if (/[?&]highlight=/.test(location.search) ||
      localStorage.getItem('sphinx_highlight_terms'))
    marked.observe(document.querySelector('article'),
                   {childList: true, subtree: true});

  let closed = [];
  addEventListener('beforeprint', () => {
    closed = [...document.querySelectorAll('article details:not([open])')];
    for (const one of closed) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of closed) one.open = false;
  });
}
