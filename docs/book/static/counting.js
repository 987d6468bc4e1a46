// Who holds what: a plan is followed by counting contributions.
'use strict';

{
  // Before round 1 and after every round: held[node][chunk][device] says how
  // many times the contribution of that device is in that chunk there.
  function states(schedule, devices) {
    const all = [start(schedule, devices)];
    for (const round of schedule.rounds) {
      all.push(after(round, all[all.length - 1]));
    }
    return all;
  }

  // Every device has a contribution of its own; helpers have nothing.
  function start(schedule, devices) {
    return schedule.nodes.map((_, node) => schedule.weights.map(
      () => Array.from({length: devices}, (_, who) => Number(who === node))));
  }

  // Every send of a round reads what was there before the round.
  function after(round, before) {
    const held = before.map(row => row.map(counts => [...counts]));
    for (const [, dst, chunk, reduce] of round) {
      if (!reduce) {
        held[dst][chunk].fill(0);
      }
    }
    for (const [src, dst, chunk] of round) {
      before[src][chunk].forEach((count, who) => {
        held[dst][chunk][who] += count;
      });
    }
    return held;
  }

  // With 1 from device 0, 2 from device 1 and so on.
  function sumOf(counts) {
    return counts.reduce((sum, count, who) => sum + count * (who + 1), 0);
  }

  function isWhole(counts) {
    return counts.every(count => count === 1);
  }

  Object.assign(d2lps, {states, sumOf, isWhole});
}
