// The step player: choose a plan, and go through its rounds.
'use strict';

{
  const {html, button, menu, slider, plural} = d2lps;
  const SECOND = 1000;  // ms per round while it plays

  const SIGNS = 'A row is a device, a box is a chunk, a colour is the ' +
    'contribution of one device. Full head: added to what was there. ' +
    'Hollow head: replaces it. Thick frame: changed in this round. ';

  // What the messages of a round do.
  function messages(round) {
    const added = round.filter(([, , , reduce]) => reduce).length;
    const replacing = round.length - added;
    return [
      added && `${plural(added, 'message')} added to what was there`,
      replacing && `${plural(replacing, 'message')} replacing what was there`
    ].filter(Boolean).join(', ');
  }

  // What happens in a round, and what there is after it.
  function sentence(words, schedule, devices, number) {
    const rounds = schedule.rounds.length;
    const boxes = d2lps.states(schedule, devices)[number].flat();
    const whole = boxes.filter(d2lps.isWhole).length;
    const when = number
      ? `after round ${number} of ${rounds}: ${
        messages(schedule.rounds[number - 1])}`
      : `before round 1 of ${rounds}`;
    return `${words}, ${devices} devices, ${when}. ${whole} of ${
      plural(boxes.length, 'box', 'boxes')} ${
      whole === 1 ? 'holds' : 'hold'} the whole sum.`;
  }

  // What pictures.explore_plans is in a notebook; settings: its arguments.
  function explore_plans(place, settings) {
    const {plans, stepped} = d2lps.data;
    const names = [...new Set([...(settings.plans || Object.keys(plans)),
                               settings.plan])];
    const plan = menu('plan', names.map(name => [plans[name].words, name]),
                      settings.plan, refresh);
    const devices = slider('devices', stepped, settings.num_devices, refresh);
    const round = slider('round', [0], 0, refresh);
    const boxes = menu('boxes', [['bars for who is in', false],
                                 ['sums of 1, 2, 3, …', true]],
                       settings.sums, refresh);
    const back = button('Back', () => step(-1));
    const forward = button('Forward', () => step(1));
    const play = button('Play', () => playing ? pause() : start());
    const picture = html('div', {class: 'toy-picture'});
    const says = html('p', {class: 'toy-says', 'aria-live': 'polite'});
    const signs = html('p', {class: 'toy-signs'});
    let playing = null;  // the number of a timer

    function chosen() {
      return plans[plan.value].schedules[devices.value];
    }

    // For any number of devices, or what is below would jump.
    function room() {
      const schedules = stepped.map(n => plans[plan.value].schedules[n]);
      return Math.max(...schedules.filter(one => one.nodes).map(
        one => d2lps.holdingsHeight(one)));
    }

    function lastRound() {
      return (chosen().rounds || []).length;
    }

    function step(by) {
      round.value = Math.max(0, Math.min(lastRound(), round.value + by));
      refresh();
    }

    function start() {
      if (round.value >= lastRound()) {
        round.value = 0;
        refresh();
      }
      play.textContent = 'Pause';
      playing = setInterval(() => {
        step(1);
        if (round.value >= lastRound()) {
          pause();
        }
      }, SECOND);
    }

    function pause() {
      clearInterval(playing);
      playing = null;
      play.textContent = 'Play';
    }

    function refresh() {
      const schedule = chosen(), none = typeof schedule === 'string';
      for (const one of [back, forward, play]) one.disabled = none;
      for (const one of [round.field, picture, signs]) {
        one.style.visibility = none ? 'hidden' : '';  // it keeps its place
      }
      picture.style.minHeight = `${room()}px`;
      if (none) {  // it is why there is none
        pause();
        picture.replaceChildren();
        says.textContent = schedule;
        return;
      }
      round.offer(schedule.rounds.map((_, k) => k).concat(lastRound()));
      says.textContent = sentence(plans[plan.value].words, schedule,
                                  devices.value, round.value);
      signs.textContent = SIGNS + (
        boxes.value ? 'Green: the whole sum.' : '✓: the whole sum.');
      draw();
    }

    function draw() {
      if (typeof chosen() !== 'string' && picture.clientWidth) {
        picture.replaceChildren(d2lps.holdings(
          chosen(), devices.value, round.value, boxes.value,
          picture.clientWidth));
      }
    }

    place.setAttribute('role', 'group');
    place.setAttribute('aria-label', 'Step player');
    place.append(
      html('div', {class: 'toy-controls'}, plan.field, boxes.field,
           devices.field, round.field,
           html('div', {class: 'toy-buttons'}, back, forward, play)),
      says, picture, signs);
    refresh();
    step(settings.number);
    d2lps.whenResized(picture, draw);
  }

  Object.assign(d2lps, {explore_plans});
}
