// The race of the first page: who reads it holds the clock. The pictures are
// there for every plan; they show the time that --now says, in ms.
'use strict';
for (const race of document.querySelectorAll('.race')) {
  const [play, time, clock] = race.querySelector('.race-clock').children;
  const links = race.querySelector('.race-links select');
  const says = race.querySelector('.race-says');
  const lanes = [...race.querySelectorAll('.race-lane')].map((lane) => ({
    lane,
    menu: lane.querySelector('select'),
    words: lane.querySelector('.race-words'),
    picture: lane.querySelector('.race-picture')
  }));
  const STEP = 0.5, SHORTEST = 4000, LONGEST = 20000;  // ms; real ms
  const tidy = (ms) => String(Math.round(10 * ms) / 10);
  let now = Number(race.dataset.now), untouched = true;
  let began = null;  // when it would have begun to play, in real ms

  const chosen = () => lanes.map(
    ({menu}) => d2lpsRace[links.value][menu.value]);
  const longest = () => Math.max(...chosen().map(({seconds}) => seconds));

  // Real ms for each ms: the faster plan can be watched, too.
  const slowness = () => {
    const least = Math.min(...chosen().map(({seconds}) => seconds));
    return Math.min(SHORTEST / least, LONGEST / longest());
  };

  // What one plan is doing.
  const state = ({name, seconds, rounds, complete}) => {
    if (now >= seconds - 1e-6) return `“${name}” was done at ${
      tidy(seconds)} ms.`;
    const [round] = rounds.filter(([, begin]) => begin <= now).at(-1);
    const ready = complete.filter((ms) => ms <= now + 1e-6).length;
    return `“${name}”: ${round}, ${ready || 'no'} ${
      ready > 1 ? 'GPUs have' : 'GPU has'} the sum.`;
  };

  const verdict = () => {
    const [a, b] = chosen();
    if (Math.abs(a.seconds - b.seconds) < 1e-6) return `A tie: both took ${
      tidy(a.seconds)} ms.`;
    const [fast, slow] = a.seconds < b.seconds ? [a, b] : [b, a];
    const times = tidy(slow.seconds / fast.seconds);
    return `“${fast.name}” took ${tidy(fast.seconds)} ms, ` +
      `“${slow.name}” ${tidy(slow.seconds)} ms: ${times} times as long.`;
  };

  const show = () => {
    race.style.setProperty('--now', now);
    time.value = now;
    clock.textContent = `${tidy(now)} ms`;
    const end = now >= longest() - 1e-6;
    const words = `At ${tidy(now)} ms: ${
      end ? verdict() : chosen().map(state).join(' ')}`;
    time.setAttribute('aria-valuetext', words);
    if (says.textContent !== words) says.textContent = words;
  };

  const pause = () => {
    began = null;
    play.textContent = 'Play';
    says.setAttribute('aria-live', 'polite');
  };

  const frame = (moment) => {
    if (began === null) return;
    // The first frame may be of a moment before the click.
    now = Math.min(longest(), Math.max(0, (moment - began) / slowness()));
    show();
    if (now >= longest()) pause();
    else requestAnimationFrame(frame);
  };

  const start = () => {
    if (untouched || now >= longest()) now = 0;
    untouched = false;
    play.textContent = 'Pause';
    says.setAttribute('aria-live', 'off');  // it would speak all the time
    began = performance.now() - now * slowness();
    requestAnimationFrame(frame);
  };

  const go = (to) => {
    pause();
    untouched = false;
    now = Math.max(0, Math.min(longest(), to));
    show();
  };

  // Other plans, or other cables.
  const choose = () => {
    pause();
    const known = d2lpsRace[links.value];
    for (const {menu, lane, words, picture} of lanes) {
      for (const option of menu.options) {
        option.disabled = !(option.value in known);
        option.label = option.textContent +
          (option.disabled ? ': not on a ring' : '');
      }
      if (!(menu.value in known)) menu.value = 'gather';
      const racer = known[menu.value];
      words.textContent = racer.summary;
      picture.innerHTML = racer.svg;
      lane.style.setProperty('--end', racer.seconds);
    }
    for (const {lane, menu} of lanes) {
      lane.style.setProperty(
        '--share', known[menu.value].seconds / longest());
    }
    time.step = STEP;
    time.max = Math.ceil(longest() / STEP) * STEP;
    now = Math.min(now, longest());
    show();
  };

  play.addEventListener('click', () => began === null ? start() : pause());
  time.addEventListener('input', () => go(Number(time.value)));
  for (const menu of race.querySelectorAll('select')) {
    menu.addEventListener('change', choose);
  }
  race.addEventListener('keydown', (event) => {  // on the button, too
    const by = {ArrowLeft: -STEP, ArrowRight: STEP}[event.key];
    if (!by || event.target.matches('select, input')) return;
    event.preventDefault();
    go(now + by);
  });
  race.classList.add('race-live');
  choose();
}
