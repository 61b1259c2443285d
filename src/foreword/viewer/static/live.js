// Call pages when the worker has committed something. A hidden page does not listen, and of all tabs of a browser one listens
// for the others: a browser opens six connections to a host.

import { ApiError } from "./api.js";

const PAUSE = 500; // milliseconds between two calls
const tabs = new BroadcastChannel("live");
const callbacks = new Set();
let listener = null; // an AbortController while this tab listens
let timer = 0;
let failures = 0;

// `onState` gets the state of the viewer: "" (well), "lost", "refused" or "closed" with its reason.
export function start(onState) {
  const receive = (message) => handle(message, onState);
  const broadcast = (message) => {
    receive(message);
    tabs.postMessage(message);
  };
  const followVisibility = () => (document.hidden ? stopListening() : startListening(broadcast));
  tabs.addEventListener("message", ({ data }) => listener && receive(data));
  document.addEventListener("visibilitychange", () => {
    followVisibility();
    if (!document.hidden) notify();
  });
  followVisibility();
}

// Call *load* after commits, at most once in *pause* milliseconds. While it fails, the page keeps what it shows.
export function subscribe(load, signal, pause = 0) {
  const callback = throttle(
    async () => {
      try {
        await load();
      } catch (error) {
        if (!(error instanceof ApiError) && error.name !== "AbortError") throw error;
      }
    },
    pause,
    signal,
  );
  callbacks.add(callback);
  signal.addEventListener("abort", () => callbacks.delete(callback));
}

function throttle(fn, pause, signal) {
  let last = performance.now();
  let pending = 0;
  signal.addEventListener("abort", () => clearTimeout(pending));
  const run = () => {
    pending = 0;
    last = performance.now();
    fn();
  };
  return () => {
    pending ||= setTimeout(run, Math.max(0, last + pause - performance.now()));
  };
}

function startListening(broadcast) {
  if (listener) return;
  const controller = new AbortController();
  listener = controller;
  if (!navigator.locks) return listen(broadcast, controller.signal);
  const whileLocked = () =>
    new Promise((resolve) => {
      controller.signal.addEventListener("abort", resolve);
      listen(broadcast, controller.signal);
    });
  navigator.locks.request("live", { signal: controller.signal }, whileLocked).catch((error) => {
    if (error.name !== "AbortError") listen(broadcast, controller.signal);
  });
}

function stopListening() {
  listener?.abort();
  listener = null;
}

function listen(broadcast, signal) {
  if (signal.aborted) return;
  const source = new EventSource("/api/changes");
  signal.addEventListener("abort", () => source.close());
  for (const name of ["ready", "changed", "closed"]) {
    source.addEventListener(name, ({ data }) => broadcast({ name, ...JSON.parse(data) }));
  }
  source.addEventListener("error", () =>
    broadcast({ name: source.readyState === EventSource.CLOSED ? "refused" : "error" }),
  );
}

function handle(message, onState) {
  if (message.name === "changed") return notify();
  if (message.name === "error") failures += 1;
  if (message.name === "error" && failures > 1) onState("lost"); // the browser reconnects by itself once
  if (message.name === "refused") onState("refused");
  if (message.name === "closed") onState("closed", message.why);
  if (message.name !== "ready") return;
  failures = 0;
  onState("");
  notify(); // of what happened while nobody listened
}

function notify() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    for (const callback of [...callbacks]) callback();
  }, PAUSE);
}
