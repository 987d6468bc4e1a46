// "Your Server" and "Planner": asks the Python of ask-worker.js, and shows
// what it answers. Nothing that one types leaves the browser: there is no
// form to send, and the worker requests only Python itself.
'use strict';
for (const box of document.querySelectorAll('.ask')) {
  const LOADING = 120, ANSWERING = 60;  // s, after which we no longer wait
  const MB = 16.3;  // of Python, NumPy and d2lps, as the worker counts them
  const root = new URL(document.documentElement.dataset.content_root,
                       location.href);
  const page = box.dataset.page;
  const button = box.querySelector('.ask-go button');
  const bar = box.querySelector('progress');
  const status = box.querySelector('.ask-status');
  const result = document.querySelector('.ask-answer');
  const whose = document.querySelector('.ask-whose');
  const failure = box.querySelector('#ask-error');
  const controls = [...box.querySelectorAll('[name]')];
  const presets = JSON.parse(
    box.querySelector('.ask-presets')?.textContent ?? '{}');
  let worker, timer, ready = false;
  let asked = null;  // what is to be answered, or is being answered
  let stale = false;  // whether a field has changed since

  // The last words win; a limit for what may not come.
  const say = (words) => { status.textContent = words; };
  const within = (seconds, late) => {
    clearTimeout(timer);
    return timer = setTimeout(late, 1000 * seconds);
  };

  function stop() {
    clearTimeout(timer);
    timer = null;
    worker?.terminate();
    worker = null;
    ready = false;
    asked = null;
    bar.hidden = true;
    button.disabled = false;
  }

  function fail(why) {
    stop();
    button.textContent = 'Load Python again';
    say(`Python did not load: ${why} Is the network there? Does the browser ` +
        'or an extension of it block scripts or WebAssembly? Is the browser ' +
        'of 2023 or later?');
  }

  async function start() {
    const mine = within(LOADING, () => fail(`it took more than ${LOADING} s.`));
    button.disabled = true;
    button.textContent = 'Answer';
    bar.hidden = false;
    bar.value = 0;
    say(`Python is loading (about ${Math.round(MB)} MB, once) …`);
    const lite = new URL('lite/', root);
    let found;
    try {
      const tab = await fetch(new URL('tab.json', lite));
      found = tab.ok && await tab.json();
    } catch (error) {
      if (timer === mine) fail('the server of this page does not answer.');
    }
    if (timer !== mine) return;  // it has failed before
    if (!found) {
      stop();
      button.disabled = true;
      return say('This copy of the book was built without Python for the ' +
        'browser, so it shows the example alone. "make book" in a clone of ' +
        'the project builds it with Python.');
    }
    const {pyodide, wheels} = found;
    const wheel = wheels.find((name) => name.includes('/d2lps-'));
    worker = new Worker(new URL('_static/ask-worker.js', root));
    worker.onmessage = ({data}) => hear(data);
    worker.onerror = (event) => {
      event.preventDefault();
      fail(`${event.message || 'its script is not there'}.`);
    };
    worker.postMessage({pyodide: new URL(pyodide, lite).href,
                        wheel: new URL(wheel, lite).href});
  }

  function hear({loaded, ready: done, broken, found}) {
    if (loaded) {
      bar.value = Math.min(1, loaded / 1e6 / MB);
    } else if (done) {
      clearTimeout(timer);
      ready = true;
      bar.hidden = true;
      button.disabled = false;
      say('Python is ready.');
    } else if (broken && !ready) {
      fail(`${broken}.`);
    } else {
      clearTimeout(timer);
      button.disabled = false;
      if (document.activeElement === document.body) button.focus();
      if (found) return show(JSON.parse(found));
      stop();  // who knows what still works
      show({about: '', error: `This is a fault of the page: ${broken}`});
      start();
    }
  }

  // Python has escaped what was pasted; errors are shown as text.
  function show({html, says, error, about}) {
    asked = null;
    if (error) {
      const control = controls.find(({name}) => name === about);
      const place = control ?
        box.querySelector(`#ask-${about}-error`) : failure;
      place.textContent = error;
      place.hidden = false;
      whose.textContent = 'There is no answer yet.';
      result.replaceChildren();
      say(control ? 'Something is wrong: see the words in red.' : '');
      if (control) {
        control.setAttribute('aria-invalid', 'true');
        const folded = control.closest('details');
        if (folded) folded.open = true;
        control.focus();
      }
      return;
    }
    result.innerHTML = html;
    tellWhose();
    say(says);
  }

  function forget() {  // what was wrong
    for (const place of box.querySelectorAll('.ask-error')) {
      place.hidden = true;
      place.textContent = '';
    }
    for (const control of controls) control.removeAttribute('aria-invalid');
  }

  function ask() {
    if (!worker) return start();
    if (!ready || asked) return;
    forget();
    stale = false;
    asked = Object.fromEntries(controls.map((one) => [
      one.name, one.type === 'checkbox' && !one.checked ? '' : one.value]));
    button.disabled = true;
    say('Python computes …');
    within(ANSWERING, () => {
      stop();
      show({about: '', error: `This took more than ${ANSWERING} s, and was ` +
        'ended. Ask for less, such as fewer GPUs.'});
      start();
    });
    worker.postMessage({page, fields: asked});
  }

  const about = (name) => controls.find((one) => one.name === name);
  const isExample = (control) => control.value === (control.defaultValue ??
    [...control.options].find((one) => one.defaultSelected)?.value);

  function tellWhose() {
    whose.textContent = stale ? 'You have changed something. This is still ' +
      'the answer to what was there before:' : 'The answer:';
  }

  function changed(event) {
    const model = about('model');
    if (model && event?.target.closest('details')) model.value = '';  // own
    stale = true;
    if (result.firstChild) tellWhose();
    if (about('table') && !isExample(about('table'))) {
      for (const one of [about('log'), about('gpu')]) {  // of the example
        if (isExample(one)) one.value = '';
      }
    }
  }

  async function read(file, area) {
    const place = box.querySelector(`#${area.id}-error`);
    const most = Number(box.dataset.most);
    const refuse = (why) => {
      place.textContent = `${file.name} ${why}`;
      place.hidden = false;
    };
    const tooLong = `is too long: it has more characters than ${
      most.toLocaleString('en')}`;
    if (file.size > 4 * most) return refuse(tooLong);
    let bytes;
    try {
      bytes = new Uint8Array(await file.arrayBuffer());
    } catch (error) {  // a folder, or a file that has gone
      return refuse(`cannot be read: ${error.message}`);
    }
    const begin = bytes[0] << 8 | bytes[1];  // as PowerShell writes
    const kind = {0xfffe: 'utf-16le', 0xfeff: 'utf-16be'}[begin] ?? 'utf-8';
    const text = new TextDecoder(kind).decode(bytes);
    if (text.length > most) return refuse(tooLong);
    area.value = text;
    place.hidden = true;
    changed();
  }

  box.addEventListener('input', changed);
  box.addEventListener('change', ({target}) => {
    if (target.type === 'file' && target.files[0]) {
      read(target.files[0], box.querySelector(`#${target.dataset.for}`));
      target.value = '';  // the same file can be chosen again
    }
    const preset = presets[`${target.name}=${target.value}`] ?? {};
    for (const [name, value] of Object.entries(preset)) {
      const control = controls.find((one) => one.name === name);
      if (control.type === 'checkbox') control.checked = Boolean(value);
      else control.value = value;
    }
    if (target.name === 'model' && !target.value) {
      box.querySelector('details').open = true;  // for one's own numbers
    }
  });
  for (const area of box.querySelectorAll('textarea')) {
    area.addEventListener('dragover', (event) => event.preventDefault());
    area.addEventListener('drop', (event) => {
      const [file] = event.dataTransfer.files;
      if (!file) return;  // text, which the browser puts there
      event.preventDefault();
      read(file, area);
    });
  }
  box.addEventListener('keydown', (event) => {
    const line = event.target.matches('input:not([type])');
    if (event.key === 'Enter' && !button.disabled &&
        (line || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask();
    }
  });
  button.addEventListener('click', ask);

  if (location.protocol === 'file:') {
    say('This page was opened from a file, from which a browser starts no ' +
        'Python: it shows the example alone. In a clone, type "make ' +
        'book-serve". With a copy of the book alone, type "python3 -m ' +
        'http.server --bind 127.0.0.1" in its folder, and open ' +
        'http://127.0.0.1:8000 in the browser.');
  } else {
    start();
  }
}
