// Draw the page that an address names into <main>, with what every page has: links, keys, theme, live updates.

import { BACK, get, patient, pause, ApiError } from "./api.js";
import { fill, make } from "./dom.js";
import * as keys from "./keys.js";
import * as lives from "./live.js";
import { coded, empty, trouble } from "./parts.js";

const PAGES = {
  now: () => import("./now.js"),
  timeline: () => import("./timeline.js"),
  memories: () => import("./memories.js"),
  try: () => import("./try.js"),
  health: () => import("./health.js"),
};
const OF_ONE = ["now", "timeline", "memories"]; // what is behind their name is one of theirs
const NOWHERE = {
  title: "There is no such page",
  show: (root) =>
    root.append(
      make("h1", {}, NOWHERE.title),
      empty(
        make("p", {}, "Nothing here goes by ", make("code", {}, location.pathname), "."),
        make("p", {}, make("a", { href: "/now" }, "Go to Now"), ", or choose a page above."),
      ),
    ),
};
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
let leaving = new AbortController();
let at = ""; // the address that is shown
let nth = history.state?.nth ?? 0; // which of this tab's addresses it is
let lacking = false; // a script of another page was not had, and a page asks for each once only: a new one has them all
let guard = null; // of a page with something half written: whether it has, and the question whether it may go
const places = new Map(Object.entries(JSON.parse(sessionStorage.getItem("places") ?? "{}"))); // how far each address was scrolled

