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

  // Its first moment; nothing yet, where its file cannot be read.
  const first = (source, {width, height}) => source.startsWith(BASE64) ?
    changed(source, PAUSED) : BASE64 + btoa(
      '<svg xmlns="http://www.w3.org/2000/svg" ' +
      `viewBox="0 0 ${width || 1} ${height || 1}"/>`);

  const play = (picture) => {
    const source = sources.get(picture);
    plays += 1;
    picture.src = source.startsWith(BASE64) ?
      changed(source, `<!-- ${plays} -->`) : `${source}?${plays}`;
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

  const hold = (picture) => {
    sources.set(picture, picture.getAttribute('src'));
    picture.src = first(sources.get(picture), picture);
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
    const whole = picture.closest('picture') ?? picture;
    const paper = whole.nextElementSibling;
    (paper?.matches('.on-paper') ? paper : whole).after(again);
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
