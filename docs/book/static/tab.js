// Links that run a notebook here: they begin at the section that one reads,
// and a page that was opened from a file says what they need.
'use strict';
(() => {
  const HELP = 'A page that was opened from a file cannot start Python. ' +
    'In a clone, type "make book-serve". With a copy of the book alone, type ' +
    '"python3 -m http.server --bind 127.0.0.1" in its folder, and open ' +
    'http://127.0.0.1:8000 in the browser.';

  function sectionInView() {
    const above = [...document.querySelectorAll('article section[id]')]
      .filter(one => one.getBoundingClientRect().top <
                     window.innerHeight / 2);
    const last = above.pop();
    // The first one is the whole page.
    if (!last?.parentElement.closest('section')) return '';
    const heading = last.querySelector('h2, h3, h4').cloneNode(true);
    heading.querySelector('.headerlink')?.remove();
    // The address that JupyterLab gives it.
    return `#${heading.textContent.trim().replaceAll(' ', '-')}`;
  }

  document.addEventListener('click', event => {
    const link = event.target.closest('a.tab-start');
    if (!link) return;
    if (location.protocol === 'file:') {
      event.preventDefault();
      if (link.nextElementSibling?.className !== 'tab-help') {
        const help = document.createElement('span');
        help.className = 'tab-help';
        help.setAttribute('role', 'status');
        link.after(help);
        help.textContent = HELP;
      }
    } else if (link.parentElement.className === 'tab-box') {
      link.hash = sectionInView();
    }
  });
})();