async function show({ first = false, back = first } = {}) {
  leaving.abort();
  guard = null;
  for (const each of document.querySelectorAll("dialog[open]")) each.close(); // what was asked there has nothing to do with this page
  if (lacking && !shownState()) return location.reload();
  at = address();
  const mine = new AbortController();
  leaving = mine;
  const path = location.pathname.split("/").filter(Boolean).map(decoded);
  const name = nameOf(path);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === `/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  keys.ofPage({});
  const root = make("div", { class: `page ${name}` });
  let module = NOWHERE;
  main.setAttribute("aria-busy", "true");
  try {
    if (name) {
      module = await PAGES[name]().catch(() => {
        lacking = true;
        throw new ApiError("The viewer does not answer.", BACK, 0);
      });
    }
    if (mine.signal.aborted) return;
    const called = (own) => {
      if (!mine.signal.aborted) document.title = [own, module.title, "Foreword"].filter(Boolean).join(" · ");
    };
    called("");
    fill(main, root);
    if (!first) {
      main.focus({ preventScroll: true });
      scrollTo(0, 0);
      say(module.title);
    }
    await module.show(root, {
      path,
      query: new URLSearchParams(location.search),
      signal: mine.signal,
      back, // whether somebody was here before: by the way back, or a reload
      go,
      replace: (to) => {
        history.replaceState(history.state, "", to);
        at = address();
      },
      push,
      name: called, // the tab and the history tell one memory or session from the other
      live: (fn) => lives.live(fn, mine.signal),
      keys: keys.alsoOfPage,
      guard: (holds, ask) => (guard = { holds, ask }),
      patient: () => patient(mine.signal),
      say,
    });
    if (mine.signal.aborted) return;
    tried(0);
    if (back) scrolled(places.get(at));
  } catch (error) {
    if (mine.signal.aborted || error.name === "AbortError") return;
    fill(main, root);
    if (!root.querySelector("h1") && module !== NOWHERE) root.append(make("h1", {}, module.title));
    root.append(trouble(error));
    if (error.status === 0) askAgain(mine.signal);
  } finally {
    if (!mine.signal.aborted) main.removeAttribute("aria-busy");
  }
}

// A page that got no answer asks again by itself, ever more seldom, while it stands there.
function askAgain(signal) {
  const tries = history.state?.tries ?? 0; // there, because a script that was not had needs a reload
  const again = async () => {
    if (["closed", "refused"].includes(shownState()) || !isLacking()) return;
    tried(tries + 1);
    try {
      if (lacking) await get("/api/projects", {}, { signal }); // a reload that nobody answers would end the page
      if (!signal.aborted) show({ first: true });
    } catch {
      if (!signal.aborted) askAgain(signal);
    }
  };
  const timer = setTimeout(again, pause(tries));
  signal.addEventListener("abort", () => clearTimeout(timer));
}

function tried(tries) {
  if ((history.state?.tries ?? 0) !== tries) history.replaceState({ ...history.state, tries }, "");
}

// Which page an address is of: / is Now; none where it was mistyped.
function nameOf([first = "now", ...more]) {
  return Object.hasOwn(PAGES, first) && more.length <= (OF_ONE.includes(first) ? Infinity : 0) ? first : "";
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // no such letters: it is shown as it was typed
  }
}

export function go(to) {
  const went = () => {
    if (to !== address()) push(to);
    show();
  };
  if (guard?.holds()) guard.ask().then((may) => may && went());
  else went();
}

function push(to) {
  if (to === address()) return; // twice the same would be a step back that leads nowhere
  left();
  nth += 1;
  history.pushState({ nth }, "", to);
  at = address();
}

// The way back or forth; where something half written stays, the address goes back to it.
async function moved() {
  const there = history.state?.nth ?? nth;
  if (address() === at && there === nth) return;
  const mine = guard;
  if (mine?.requests) return; // the same question answers for this step too
  if (mine?.holds()) mine.requests = true;
  if (mine?.requests && !(await mine.ask().finally(() => (mine.requests = false)))) {
    const now = history.state?.nth;
    if (address() === at && now === nth) return;
    if (Number.isInteger(now)) history.go(nth - now);
    else history.pushState({ nth }, "", at);
    return;
  }
  nth = history.state?.nth ?? nth;
  left();
  show({ back: true });
}

const address = () => location.pathname + location.search;

// The way back leads to the same lines: a browser that restores by itself does so before there is anything to scroll.
function left() {
  const inner = [...main.querySelectorAll("[data-scrolls]")].map((each) => [each.dataset.scrolls, each.scrollTop]);
  places.set(at, { top: scrollY, inner: Object.fromEntries(inner) });
}

function scrolled(place) {
  if (!place) return;
  for (const each of main.querySelectorAll("[data-scrolls]")) each.scrollTop = place.inner[each.dataset.scrolls] ?? 0;
  scrollTo(0, place.top);
}

function say(text) {
  document.getElementById("said").textContent = text;
}

const AGAIN = "Run `foreword view` again, and open the link that it prints.";
const STATES = {
  lost: () => [`The viewer does not answer. ${BACK}`],
  closed: (why) => [`The viewer is closed: ${why}. ${AGAIN}`],
  refused: () => [`This page belongs to a viewer that was closed. ${AGAIN}`],
};

const shownState = () => document.getElementById("closed").dataset.how ?? "";

// How the viewer stands, above every page; nothing where all is well.
function showState(how, why = "") {
  const note = document.getElementById("closed");
  const before = shownState();
  if (!how && !before && !lacking && isLacking()) show({ first: true }); // it was away too short to be reported
  if (how === before || (how === "lost" && before === "closed")) return; // the reason is shown already
  note.dataset.how = how;
  note.hidden = !how;
  fill(
    note,
    (STATES[how]?.(why) ?? []).map((each) => (each instanceof Node ? each : coded(each))),
  );
  if (!how && isLacking()) location.reload(); // a module that was not had is not asked for again
}

// Whether the page is only that nobody answered, and not a part of it, which asks again by itself; what somebody has begun
// to write is not taken from him.
const isLacking = () => main.querySelector(".page > [data-unanswered]") && !main.querySelector("textarea");

function follow(event) {
  const link = event.target.closest("a[href]");
  const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (
    !link ||
    !plain ||
    event.defaultPrevented ||
    link.origin !== location.origin ||
    link.getAttribute("href")[0] === "#"
  )
    return;
  event.preventDefault();
  go(link.pathname + link.search);
}

function theme() {
  const button = document.getElementById("theme");
  const chosen = () => document.documentElement.dataset.theme ?? "auto";
  const showTheme = () => (button.textContent = `Theme: ${chosen()}`);
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    choices.keep("theme", next);
    showTheme();
  });
  showTheme();
}

document.addEventListener("click", follow);
addEventListener("popstate", moved);
addEventListener("pagehide", () => {
  left();
  sessionStorage.setItem("places", JSON.stringify(Object.fromEntries([...places].slice(-50))));
});
history.scrollRestoration = "manual";
history.replaceState({ ...history.state, nth }, "");
document.getElementById("help").addEventListener("click", keys.help);
theme();
keys.begin({
  "g n": ["Now", () => go("/now")],
  "g t": ["Timeline", () => go("/timeline")],
  "g m": ["Memories", () => go("/memories")],
  "g y": ["Try it", () => go("/try")],
  "g h": ["Health", () => go("/health")],
  "/": ["Search memories", () => go("/memories")],
  "?": ["These keys", keys.help],
});
lives.begin(showState);
// Those of the other pages too: they can be gone to while nobody answers, and are of one build with this one.
show({ first: true })
  .then(() => Promise.all(Object.values(PAGES).map((load) => load())))
  .catch(() => (lacking = true));
