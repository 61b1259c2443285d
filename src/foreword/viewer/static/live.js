// What the worker commits -> everybody on this page who wants to look again. A hidden page does not listen, and of all tabs
// of a browser one listens for the others: it opens six connections to a host, and streams would take them from questions.

const REST = 500; // milliseconds between two looks
const tabs = new BroadcastChannel("live");
let listening = null; // until it is aborted
let waiting = 0;
let failed = 0;
const looking = new Set();

// `told` hears how the viewer stands: "" well, or "lost", "refused", "closed" (and why).
export function begin(told) {
  const hear = (said) => heard(said, told);
  tabs.addEventListener("message", ({ data }) => listening && hear(data));
  const pass = (said) => {
    hear(said);
    tabs.postMessage(said);
  };
  const look = () => (document.hidden ? end() : start(pass));
  document.addEventListener("visibilitychange", () => {
    look();
    if (!document.hidden) tell(); // whatever happened meanwhile
  });
  look();
}

export function live(fn, signal) {
  looking.add(fn);
  signal.addEventListener("abort", () => looking.delete(fn));
}

function start(pass) {
  if (listening) return;
  const mine = new AbortController();
  listening = mine;
  if (!navigator.locks) return listen(pass, mine.signal);
  const held = () =>
    new Promise((settle) => {
      mine.signal.addEventListener("abort", settle);
      listen(pass, mine.signal);
    });
  navigator.locks.request("live", { signal: mine.signal }, held).catch((error) => {
    if (error.name !== "AbortError") listen(pass, mine.signal);
  });
}

function end() {
  listening?.abort();
  listening = null;
}

function listen(pass, signal) {
  if (signal.aborted) return;
  const source = new EventSource("/api/changes");
  signal.addEventListener("abort", () => source.close());
  for (const name of ["ready", "changed", "closed"]) {
    source.addEventListener(name, ({ data }) => pass({ name, ...JSON.parse(data) }));
  }
  source.addEventListener("error", () =>
    pass({ name: source.readyState === EventSource.CLOSED ? "refused" : "error" }),
  );
}

function heard(said, told) {
  if (said.name === "changed") return tell();
  if (said.name === "error") failed += 1;
  if (said.name === "error" && failed > 1) told("lost"); // once is nothing: the browser asks again by itself
  if (said.name === "refused") told("refused");
  if (said.name === "closed") told("closed", said.why);
  if (said.name !== "ready") return;
  failed = 0; // also of a tab that was hidden when it was ready again
  told("");
  tell(); // whatever happened while nobody listened
}

function tell() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    for (const fn of [...looking]) fn();
  }, REST);
}
