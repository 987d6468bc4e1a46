// The synchronisation explorer: choose links and data, see the times.
'use strict';

{
  const {html, svg, svgText, drawing, menu, slider} = d2lps;
  const INK = '#222222';
  const BEST = '#009E73', OTHER = '#56B4E9';  // as in style.py

  // Of a time in ms, the three digits that are shown. Times in which these
  // are the same are equal. (First, errors of computing are rounded away.)
  function figure({seconds}) {
    return Number((Math.round(1e12 * seconds) / 1e9).toPrecision(3));
  }

  function ms(timing) {
    return figure(timing).toLocaleString('en', {maximumSignificantDigits: 3});
  }

  function extreme(timings, better) {
    return timings.reduce((best, timing) => better(
      figure(timing), figure(best)) ? timing : best);
  }

  const WHICH = {best: timings => extreme(timings, (a, b) => a < b),
                 worst: timings => extreme(timings, (a, b) => a > b)};

  // A bar for each strategy, its name above it; the best ones are marked.
  function bars(timings, width) {
    const high = 40, best = figure(WHICH.best(timings));
    const most = WHICH.worst(timings).seconds;
    const rows = timings.map((timing, row) => {
      const good = figure(timing) === best, y = row * high;
      const wide = Math.max(1, (width - 110) * timing.seconds / most);
      return [
        svgText(4, y + 10, timing.schedule.name,
                {fill: INK, 'font-size': 13}),
        svg('rect', {x: 4, y: y + 19, width: wide, height: 15,
                     fill: good ? BEST : OTHER}),
        svgText(wide + 9, y + 27, ms(timing) + (good ? ' best' : ''),
                {fill: INK, 'font-size': 13,
                 'font-weight': good ? 'bold' : 'normal'})];
    });
    return drawing(
      width, timings.length * high + 20, 'Time of each strategy, in ms',
      timings.map(timing => `${timing.schedule.name}: ${ms(timing)}`
                  ).join('. ') + '.',
      ...rows.flat(), svgText(4, timings.length * high + 9, 'time / ms',
                              {fill: INK, 'font-size': 13}));
  }

  // A mixture of three colours, for a share from 0 to 1.
  function loadColor(share) {
    const [idle, half, full] = d2lps.data.idleToBusy;
    const [low, high] = share < 0.5 ? [idle, half] : [half, full];
    const part = share < 0.5 ? 2 * share : 2 * share - 1;
    const mixed = [1, 3, 5].map(k => {
      const [a, b] = [low, high].map(c => parseInt(c.slice(k, k + 2), 16));
      return Math.round(a + (b - a) * Math.min(1, part));
    });
    return `rgb(${mixed.join(', ')})`;
  }

  // A line and a triangle for one direction of a cable, on its right side.
  function link(from, to, size, thick, color) {
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
    const along = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const aside = [-along[1], along[0]];
    const at = (start, far, right) => [0, 1].map(
      k => start[k] + far * along[k] + right * aside[k]);
    const [a, b] = [at(from, 0, 0.013 * size), at(to, 0, 0.013 * size)];
    const middle = at(from, 0.6 * length, 0.013 * size);
    const head = [at(middle, 0.035 * size, 0), at(middle, 0, 0.021 * size),
                  at(middle, 0, -0.021 * size)];
    return [
      svg('line', {x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: color,
                   'stroke-width': thick}),
      svg('polygon', {points: head.join(' '), fill: color})];
  }

  function label(words, [x, y], [least, most], isSwitch) {
    const wide = Math.max(least, Math.min(10 + 7 * words.length, most));
    return [
      svg('rect', {x: x - wide / 2, y: y - 10, width: wide, height: 20, rx: 5,
                   fill: isSwitch ? '#e5e5e5' : '#ffffff', stroke: '#333333'}),
      svgText(x, y, words, {'text-anchor': 'middle', fill: INK,
                            'font-size': 12})];
  }

  // Nodes and switches; links are as wide as fast, and dark where busy.
  function network(topology, timing, bandwidth, width) {
    const size = Math.min(width, 380);
    const unit = 0.42 * size;
    const point = ([x, y]) => [width / 2 + x * unit, size / 2 - y * unit];
    const speeds = topology.bandwidth.map(own => own || bandwidth);
    const fastest = Math.max(...speeds);
    const links = topology.links.map((_, k) => link(
      ...topology.ends[k].map(point), size, 1.3 + 3.2 * speeds[k] / fastest,
      loadColor(timing.busy[k])));
    const names = topology.vertices.map((vertex, k) => label(
      String(vertex), point(topology.at[k]),
      topology.wide[k].map(wide => wide * unit), k >= topology.nodes));
    const frames = topology.frames.map(([corner, [wide, high], name]) => {
      const [x, y] = point(corner);
      return [
        svg('rect', {x, y, width: wide * unit, height: high * unit, rx: 3,
                     fill: '#f4f4f4', stroke: '#555555',
                     'stroke-dasharray': '5 4'}),
        svgText(x + 6, y + 11, name, {fill: INK, 'font-size': 12})];
    });
    return drawing(
      width, size, `Links, busy ones dark: ${timing.schedule.name}`,
      topology.links.map(([src, dst], k) => `${topology.vertices[src]} to ${
        topology.vertices[dst]}: ${
        Math.round(100 * timing.busy[k])} % of what it can carry`
        ).join('. ') + '.', ...frames.flat(), ...links.flat(),
      ...names.flat());
  }

  // What pictures.explore_synchronisation is in a notebook.
  function explore_synchronisation(place, settings) {
    const {plans, timed, links, choices} = d2lps.data;
    const names = settings.plans || timed;
    const joined = menu('links', Object.keys(links).map(name => [name, name]),
                        settings.links, refresh);
    const number = (name, value) => slider(name, choices[name], value,
                                           refresh);
    const devices = number('devices', settings.num_devices);
    const megabytes = number('MB', settings.megabytes);
    const bandwidth = number('GB/s', settings.bandwidth);
    const latency = number('µs per cable', settings.latency);
    const which = menu('links of the', [['best', 'best'], ['worst', 'worst']],
                       'best', refresh);
    const left = html('div', {class: 'toy-picture toy-bars'});
    const right = html('div', {class: 'toy-picture toy-network'});
    const title = html('p', {class: 'toy-title'});
    const says = html('p', {class: 'toy-says', 'aria-live': 'polite'});
    let topology, timings;

    /** A plan with its time, and how many others take as long. */
    function named(timing) {
      const time = ms(timing);
      const equal = timings.filter(one => ms(one) === time).length;
      return `${timing.schedule.name}${
        equal > 1 ? ` and ${equal - 1} more` : ''}, ${time} ms`;
    }

    function comparison() {
      const [best, worst] = [WHICH.best(timings), WHICH.worst(timings)];
      return best === worst ? `All take ${ms(best)} ms.`
        : `Best: ${named(best)}. Worst: ${named(worst)}.`;
    }

    function refresh() {
      topology = links[joined.value][devices.value];
      timings = names.map(name => plans[name].schedules[devices.value])
        .filter(schedule => d2lps.fits(schedule, topology))
        .map(schedule => d2lps.timed(
          schedule, topology, megabytes.value * 1e6, bandwidth.value * 1e9,
          latency.value / 1e6));
      says.textContent = `${devices.value} devices, ${joined.value}. ${
        comparison()}`;
      draw();
    }

    function draw() {
      if (!left.clientWidth || !right.clientWidth) {
        return;  // the page is not laid out yet
      }
      const shown = WHICH[which.value](timings);
      left.replaceChildren(bars(timings, left.clientWidth));
      title.textContent = `${shown.schedule.name}, busy links stand out`;
      right.replaceChildren(network(topology, shown, bandwidth.value * 1e9,
                                    right.clientWidth));
    }

    place.setAttribute('role', 'group');
    place.setAttribute('aria-label', 'Synchronisation explorer');
    place.append(
      html('div', {class: 'toy-controls'}, joined.field, devices.field,
           megabytes.field, bandwidth.field, latency.field, which.field),
      says, html('div', {class: 'toy-pictures'}, left,
                 html('div', {class: 'toy-side'}, title, right)));
    refresh();
    d2lps.whenResized(left, draw);
    d2lps.whenResized(right, draw);
  }

  Object.assign(d2lps, {explore_synchronisation});
}
