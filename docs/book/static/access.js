// What furo leaves to the mouse. The menus of a narrow window are boxes to
// tick, see book.css: here Enter ticks them, too, and Escape closes a menu.
'use strict';
{
  const skip = document.querySelector('.skip-to-content');
  if (skip) document.body.prepend(skip);  // the first that Tab reaches

  const MENUS = {__navigation: '.sidebar-drawer', __toc: '.toc-drawer'};
  const close = (box) => { box.checked = false; };
  for (const [id, place] of Object.entries(MENUS)) {
    const box = document.getElementById(id);
    const menu = document.querySelector(place);
    if (!box || !menu) continue;
    box.addEventListener('change', () => {
      const links = [...menu.querySelectorAll('a')];
      if (box.checked) links.find((link) => link.offsetParent)?.focus();
    });
    menu.addEventListener('click', (event) => {
      if (event.target.closest('a')) close(box);
    });
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && box.checked) {
        close(box);
        box.focus();
      }
    });
  }
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' &&
        event.target.matches('.sidebar-toggle, .toctree-checkbox')) {
      event.preventDefault();  // or it goes to what has the focus by then
      event.target.click();
    }
  });

  // A box that is wider inside than outside is reached with Tab, so that
  // arrow keys scroll it; it is skipped where there is nothing to scroll.
  const BOXES = 'pre, .math-wrapper, .math, .table-wrapper, .output, ' +
    '.cell_output, .toy-picture, math';
  const showEdge = (box) => box.classList.toggle(
    'more-to-come', box.hasAttribute('tabindex') &&
      box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  const observer = new ResizeObserver((entries) => {
    for (const {target} of entries) {
      const scrolls = target.scrollWidth > target.clientWidth + 1 &&
        getComputedStyle(target).overflowX !== 'visible';
      if (scrolls) target.tabIndex = 0;
      else target.removeAttribute('tabindex');
      showEdge(target);
    }
  });
  const watchAll = () => document.querySelectorAll(BOXES).forEach((box) => {
    observer.observe(box);
    box.addEventListener('scroll', () => showEdge(box), {passive: true});
  });
  addEventListener('DOMContentLoaded', watchAll);  // with what toys add
}
