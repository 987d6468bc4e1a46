// The picture of who holds what: a row per node, a box per chunk.
'use strict';

{
  const {svg, svgText, drawing} = d2lps;
  const INK = '#222222', WHOLE = '#005a41';  // can be read on white

  function nameOf(node) {
    return typeof node === 'number' ? `device ${node}` : node;
  }

  function rowHeight(rows) {
    return rows < 10 ? 32 : 26;
  }

  // Pixels from the top of a picture to the bottom.
  function holdingsHeight(schedule) {
    const rows = schedule.nodes.length;
    return rows * rowHeight(rows) + 20;
  }

  // Where things are, in pixels, for a picture of this width.
  function measured(schedule, number, sums, width) {
    const rows = schedule.nodes.length, chunks = schedule.weights.length;
    const round = number ? schedule.rounds[number - 1] : [];
    // A place in the gap for each of the arrows of a chunk.
    const rank = round.map(([, , chunk], k) => round.slice(0, k).filter(
      ([, , other]) => other === chunk).length);
    const places = Math.max(0, ...rank) + 2;
    const names = schedule.nodes.map(
      node => width < 480 ? String(node).replace('server ', 's')
        : nameOf(node));
    const longest = Math.max(...names.map(name => name.length));
    const left = 26 + 8 * longest;
    const pitch = Math.min(150, (width - left) / chunks);
    const least = Math.max(4, Math.min(0.28 * pitch, pitch - 15));
    const gap = Math.max(least, Math.min(
      pitch - (sums ? 20 : 16), 0.55 * pitch, 7 * places));
    const high = rowHeight(rows);
    return {rows, chunks, round, names, left, pitch, gap, high,
            box: pitch - gap, small: pitch - gap < 20, space: gap / places,
            x: chunk => left + chunk * pitch,
            y: row => (row + 0.5) * high,
            arrow: k => pitch - gap + gap * (rank[k] + 1) / places};
  }

  function boxAt(m, row, chunk, attributes) {
    return svg('rect', {x: m.x(chunk), y: m.y(row) - 0.35 * m.high,
                        width: m.box, height: 0.7 * m.high, ...attributes});
  }

  // A bar for each contribution.
  function bars(m, row, chunk, counts, faint) {
    const wide = m.box / counts.length;
    return counts.map((count, who) => count ? svg('rect', {
      x: m.x(chunk) + wide * who, y: m.y(row) - 0.35 * m.high, width: wide,
      height: 0.7 * m.high, fill: colorOf(who), stroke: '#ffffff',
      'stroke-width': 0.5, opacity: faint ? 0.2 : 1}) : '');
  }

  function colorOf(who) {
    return d2lps.data.colors[who % d2lps.data.colors.length];
  }

  function tick(m, row, chunk) {
    const x = m.x(chunk) + m.box / 2, y = m.y(row);
    return [
      svg('circle', {cx: x, cy: y, r: Math.min(8.5, m.box / 2),
                     fill: '#ffffff'}),
      svg('path', {d: `M${x - 4} ${y}l3 4l5 -8`, fill: 'none',
                   stroke: WHOLE, 'stroke-width': 2.5})];
  }

  function sum(m, row, chunk, counts) {
    const value = d2lps.sumOf(counts), whole = d2lps.isWhole(counts);
    return value ? svgText(m.x(chunk) + m.box / 2, m.y(row), String(value), {
      'text-anchor': 'middle', 'font-size': m.small ? 11 : 14,
      'font-weight': whole ? 'bold' : 'normal',
      fill: whole ? WHOLE : '#000000'}) : '';
  }

  // From row to row in the gap beside a chunk.
  function arrow(m, [src, dst, chunk, reduce], k) {
    const x = m.x(chunk) + m.arrow(k), from = m.y(src), to = m.y(dst);
    const thick = Math.max(0.5, Math.min(1.5, m.space / 4));
    const half = Math.max(2.5, Math.min(4.5, m.space));
    const neck = to - 2 * half * Math.sign(to - from);
    const points = [[-thick, from], [-thick, neck], [-half, neck], [0, to],
                    [half, neck], [thick, neck], [thick, from]];
    return svg('polygon', {
      points: points.map(([aside, y]) => `${x + aside},${y}`).join(' '),
      fill: reduce ? '#000000' : '#ffffff', stroke: '#000000',
      'stroke-width': Math.min(1, m.space / 3), class: 'toy-arrow'});
  }

  function labels(m, devices) {
    const nodes = m.names.map((name, row) => [
      row < devices ? svg('rect', {
        x: 1, y: m.y(row) - 6, width: 12, height: 12, fill: colorOf(row)})
        : '',
      svgText(18, m.y(row), name, {fill: INK, 'font-size': 13})]);
    const below = m.y(m.rows) - 0.5 * m.high + 9;
    const chunks = Array.from({length: m.chunks}, (_, chunk) => svgText(
      m.x(chunk) + m.box / 2, below, String(chunk),
      {'text-anchor': 'middle', fill: INK, 'font-size': m.small ? 11 : 13}));
    const axis = m.left < 60 ? [] : [svgText(
      1, below, 'chunk', {fill: INK, 'font-size': 13})];
    return [...nodes.flat(), ...chunks, ...axis];
  }

  // In words: what is where, and what was sent in this round.
  function described(schedule, held, round) {
    const rows = held.map((row, node) => {
      const boxes = row.map((counts, chunk) => {
        const who = counts.flatMap((count, k) => count ? [k] : []);
        return `chunk ${chunk} of ${
          d2lps.isWhole(counts) ? 'all' : who.join(' + ') || 'nobody'}`;
      });
      return `${nameOf(schedule.nodes[node])} has ${boxes.join(', ')}`;
    });
    const sends = round.map(([src, dst, chunk, reduce]) =>
      `${nameOf(schedule.nodes[src])} sent chunk ${chunk} to ${
        nameOf(schedule.nodes[dst])}, which ${
        reduce ? 'added' : 'took'} it`);
    return [...sends, ...rows].join('. ') + '.';
  }

  // After round `number`, of a plan for so many devices. sums: numbers
  // instead of ticks, and fainter bars.
  function holdings(schedule, devices, number, sums, width) {
    const m = measured(schedule, number, sums, width);
    const held = d2lps.states(schedule, devices)[number];
    const parts = [];
    held.forEach((row, node) => row.forEach((counts, chunk) => {
      parts.push(boxAt(m, node, chunk, {fill: '#f5f5f5', stroke: '#cccccc'}),
                 ...bars(m, node, chunk, counts, sums));
      if (sums) {
        parts.push(sum(m, node, chunk, counts));
      } else if (d2lps.isWhole(counts)) {
        parts.push(...tick(m, node, chunk));
      }
    }));
    const frames = m.round.map(([, dst, chunk]) => boxAt(
      m, dst, chunk, {fill: 'none', stroke: '#000000', 'stroke-width': 2}));
    return drawing(
      width, holdingsHeight(schedule), `Who holds what after round ${number}`,
      described(schedule, held, m.round), ...parts, ...frames,
      ...m.round.map((send, k) => arrow(m, send, k)), ...labels(m, devices));
  }

  Object.assign(d2lps, {holdings, holdingsHeight});
}
