// Draw the page that an address names into <main>, with what every page has: links, keys, theme, live updates.

import { ApiError, get, pauseBefore, RECOVERY, retrier } from "./api.js";
import { clickedLink, fill, h, setCurrent } from "./dom.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import { code, empty, errorBox } from "./parts.js";

const PAGES = {
  now: () => import("./now.js"),
  timeline: () => import("./timeline.js"),
  memories: () => import("./memories.js"),
  try: () => import("./try.js"),
  health: () => import("./health.js"),
};
const WITH_ID = ["now", "timeline", "memories"]; // /now/SESSION and so on
const NOT_FOUND = {
  title: "Page not found",
  show: (root) =>
    root.append(
      h("h1", NOT_FOUND.title),
      empty(
        h("p", "There is no page ", h("code", location.pathname), "."),
        h("p", h("a", { href: "/now" }, "Go to Now"), ", or choose a page above."),
      ),
    ),
};
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
const positions = new Map(Object.entries(JSON.parse(sessionStorage.getItem("positions") ?? "{}"))); // address -> scroll
let leaving = new AbortController();
let shownAddress = "";
let historyIndex = history.state?.index ?? 0;
let lacksModule = false; // a module did not load: browsers import each only once, so the next page needs a reload
let guard = null; // of a page with unsaved text: whether it has some, and the question whether to leave

async function show({ first = false, back = first } = {}) {
  leaving.abort();
  guard = null;
  for (const each of document.querySelectorAll("dialog[open]")) each.close();
  if (lacksModule && !shownState()) return location.reload();
  shownAddress = address();
  const controller = new AbortController();
  leaving = controller;
  const path = location.pathname.split("/").filter(Boolean).map(decode);
  const name = pageOf(path);
  for (const link of document.querySelectorAll("nav a")) setCurrent(link, link.pathname === `/${name}` ? "page" : null);
  keys.setPageKeys({});
  const root = h("div", { class: `page ${name}` });
  let module = NOT_FOUND;
  main.setAttribute("aria-busy", "true");
  try {
    if (name) {
      module = await PAGES[name]().catch(() => {
        lacksModule = true;
        throw new ApiError("The viewer does not answer.", RECOVERY, 0);
      });
    }
    if (controller.signal.aborted) return;
    const setTitle = (own) => {
      if (!controller.signal.aborted) document.title = [own, module.title, "Foreword"].filter(Boolean).join(" · ");
    };
    setTitle("");
    fill(main, root);
    if (!first) {
      main.focus({ preventScroll: true });
      scrollTo(0, 0);
      announce(module.title);
    }
    await module.show(root, {
      path,
      query: new URLSearchParams(location.search),
      signal: controller.signal,
      back, // whether the page is shown again: by the way back, or a reload
      go,
      replace: (to) => {
        history.replaceState(history.state, "", to);
        shownAddress = address();
      },
      push,
      name: setTitle,
      live: (load, pause) => live.subscribe(load, controller.signal, pause),
      keys: keys.addPageKeys,
      guard: (isDirty, confirm) => (guard = { isDirty, confirm, isOpen: false }),
      retrier: () => retrier(controller.signal),
      announce,
    });
    if (controller.signal.aborted) return;
    setRetries(0);
    if (back) restorePosition(positions.get(shownAddress));
  } catch (error) {
    if (controller.signal.aborted || error.name === "AbortError") return;
    fill(main, root);
    if (!root.querySelector("h1") && module !== NOT_FOUND) root.append(h("h1", module.title));
    root.append(errorBox(error));
    if (error.status === 0) retry(controller.signal);
  } finally {
    if (!controller.signal.aborted) main.removeAttribute("aria-busy");
  }
}

// Show a page that got no answer again, ever more seldom.
function retry(signal) {
  const retries = history.state?.retries ?? 0; // kept there, because a missing module needs a reload
  const again = async () => {
    if (["closed", "refused"].includes(shownState()) || !isUnanswered()) return;
    setRetries(retries + 1);
    try {
      if (lacksModule) await get("/api/projects", {}, { signal }); // an unanswered reload would end the page
      if (!signal.aborted) show({ first: true });
    } catch {
      if (!signal.aborted) retry(signal);
    }
  };
  const timer = setTimeout(again, pauseBefore(retries));
  signal.addEventListener("abort", () => clearTimeout(timer));
}

function setRetries(retries) {
  if ((history.state?.retries ?? 0) !== retries) history.replaceState({ ...history.state, retries }, "");
}

