// An extension of JupyterLite: a bar under a notebook that says how far Python
// is, runs all cells, and hands the notebook out as a file. It keeps what one
// writes, and begins at the section that the address names.
(() => {
  const here = document.currentScript.src;
  const lite = new URL('../../../', here), book = new URL('../', lite);
  const section = decodeURIComponent(location.hash);
  const LONG = 150;  // seconds; a start that takes longer has failed
  const PAUSE = 1000;  // ms without a change, after which lines are kept
  // What first cells import takes seconds, in which one still reads. It is no
  // cell of the reader's, and is not counted.
  const FIRST = 'import d2lps.pictures, pandas\n' +
    'get_ipython().execution_count -= 1';

  function make(tag, parent, properties) {
    const element = Object.assign(document.createElement(tag), properties);
    parent?.append(element);
    return element;
  }

  // The page of the book that shows this notebook or text.
  const pageOf = path => new URL(
    path.replace(/(\.ipynb|\.md)?$/, '.html'), book).href;

  // One bar, for the notebook in front.
  function makeBar(app, panel) {
    const bar = make('div', null, {id: 'd2lps-bar'});
    bar.setAttribute('role', 'region');
    bar.setAttribute('aria-label', 'This notebook in a browser tab');
    const says = make('span', bar);
    says.setAttribute('role', 'status');
    const all = make('button', bar, {
      textContent: 'Run all cells', disabled: true,
      onclick: () => runAll(app, panel)});
    make('button', bar, {
      textContent: 'Download', title: 'This notebook with your lines, as a file',
      onclick: async () => {
        await app.commands.execute('docmanager:save');
        app.commands.execute('docmanager:download');
      }});
    make('button', bar, {
      textContent: 'Start over',
      title: 'The notebook as it was published, without your lines',
      onclick: () => startOver(app, panel)});
    make('a', bar, {textContent: 'Its page', href: pageOf(panel.context.path),
                    title: 'The page of this notebook in the book'});
    make('button', bar, {textContent: '×', title: 'Hide this bar',
                         ariaLabel: 'Hide this bar',
                         onclick: () => bar.remove()});
    document.body.append(bar);
    return {says, all};
  }

  const hasFailed = model => model.type === 'code' &&
    model.outputs.toJSON().some(one => one.output_type === 'error');

  // One stays where one was, or comes to what has failed.
  async function runAll(app, {content}) {
    const before = content.activeCellIndex;
    await app.commands.execute('notebook:run-all-cells');
    const first = content.widgets.findIndex(cell => hasFailed(cell.model));
    content.activeCellIndex = first < 0 ? before : first;
    content.scrollToItem(content.activeCellIndex);
  }

  async function startOver(app, {context}) {
    if (confirm('Forget your lines in this notebook, and begin again?')) {
      context.model.dirty = false;  // or the browser would ask again
      await app.serviceManager.contents.delete(context.path);
      location.reload();
    }
  }

  const isExercise = path => path.includes('exercises/');

  // How this notebook runs here: its row of docs/book/tab.toml.
  function rowOf(path, rows) {
    const name = path.split('/').pop().replace(/\.ipynb$/, '');
    return (isExercise(path) ? rows.exercises : rows.chapters)[name] ?? {};
  }

  const HONEST = {no: row => `Does not run in a browser tab: ${row.why}. `,
                  parts: row => `Runs in part here: ${row.cells}. `};

  // A function that keeps the notebook in this browser if lines or outputs
  // have changed. Of several tabs with this notebook, one may.
  async function keeper({context}) {
    const state = () => JSON.stringify(context.model.toJSON().cells.map(
      ({source, outputs}) => [source, outputs]));
    let kept = state();
    const only = await new Promise(tell => navigator.locks?.request(
      `d2lps ${context.path}`, {ifAvailable: true}, lock => {
        tell(lock !== null);
        return lock && new Promise(() => {});  // until the tab closes
      }) ?? tell(true));
    return {only, keep: async () => {
      const now = state();
      if (now === kept) {
        // JupyterLab's own metadata are no reason to ask before leaving.
        context.model.dirty = false;
      } else if (only) {
        await context.save();
        kept = now;
      }
    }};
  }

  async function watch(panel, {says, all}, rows) {
    const {context, content, sessionContext} = panel;
    const row = rowOf(context.path, rows);
    let before = HONEST[row.runs]?.(row) ?? '';
    const tell = words => { says.textContent = before + words; };
    // In such a chapter, the saved outputs say more than errors would.
    all.hidden = before !== '' && !isExercise(context.path);
    const begun = Date.now();
    const waits = setInterval(() => {
      const seconds = Math.round((Date.now() - begun) / 1000);
      tell(seconds < LONG ?
        `Python is starting: ${seconds} s of about 30 the first time. ` +
        'You can read meanwhile.' :
        'Python has not started. Is this device online, and does it have ' +
        'room? Reload the page to try again.');
    }, 1000);
    await context.ready;
    const {only, keep} = await keeper(panel);
    if (!only) {
      before += 'This notebook is open in another tab, too. Work there: ' +
        'here, your lines are not kept. ';
    }
    let pause;
    context.model.contentChanged.connect(() => {
      clearTimeout(pause);
      pause = setTimeout(keep, PAUSE);
    });
    await sessionContext.ready;
    const {kernel} = sessionContext.session;
    await kernel.info;
    await kernel.requestExecute({code: FIRST, silent: true,
                                 store_history: false}).done;
    clearInterval(waits);
    tell('Python is ready. Run a cell: ▶, or Shift+Enter.');
    all.disabled = false;
    let ran = false, rest;  // other questions keep Python busy, too
    async function finish() {
      await keep();
      const bad = content.widgets.filter(cell => hasFailed(cell.model)).length;
      tell((bad ? `${bad} ${bad > 1 ? 'cells' : 'cell'} failed: see the red ` +
            'words. After a failure, the cells below do not run. ' : 'Done. ') +
           (only ? 'Your lines are kept in this browser alone.' : ''));
    }
    kernel.iopubMessage.connect((_, {header}) => {
      if (header.msg_type === 'execute_input') {
        ran = true;
        clearTimeout(rest);
        tell('Running…');
      }
    });
    kernel.statusChanged.connect((_, status) => {
      if (/restarting/.test(status)) {
        ran = false;
        tell('Python starts again. Then run the cells from the top.');
      } else if (ran) {
        clearTimeout(rest);
        if (status === 'idle') rest = setTimeout(finish, 300);
      }
    });
  }

  document.addEventListener('click', event => {
    const {target} = event;
    // JupyterLab gives a file its whole path as a name.
    if (target.download) target.download = target.download.split('/').pop();
    // A link to a chapter leads to its page, from which it runs.
    const link = target.closest?.('a[data-commandlinker-args]');
    if (link) {
      const {path, id} = JSON.parse(link.dataset.commandlinkerArgs);
      event.preventDefault();
      event.stopImmediatePropagation();
      window.open(pageOf(path) + (id ?? ''), '_blank', 'noopener');
    }
  }, true);

  async function begin(app) {
    make('link', document.head, {rel: 'stylesheet',
                                 href: new URL('style.css', here)});
    const rows = await (await fetch(new URL('tab.json', lite))).json();
    await app.restored;
    const seen = new WeakSet();
    const look = () => {
      const panel = app.shell.currentWidget;
      if (!panel?.sessionContext || !panel.content?.model || seen.has(panel))
        return;
      seen.add(panel);
      document.querySelector('#d2lps-bar')?.remove();
      watch(panel, makeBar(app, panel), rows);
      panel.revealed.then(() => section && panel.setFragment(section));
    };
    app.shell.currentChanged?.connect(() => setTimeout(look));
    const timer = setInterval(() => {
      look();
      if (seen.has(app.shell.currentWidget)) clearInterval(timer);
    }, 300);
  }

  const extension = {id: 'd2lps-tab:bar', autoStart: true,
                     // JupyterLab begins when all have returned.
                     activate: app => void begin(app)};
  (window._JUPYTERLAB ??= {})['d2lps-tab'] = {
    init: () => {},
    get: async () => () => ({__esModule: true, default: extension})
  };
})();
