// How long a plan takes on links: a send is a flow of bytes. The same rules
// as in d2lps/collectives/simulate.py and flows.py, written a second time.
'use strict';

{
  const A_BIT_MORE = 1 + 1e-9;  // rounding must not make two events of one

  // The numbers of the links from one place to all others. A way has as few
  // links as possible; of two such ways, the one that was found first.
  function routesFrom(start, links) {
    const routes = {[start]: []}, found = [start];
    for (const here of found) {  // it grows while we go through it
      links.forEach(([src, dst], number) => {
        if (src === here && !(dst in routes)) {
          routes[dst] = [...routes[here], number];
          found.push(dst);
        }
      });
    }
    return routes;
  }

  // Max-min fair rates: all grow together until a link is full. Its flows
  // stay at that rate, and the others go on growing.
  function share(flows, capacity) {
    const free = [...capacity];
    let growing = flows;
    while (growing.length) {
      const users = capacity.map(() => 0);
      for (const flow of growing) {
        flow.route.forEach(link => { users[link] += 1; });
      }
      const levels = free.map(
        (left, link) => users[link] ? left / users[link] : Infinity);
      const lowest = Math.min(...levels);
      const isFull = link => levels[link] <= lowest * A_BIT_MORE;
      const stopped = growing.filter(flow => flow.route.some(isFull));
      growing = growing.filter(flow => !flow.route.some(isFull));
      for (const flow of stopped) {
        flow.rate = lowest;
        flow.route.forEach(link => { free[link] -= lowest; });
      }
    }
  }

  // When the last of some flows ends. Each waits for its latency, then its
  // bytes flow; whenever one begins or ends, all share the links anew.
  function lastEnd(flows, capacity) {
    let now = 0, running = [], waiting = flows;
    while (running.length || waiting.length) {
      share(running, capacity);
      for (const flow of running) {
        flow.end = now + flow.left / flow.rate;
      }
      const next = Math.min(...running.map(flow => flow.end),
                            ...waiting.map(flow => flow.latency));
      for (const flow of running) {
        flow.left -= flow.rate * (next - now);
      }
      now = next;
      running = [
        ...running.filter(flow => flow.end > now * A_BIT_MORE),
        ...waiting.filter(flow => flow.latency <= now * A_BIT_MORE)];
      waiting = waiting.filter(flow => flow.latency > now * A_BIT_MORE);
    }
    return now;
  }

  // Can all nodes of the plan be found on these links?
  function fits(schedule, topology) {
    return schedule.nodes.every(
      node => placeOf(node, topology) < topology.nodes);
  }

  function placeOf(node, topology) {
    const place = topology.vertices.indexOf(node);
    return place < 0 ? Infinity : place;
  }

  // bytes: of each device's array. bandwidth: bytes/s of those links whose
  // own is not given. latency: seconds per link. A round starts when the one
  // before has ended. Returns the seconds until the last byte arrives, and
  // how much of what it can carry each link did carry, from 0 to 1.
  function timed(schedule, topology, bytes, bandwidth, latency) {
    const capacity = topology.bandwidth.map(own => own || bandwidth);
    const carried = capacity.map(() => 0);
    const whole = schedule.weights.reduce((sum, weight) => sum + weight, 0);
    const places = schedule.nodes.map(node => placeOf(node, topology));
    const routes = {};
    let seconds = 0;
    for (const round of schedule.rounds) {
      const flows = round.map(([src, dst, chunk]) => {
        const start = places[src];
        routes[start] = routes[start] || routesFrom(start, topology.links);
        const route = routes[start][places[dst]];
        const size = bytes * schedule.weights[chunk] / whole;
        route.forEach(link => { carried[link] += size; });
        return {route, left: size, latency: latency * route.length};
      });
      seconds += lastEnd(flows, capacity);
    }
    const busy = carried.map(
      (sum, link) => sum / capacity[link] / seconds);
    return {schedule, seconds, busy};
  }

  Object.assign(d2lps, {fits, timed});
}
