// Toys whose pictures were drawn while the book was built, see frames.py.
'use strict';

var d2lps = {};

{
  const HERE = document.currentScript.src;
  const SECOND = 1000;  // ms for each step of a toy that plays
  const loads = new Map();  // by file: {promise, resolve}
  let numFields = 0;  // for ids

  // An HTML element; children are elements or texts.
  function html(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function button(label, action) {
    const element = html('button', {type: 'button'}, label);
    element.addEventListener('click', action);
    return element;
  }

  // A control with its label before it, and what it shows behind it.
  function field(label, control, ...more) {
    numFields += 1;
    control.id = `toy-field-${numFields}`;
    return html('div', {class: 'toy-field'},
                html('label', {for: control.id}, label), control, ...more);
  }

  // Each control has the elements to show, and the place of the chosen option
  // among its options, which are texts. It calls `changed`.
  function menu(label, options, place, changed) {
    const select = html('select', {}, ...options.map(
      option => html('option', {}, option)));
    select.selectedIndex = place;
    select.addEventListener('change', changed);
    return {elements: [field(label, select)],
            get place() { return select.selectedIndex; }};
  }

  function checkbox(label, options, place, changed) {
    const box = html('input', {type: 'checkbox'});
    box.checked = place;
    box.addEventListener('change', changed);
    return {elements: [field(label, box)],
            get place() { return Number(box.checked); }};
  }

  function slider(label, options, place, changed) {
    const range = html('input', {type: 'range', min: 0, step: 1});
    const shown = html('span', {'aria-hidden': 'true'});
    function show() {
      shown.textContent = options[range.value];
      range.setAttribute('aria-valuetext', options[range.value]);
    }
    range.addEventListener('input', () => {
      show();
      changed();
    });
    const control = {
      elements: [field(label, range, shown)],
      get place() { return Number(range.value); },
      set place(wanted) {
        range.value = wanted;
        show();
      },
      get last() { return options.length - 1; },
      offer(others) {
        options = others;
        range.max = control.last;  // the browser lowers the value, too
        shown.style.minWidth = `${Math.max(...options.map(
          option => option.length))}ch`;
        show();
      }};
    control.offer(options);
    control.place = place;
    return control;
  }

  // A slider with buttons that go through its steps.
  function steps(label, options, place, changed) {
    const control = slider(label, options, place, changed);
    const play = button('Play', () => timer ? pause() : start());
    let timer = null;

    function go(to) {
      control.place = to;  // a slider keeps to its ends by itself
      changed();
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      play.textContent = 'Play';
    }

    function start() {
      if (control.place === control.last) go(0);
      play.textContent = 'Pause';
      timer = setInterval(() => {
        go(control.place + 1);
        if (control.place === control.last) pause();
      }, SECOND);
    }

    control.elements.push(html(
      'div', {class: 'toy-buttons'},
      button('Back', () => go(control.place - 1)),
      button('Forward', () => go(control.place + 1)), play));
    return control;
  }

  const KINDS = {menu, checkbox, slider, steps};

  // All that is packed, as an object.
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), char => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(
      new DecompressionStream('deflate-raw'));
    return JSON.parse(await new Response(stream).text());
  }

  // The pictures of a file, which calls `pictures`: a page that lies on a
  // disk may run scripts, but not read files.
  function load(file) {
    if (!loads.has(file)) {
      const begun = {};
      begun.promise = new Promise((resolve, reject) => {
        begun.resolve = resolve;
        const script = html('script', {src: new URL(`toys/${file}`, HERE)});
        script.addEventListener('error', reject);
        document.head.append(script);
      });
      loads.set(file, begun);
    }
    return loads.get(file).promise;
  }

  d2lps.pictures = (file, text) => loads.get(file).resolve(unpacked(text));

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

  // A toy; settings: its file, its name, what the names in its pictures begin
  // with on this page, and its controls.
  function start(toy, {file, name, prefix, controls}) {
    const picture = toy.querySelector('.toy-picture');
    const description = toy.querySelector('.toy-alt');
    const made = controls.map(({kind, label, options, value}) => (
      KINDS[kind](label, options, value, refresh)));
    const rounds = made[controls.findIndex(({kind}) => kind === 'steps')];
    let all = null, shown = null;  // the number of the picture on the page

    // The pictures of these settings, one for each step. The last of the
    // other controls counts by one.
    function row() {
      return all.frames[controls.reduce((sum, {options}, k) => (
        made[k] === rounds ? sum : sum * options.length + made[k].place
      ), 0)];
    }

    // As SVG.
    function drawn(number) {
      const text = all.pictures[number].map(k => all.shapes[k]).join('');
      return text.replace(/(\bid="|url\(#|href="#)/g, `$1${prefix}`);
    }

    function refresh() {
      if (!all) return;
      const pictures = row(), last = pictures.length - 1;
      if (last) rounds.offer([...pictures.keys()].map(String));
      const number = pictures[Math.min(rounds?.place ?? 0, last)];
      if (shown === number) return;
      shown = number;
      picture.innerHTML = drawn(number);
      if (description.textContent !== all.alts[number]) {  // or a screen
        description.textContent = all.alts[number];  // reader repeats it
      }
    }

    async function begin() {
      try {
        all = await load(file);
        refresh();
        toy.dataset.ready = 'yes';
      } catch (error) {
        toy.append(html('p', {class: 'toy-note'},
                        'The pictures of this toy cannot be loaded.'));
      }
    }

    toy.setAttribute('role', 'group');
    toy.setAttribute('aria-label', name);
    description.setAttribute('aria-live', 'polite');
    toy.prepend(html('div', {class: 'toy-controls'},
                     ...made.flatMap(({elements}) => elements)));
    whenNear(toy, begin);
  }

  document.addEventListener('DOMContentLoaded', () => {
    for (const toy of document.querySelectorAll('.toy')) {
      start(toy, JSON.parse(toy.dataset.settings));
    }
  });
}
