// Python, away from the page: it loads NumPy and d2lps, and then answers.
// What it is asked and what it answers are texts. It sends nothing anywhere.
'use strict';
let answer, loaded = 0;

// As fetch, and tells the page how many bytes have come.
const get = self.fetch.bind(self);
self.fetch = async (...what) => {
  const {body, headers, status, statusText} = await get(...what);
  const counted = body && body.pipeThrough(new TransformStream({
    transform(chunk, next) {
      loaded += chunk.byteLength;
      postMessage({loaded});
      next.enqueue(chunk);
    }}));
  return new Response(counted, {headers, status, statusText});
};

async function load({pyodide, wheel}) {
  importScripts(`${pyodide}pyodide.js`);
  const python = await loadPyodide({indexURL: pyodide});
  await python.loadPackage(['numpy', wheel], {
    messageCallback() {},
    errorCallback(words) { throw new Error(words); }
  });
  answer = python.pyimport('d2lps.pictures.book_pages').answer;
}

self.onmessage = async ({data}) => {
  try {
    if (data.pyodide) {
      await load(data);
      postMessage({ready: true});
    } else {
      postMessage({found: answer(data.page, JSON.stringify(data.fields))});
    }
  } catch (error) {  // the last line says what, the others where
    postMessage({broken: String(error.message || error).trim().split('\n')
      .pop().slice(0, 300)});
  }
};
