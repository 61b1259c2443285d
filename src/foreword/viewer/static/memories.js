// Show the page "Memories": search as one types, open a memory, and change it.

import * as requests from "./memories/requests.js";
import { address, read } from "./memories/choice.js";
import { actions } from "./memories/actions.js";
import { fill, make } from "./dom.js";
import { facets } from "./memories/facets.js";
import { lastOpened, opened } from "./memories/opened.js";
import { number, toastTrouble, walkable } from "./parts.js";
import { results } from "./memories/results.js";

export const title = "Memories";

const REST = 2000; // milliseconds between two looks at what others changed
const RECOUNT = 15_000; // milliseconds before facets are counted again for that

export async function show(root, page) {
  const choice = read(page);
  const search = make("input", {
    type: "search",
    id: "mem-q",
    dir: "auto",
    value: searched(choice),
    placeholder: "Search what is remembered",
    autocomplete: "off",
    spellcheck: "false",
    "aria-controls": "mem-list",
    "aria-keyshortcuts": "/",
  });
  const chosen = make("ul", { class: "mem-chosen", "aria-label": "Filters that are on" });
  // What its parts know of each other: each adds itself, and asks the others by name.
  const here = {
    page,
    choice,
    root,
    search,
    chosen,
    becomes: [],
    narrow,
    reportError,
    showWaiting,
    loadWaiting,
    viewed,
    cursor,
    back,
  };
  const all = make("a", { href: address(choice, { view: "", id: "" }) }, "All");
  const waiting = make("a", { href: address(choice, { view: "waiting", id: "" }) }, "Waiting for you");
  here.actions = actions(here);
  here.facets = facets(here);
  here.results = results(here);
  here.opened = opened(here);
  fill(
    root,
    make(
      "div",
      { class: "head" },
      make("h1", {}, title),
      make("nav", { class: "mem-views", "aria-label": "Views" }, all, waiting),
    ),
    make(
      "form",
      { role: "search", class: "mem-search", on: { submit: (event) => event.preventDefault() } },
      make("label", { for: "mem-q", class: "unseen" }, "Search memories"),
      search,
      make("kbd", { "aria-hidden": "true" }, "/"),
    ),
    make("div", { class: "mem-panes" }, here.facets.node, here.results.node, here.opened.node),
  );
  const walk = walkable(here.results.all, { onto: (node) => here.opened.follow(node.dataset.id) });

  // Which of the two views it is, and whether a memory is open.
  function viewed() {
    for (const [link, is] of [
      [all, !choice.view],
      [waiting, Boolean(choice.view)],
    ]) {
      if (is) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    here.opened.node.classList.toggle("is-open", here.opened.isOpen());
    root.classList.toggle("has-detail", here.opened.isOpen());
  }

  function showWaiting(got) {
    here.becomes = got.becomes;
    fill(
      waiting,
      "Waiting for you",
      got.waiting ? [" ", make("span", { class: "chip warn" }, number(got.waiting))] : null,
    );
  }

  async function loadWaiting() {
    const got = await requests.waiting({}, { limit: 0, signal: page.signal }).catch(() => null);
    if (!got) return;
    const unknown = !here.becomes.length;
    showWaiting(got);
    if (unknown && here.opened.data()?.waits === "note" && !here.opened.form()) here.opened.draw({ quiet: true }); // what it may become was not known
  }

  function reportError(error) {
    if (error.name !== "AbortError") toastTrouble(error); // also on the next page: what was not done is no secret
    return null;
  }

  // -- keys
  // The memory whose row one stands on.
  function cursor() {
    const on =
      document.activeElement?.closest?.(".mem-row") ??
      here.results
        .all()
        .find((each) => each.classList.contains("chosen"))
        ?.closest(".mem-row");
    return on?.dataset.of;
  }

  // Where who stood on something that is gone stands now: not in the box, where a key is a letter.
  function back() {
    (here.results.of(cursor()) ?? here.results.all()[0] ?? document.getElementById("main")).focus({
      preventScroll: true,
    });
  }

  // Who stands on a row's box walks on from its row.
  function onto() {
    const at = document.activeElement?.closest?.(".mem-row");
    if (at) here.results.of(at.dataset.of)?.focus({ preventScroll: true });
  }

  function stepBack(event) {
    if (here.opened.form()) return here.opened.leave();
    if (event.target === search && search.value) {
      search.value = choice.q = "";
      return here.results.refresh();
    }
    if (here.opened.isOpen()) return here.opened.shut();
    if (event.target !== search) return search.focus();
    if (here.results.all().length) walk.next();
    else document.getElementById("main").focus({ preventScroll: true }); // there is no row to stand on
  }

  async function down() {
    onto();
    if (here.results.more() && here.results.all().at(-1) === document.activeElement) await here.results.next();
    walk.next();
  }

  function up() {
    onto();
    if (here.results.all()[0] === document.activeElement) return search.focus();
    walk.previous();
  }

  // On a phone a memory that is open hides the box.
  async function toSearch() {
    if (narrow() && here.opened.isOpen()) await here.opened.shut();
    search.focus();
    search.select();
  }

  function ends(at) {
    here.results.whole();
    const node = here.results.all().at(at);
    if (node) walk.choose(node);
  }

  page.keys({
    "/": ["To the search box", toSearch],
    j: ["Next memory", down],
    k: ["Previous memory", up],
    ArrowDown: ["Next memory", down],
    ArrowUp: ["Previous memory", up],
    Home: ["First memory", () => ends(0)],
    End: [
      "Last memory, and more of them",
      async () => {
        await here.results.next();
        ends(-1);
      },
    ],
    Enter: [
      "Open it",
      () =>
        here.results
          .all()
          .find((each) => each.classList.contains("chosen"))
          ?.click(),
    ],
    e: ["Edit", here.actions.edit],
    p: ["Pin or unpin it", here.actions.pin],
    f: ["Forget it: shows what will go, and asks", here.actions.forget],
    u: ["Undo what was done last", here.actions.undoLast],
    w: ["What waits for you", () => waiting.click()],
    "Ctrl+Enter": ["Save what is written", () => here.opened.form()?.submit()],
    Escape: ["Back", stepBack],
  });

  addEventListener("beforeunload", (event) => here.opened.form()?.dirty() && event.preventDefault(), {
    signal: page.signal,
  });

  // -- the box and the links
  search.addEventListener("input", () => {
    choice.q = search.value;
    choice.view = "";
    here.results.refresh();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "/" && !search.value) return event.preventDefault(); // who goes to the box by key is there already
    if (event.isComposing || !["ArrowDown", "Enter"].includes(event.key)) return;
    const first = here.results.all()[0];
    if (!first) return;
    event.preventDefault();
    if (event.key === "Enter") here.opened.reveal(first.dataset.id, { focus: true });
    else walk.choose(first);
  });
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain) return;
    if (link === all || link === waiting) {
      event.preventDefault();
      return view(link === waiting ? "waiting" : "");
    }
    const [, where, id] = link.pathname.split("/");
    if (where !== "memories" || !id) return;
    event.preventDefault();
    here.opened.reveal(decodeURIComponent(id), { focus: true });
  });

  async function view(other) {
    if (narrow() && here.opened.form() && !(await here.opened.leave())) return;
    if (other === choice.view && choice.id) return here.opened.shut(); // it is the list already: the memory before it goes
    here.results.note();
    choice.view = other;
    search.value = searched(choice);
    if (narrow()) choice.id = "";
    page.push(address(choice));
    return here.results.refresh();
  }

  // -- what others changed is seen soon, and what they change right after it a moment later
  let later = 0;
  let reread = -REST; // when the memory that is open was read again for that
  page.signal.addEventListener("abort", () => clearTimeout(later));
  page.live(lookAgain);

  function lookAgain() {
    clearTimeout(later);
    if (page.signal.aborted) return;
    const pause = Math.max(here.results.rests(REST), reread + REST - performance.now());
    if (pause > 0) {
      later = setTimeout(lookAgain, Math.max(200, pause));
      return;
    }
    reread = performance.now();
    if (here.opened.form()) return here.opened.again();
    if (!here.results.long()) here.results.refresh({ quiet: true, recount: here.facets.age() > RECOUNT });
    if (choice.id) here.opened.again(); // it is followed beside a list that is too long to be
  }

  // -- begin
  if (here.results.begin()) here.facets.chips();
  if (choice.id) here.opened.reveal(choice.id, { push: false });
  else here.opened.hint();
  here.results.mark();
  viewed();
  const left = page.back && !choice.id && here.results.of(lastOpened()); // who comes back stands where the way led on
  if (left) left.focus({ preventScroll: true });
  else if (!choice.id && !narrow()) search.focus({ preventScroll: true });
  await here.results.refresh({ quiet: here.results.kept() });
  if (!choice.view) loadWaiting();
}

// What the box says: what waits is not searched, and the words are there again with the list of all.
const searched = (choice) => (choice.view ? "" : choice.q);

const narrow = () => matchMedia("(max-width: 52rem)").matches;
