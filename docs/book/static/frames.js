// Toys whose pictures were drawn while the book was built, see frames.py.
'use strict';

{
  const {html, menu, scale, checkbox} = d2lps;
  const HERE = document.currentScript.src;
  const KINDS = {menu: (label, words, value, changed) => menu(
                   label, words.map((word, k) => [word, k]), value, changed),
                 slider: scale, checkbox};
  const wanted = new Map();  // by file: {promise, resolve}

  // All that is packed, as an object.
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), one => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(
      new DecompressionStream('deflate-raw'));
    return JSON.parse(await new Response(stream).text());
  }

  // The pictures of a file, which calls `pictures`: a page that lies on a
  // disk may run scripts, but not read files.
  function load(file) {
    if (!wanted.has(file)) {
      const one = {};
      one.promise = new Promise((resolve, reject) => {
        one.resolve = resolve;
        const script = html('script', {src: new URL(`toys/${file}`, HERE)});
        script.addEventListener('error', reject);
        document.head.append(script);
      });
      wanted.set(file, one);
    }
    return wanted.get(file).promise;
  }

  function pictures(file, text) {
    wanted.get(file).resolve(unpacked(text));
  }

  // Call once, when an element comes near the window.
  function whenNear(element, act) {
    const observer = new IntersectionObserver(([entry]) => {
      if (entry.isIntersecting) {
        observer.disconnect();
        act();
      }
    }, {rootMargin: '1000px'});
    observer.observe(element);
  }

  // Pixels from the top of a picture to the bottom, as toys.css shows it.
  function shownHeight([width, height, least], room) {
    return height * Math.min(1, Math.max(room, least) / width);
  }

  // A toy; settings: its file, what the names in its pictures begin with on
  // this page, the sizes for which it needs room, and its controls.
  function frames(place, {file, name, prefix, room, controls}) {
    const picture = place.querySelector('.toy-picture');
    const says = place.querySelector('.toy-words');
    const moved = controls.map(({kind, label, words, value}) => KINDS[kind](
      label, words, value, refresh));
    let all = null, shown = null;  // the number of the one that is shown

    // Of the picture for these settings; the last control counts by one.
    function number() {
      return controls.reduce((sum, {words}, k) => (
        sum * words.length + Number(moved[k].value)), 0);
    }

    // As SVG.
    function drawn(which) {
      const text = all.pictures[which].map(k => all.shapes[k]).join('');
      return text.replace(/(\bid="|url\(#|href="#)/g, `$1${prefix}`);
    }

    function refresh() {
      if (all && shown !== number()) {
        shown = number();
        const which = all.frames[shown];
        picture.innerHTML = drawn(which);
        if (says.textContent !== all.words[which]) {  // or it is read aloud
          says.textContent = all.words[which];
        }
      }
    }

    async function start() {
      try {
        all = await load(file);
        refresh();
        place.dataset.ready = 'yes';
      } catch (error) {
        place.append(html('p', {class: 'toy-note'},
                          'The pictures of this toy cannot be loaded.'));
      }
    }

    place.setAttribute('role', 'group');
    place.setAttribute('aria-label', name);
    says.setAttribute('aria-live', 'polite');
    place.prepend(html('div', {class: 'toy-controls'},
                       ...moved.map(one => one.field)));
    d2lps.whenResized(picture, () => {
      picture.style.minHeight = `${Math.ceil(Math.max(0, ...room.map(
        size => shownHeight(size, picture.clientWidth))))}px`;
    });
    whenNear(place, start);
  }

  Object.assign(d2lps, {frames, pictures});
}
