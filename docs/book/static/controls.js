// What the toys are made of: HTML elements, SVG, controls, and their start.
'use strict';

var d2lps = {};

{
  let made = 0;  // numbers for ids

  function newId() {
    made += 1;
    return `toy-${made}`;
  }

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // An HTML element; children are elements or texts.
  function html(name, attributes = {}, ...children) {
    return fill(document.createElement(name), attributes, children);
  }

  // An element of SVG.
  function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS('http://www.w3.org/2000/svg', name),
                attributes, children);
  }

  function svgText(x, y, words, attributes = {}) {
    return svg('text', {x, y, 'dominant-baseline': 'central', ...attributes},
               words);
  }

  // A drawing of this size in pixels. Its title and description say what one
  // sees, to those who do not see it.
  function drawing(width, height, title, description, ...children) {
    const ids = [newId(), newId()];
    return svg(
      'svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
              'aria-labelledby': ids[0], 'aria-describedby': ids[1]},
      svg('title', {id: ids[0]}, title),
      svg('desc', {id: ids[1]}, description), ...children);
  }

  function button(words, action) {
    const made = html('button', {type: 'button'}, words);
    made.addEventListener('click', action);
    return made;
  }

  // A control with its words before it, and what it shows behind it.
  function field(label, control, ...more) {
    control.id = newId();
    return html('div', {class: 'toy-field'},
                html('label', {for: control.id}, label), control, ...more);
  }

  // A menu; options: pairs of words and what they stand for.
  function menu(label, options, value, changed) {
    const select = html('select', {}, ...options.map(
      ([words], number) => html('option', {value: number}, words)));
    select.selectedIndex = options.findIndex(([, option]) => option === value);
    select.addEventListener('change', () => changed());
    return {
      field: field(label, select),
      get value() { return options[select.selectedIndex][1]; }};
  }

  // A slider over words; its value is the place of one of them.
  function scale(label, words, value, changed) {
    const range = html('input', {type: 'range', min: 0, step: 1,
                                 max: words.length - 1});
    const shown = html('span', {'aria-hidden': 'true'});
    shown.style.minWidth = `${Math.max(...words.map(one => one.length))}ch`;
    function show() {
      shown.textContent = words[range.value];
      range.setAttribute('aria-valuetext', words[range.value]);
    }
    range.value = value;
    show();
    range.addEventListener('input', () => {
      show();
      changed();
    });
    return {field: field(label, range, shown),
            get value() { return Number(range.value); }};
  }

  // A box with a tick, or without; words: what these stand for.
  function checkbox(label, words, value, changed) {
    const box = html('input', {type: 'checkbox'});
    box.checked = value;
    box.addEventListener('change', () => changed());
    return {field: field(label, box),
            get value() { return Number(box.checked); }};
  }

  // A slider over a list of numbers, to which `value` is added.
  function slider(label, numbers, value, changed) {
    let options = [...new Set([...numbers, value])].sort((a, b) => a - b);
    const range = html('input', {type: 'range', min: 0, step: 1});
    const shown = html('span', {'aria-hidden': 'true'});
    const control = {
      field: field(label, range, shown),
      get value() { return options[Number(range.value)]; },
      set value(wanted) {
        range.max = options.length - 1;  // first, or it would limit the value
        range.value = options.indexOf(wanted);
        shown.textContent = control.value;
        range.setAttribute('aria-valuetext', control.value);
      },
      // Other numbers; the value stays, or becomes the last of them.
      offer(others) {
        const last = others[others.length - 1];
        const kept = Math.min(control.value, last);
        options = others;
        control.value = kept;
      }};
    control.value = value;
    range.addEventListener('input', () => {
      control.value = options[Number(range.value)];
      changed();
    });
    return control;
  }

  // Call draw() when an element has got another width.
  function whenResized(element, draw) {
    let width = 0;
    new ResizeObserver(() => {
      if (element.clientWidth !== width) {
        width = element.clientWidth;
        draw();
      }
    }).observe(element);
  }

  function plural(count, word, words = `${word}s`) {
    return `${count} ${count === 1 ? word : words}`;
  }

  // Each place for a toy names a function of d2lps, to be called with it.
  function startAll() {
    for (const place of document.querySelectorAll('[data-toy]')) {
      d2lps[place.dataset.toy](place, JSON.parse(place.dataset.settings));
    }
  }

  document.addEventListener('DOMContentLoaded', startAll);
  Object.assign(d2lps, {html, svg, svgText, drawing, button, menu, scale,
                        checkbox, slider, whenResized, plural});
}
