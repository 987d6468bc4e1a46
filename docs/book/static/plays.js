// Pictures that play begin when half of them is in view, and play again when
// a reader asks for it. Without this script they play when they are painted;
// for who wants no motion, they show their end by themselves.
'use strict';
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
  const BASE64 = 'data:image/svg+xml;base64,';
  const PAUSED = '<style>*{animation-play-state:paused!important}</style>';
  const sources = new Map();  // what each picture plays
  const begun = new Set();
  let plays = Date.now();  // as a browser keeps pictures, and their clocks

  // The same picture, with more in it.
  const changed = (source, more) => BASE64 + btoa(
    atob(source.slice(BASE64.length)).replace('</svg>', `${more}</svg>`));

  const play = (picture) => {
    plays += 1;
    picture.src = changed(sources.get(picture), `<!-- ${plays} -->`);
    picture.dataset.plays = Number(picture.dataset.plays || 0) + 1;
  };

  const seen = new IntersectionObserver((entries) => {
    for (const {target, intersectionRect, rootBounds} of entries) {
      const {width, height} = target.getBoundingClientRect();
      const most = Math.min(height, rootBounds?.height ?? innerHeight);
      const half = intersectionRect.height >= most / 2 &&
        intersectionRect.width >= Math.min(width, innerWidth) / 3;
      if (!half || !height || begun.has(target)) continue;
      begun.add(target);
      seen.unobserve(target);
      play(target);
    }
  }, {threshold: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1]});

  // Of several pictures side by side: the same below each other.
  const stacked = (source) => {
    const svg = atob(source.slice(BASE64.length));
    const [, wide, high] = /data-size="(\S+) (\S+)"/.exec(svg) ?? [];
    if (!wide) return source;
    return BASE64 + btoa(svg.replace('media="not all"', '').replace(
      /viewBox="[^"]+" width="\S+" height="\S+"/,
      `viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}"`));
  };

  const narrow = matchMedia('(max-width: 40em)').matches;
  const hold = (picture) => {
    const source = picture.getAttribute('src');
    sources.set(picture, narrow ? stacked(source) : source);
    if (sources.get(picture) !== source) picture.classList.remove('wide');
    picture.src = changed(sources.get(picture), PAUSED);  // its first moment
  };

  const addButton = (picture) => {
    const again = document.createElement('button');
    again.type = 'button';
    again.className = 'play-again';
    again.textContent = 'Play again';
    again.addEventListener('click', () => {
      begun.add(picture);
      play(picture);
    });
    picture.nextElementSibling.after(again);  // behind what is for paper
  };

  // Each is held as it comes, before it is painted.
  const holdAll = () => {
    for (const picture of document.querySelectorAll('img.plays'))
      if (!sources.has(picture)) hold(picture);
  };
  const coming = new MutationObserver(holdAll);
  coming.observe(document, {childList: true, subtree: true});
  document.addEventListener('DOMContentLoaded', () => {
    coming.disconnect();
    holdAll();
    for (const picture of sources.keys()) {
      addButton(picture);
      seen.observe(picture);
    }
  });
}
