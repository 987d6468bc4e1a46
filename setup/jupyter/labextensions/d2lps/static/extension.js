// An extension of JupyterLab, in the form in which it loads one: it adds
// style.css, and hides the list of files where a notebook needs its room.
(() => {
  const WIDE = 1280;  // pixels; there is room for both from here on
  const here = document.currentScript.src;

  function activate(app) {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL('style.css', here);
    document.head.append(link);
    // Whoever has arranged the window finds it again as it was.
    Promise.all([app.restored, app.shell.restored]).then(([, layout]) => {
      if (layout?.fresh && window.innerWidth < WIDE)
        app.shell.collapseLeft();
    });
  }

  const extension = {id: 'd2lps:room', autoStart: true, activate};
  (window._JUPYTERLAB ??= {}).d2lps = {
    init: () => {},
    get: async () => () => ({__esModule: true, default: extension})
  };
})();
