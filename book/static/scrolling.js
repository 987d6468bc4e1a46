// A box that is wider inside than outside is reached with Tab, so that arrow
// keys scroll it; and it is skipped where there is nothing to scroll.
'use strict';
{
  const BOXES = 'pre, .math-wrapper, .math, .table-wrapper, .output';
  const reach = (entries) => entries.forEach(({target}) => {
    const scrolls = target.scrollWidth > target.clientWidth + 1 &&
      getComputedStyle(target).overflowX !== 'visible';
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute('tabindex');
  });
  const observer = new ResizeObserver(reach);
  document.querySelectorAll(BOXES).forEach((box) => observer.observe(box));
}