// The page of a path: / is Now; "" where there is none.
function pageOf([first = "now", ...more]) {
  return Object.hasOwn(PAGES, first) && (!more.length || WITH_ID.includes(first)) ? first : "";
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// -- history ----------------------------------------------------------------------------------------------------------

async function go(to) {
  if (guard?.isDirty() && !(await guard.confirm())) return;
  if (to !== address()) push(to);
  show();
}

function push(to) {
  if (to === address()) return;
  savePosition();
  historyIndex += 1;
  history.pushState({ index: historyIndex }, "", to);
  shownAddress = address();
}

// Show the page that the way back or forth leads to; return where a page with unsaved text stays.
async function followHistory() {
  const index = history.state?.index ?? historyIndex;
  if (address() === shownAddress && index === historyIndex) return;
  const openGuard = guard;
  if (openGuard?.isOpen) return; // one question answers for several steps
  if (openGuard?.isDirty()) {
    openGuard.isOpen = true;
    if (!(await openGuard.confirm().finally(() => (openGuard.isOpen = false)))) {
      const now = history.state?.index;
      if (address() === shownAddress && now === historyIndex) return;
      if (Number.isInteger(now)) history.go(historyIndex - now);
      else history.pushState({ index: historyIndex }, "", shownAddress);
      return;
    }
  }
  historyIndex = history.state?.index ?? historyIndex;
  savePosition();
  show({ back: true });
}

const address = () => location.pathname + location.search;

// A browser that restores scroll positions itself does so before there is anything to scroll.
function savePosition() {
  const inner = [...main.querySelectorAll("[data-scrolls]")].map((each) => [each.dataset.scrolls, each.scrollTop]);
  positions.set(shownAddress, { top: scrollY, inner: Object.fromEntries(inner) });
}

function restorePosition(position) {
  if (!position) return;
  for (const each of main.querySelectorAll("[data-scrolls]"))
    each.scrollTop = position.inner[each.dataset.scrolls] ?? 0;
  scrollTo(0, position.top);
}

// -- the state of the viewer ------------------------------------------------------------------------------------------

// Read a text to users of screen readers.
function announce(text) {
  document.getElementById("status").textContent = text;
}

const AGAIN = "Run `foreword view` again, and open the link that it prints.";
const STATES = {
  lost: () => `The viewer does not answer. ${RECOVERY}`,
  closed: (why) => `The viewer is closed: ${why}. ${AGAIN}`,
  refused: () => `This page belongs to a viewer that was closed. ${AGAIN}`,
};

const shownState = () => document.getElementById("closed").dataset.state ?? "";

// Show the state of the viewer above every page; nothing where all is well.
function showState(state, why = "") {
  const note = document.getElementById("closed");
  const before = shownState();
  if (!state && !before && !lacksModule && isUnanswered()) show({ first: true });
  if (state === before || (state === "lost" && before === "closed")) return;
  note.dataset.state = state;
  note.hidden = !state;
  fill(note, state ? code(STATES[state](why)) : null);
  if (!state && isUnanswered()) location.reload();
}

// Whether the page is only an error for lack of an answer, and holds no text of the user.
const isUnanswered = () => main.querySelector(".page > [data-unanswered]") && !main.querySelector("textarea");

function startTheme() {
  const button = document.getElementById("theme");
  const chosen = () => document.documentElement.dataset.theme ?? "auto";
  const label = () => (button.textContent = `Theme: ${chosen()}`);
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    choices.keep("theme", next);
    label();
  });
  label();
}

document.addEventListener("click", (event) => {
  const link = clickedLink(event);
  if (!link) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
addEventListener("popstate", followHistory);
addEventListener("pagehide", () => {
  savePosition();
  sessionStorage.setItem("positions", JSON.stringify(Object.fromEntries([...positions].slice(-50))));
});
history.scrollRestoration = "manual";
history.replaceState({ ...history.state, index: historyIndex }, "");
document.getElementById("help").addEventListener("click", keys.showHelp);
startTheme();
keys.start({
  "g n": ["Now", () => go("/now")],
  "g t": ["Timeline", () => go("/timeline")],
  "g m": ["Memories", () => go("/memories")],
  "g y": ["Try it", () => go("/try")],
  "g h": ["Health", () => go("/health")],
  "/": ["Search memories", () => go("/memories")],
  "?": ["These keys", keys.showHelp],
});
live.start(showState);
// Load the other pages too: they are shown while nobody answers, and belong to the same version.
show({ first: true })
  .then(() => Promise.all(Object.values(PAGES).map((load) => load())))
  .catch(() => (lacksModule = true));
