// Let everybody on this page look again when the worker has committed something. A hidden page does not listen, and of all
// tabs of a browser one listens for the others: it opens six connections to a host, and streams would take them.

const REST = 500; // milliseconds between two looks
const tabs = new BroadcastChannel("live");
let listening = null; // until it is aborted
let waiting = 0;
let failed = 0;
const looking = new Set();

// `onState` is called with the state of the viewer: "" well, or "lost", "refused", "closed" (and why).
export function begin(onState) {
  const receive = (message) => handle(message, onState);
  tabs.addEventListener("message", ({ data }) => listening && receive(data));
  const pass = (message) => {
    receive(message);
    tabs.postMessage(message);
  };
  const look = () => (document.hidden ? end() : start(pass));
  document.addEventListener("visibilitychange", () => {
    look();
    if (!document.hidden) notify(); // whatever happened meanwhile
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

function handle(message, onState) {
  if (message.name === "changed") return notify();
  if (message.name === "error") failed += 1;
  if (message.name === "error" && failed > 1) onState("lost"); // once is nothing: the browser asks again by itself
  if (message.name === "refused") onState("refused");
  if (message.name === "closed") onState("closed", message.why);
  if (message.name !== "ready") return;
  failed = 0; // also of a tab that was hidden when it was ready again
  onState("");
  notify(); // whatever happened while nobody listened
}

function notify() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    for (const fn of [...looking]) fn();
  }, REST);
}
