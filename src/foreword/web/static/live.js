// What the worker commits -> everybody on this page who wants to look again. A hidden page does not listen.

const REST = 500; // milliseconds between two looks
let source = null;
let waiting = 0;
let failed = 0;
const listening = new Set();

export function begin(closed) {
  const look = () => (document.hidden ? end() : start(closed));
  document.addEventListener("visibilitychange", look);
  look();
}

export function live(fn, signal) {
  listening.add(fn);
  signal.addEventListener("abort", () => listening.delete(fn));
}

function start(closed) {
  if (source) return;
  source = new EventSource("/api/live");
  source.addEventListener("ready", () => {
    if (failed) closed(false);
    failed = 0;
    tell(); // whatever happened while nobody listened
  });
  source.addEventListener("stirred", tell);
  source.addEventListener("error", () => {
    failed += 1;
    if (source?.readyState === EventSource.CLOSED) end();
    if (!source || failed > 1) closed(true);
  });
}

function end() {
  source?.close();
  source = null;
}

function tell() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    for (const fn of [...listening]) fn();
  }, REST);
}
