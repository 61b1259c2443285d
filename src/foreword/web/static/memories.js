// The page "Memories": what is typed -> the memories that fit, as one types; one of them -> all of it, and what is done with it.

import { get, latest, post } from "./ask.js";
import { fill, make } from "./dom.js";
import { detail, editor, marks, receipt, stands, successor, waits, wouldGo } from "./memory.js";
import { age, anew, ask, chip, empty, many, number, toast, trouble, walkable } from "./parts.js";

export const title = "Memories";

const ROWS = 50; // that are asked for at once
const ASKED = 200; // at most, when all that are shown are asked for again
const SEEN = 16; // of them are drawn at once: a tall window shows so many; the others come when the browser is idle
const MOST = 500; // rows in the list; whoever scrolls further has not found the right word yet
const FACETS = { kind: "Kind", status: "Status", trust: "Trust", scope: "Scope", project: "Project", tag: "Tag", file: "File", pinned: "Pinned" };
const ONE = new Set(["project", "tag", "file", "scope", "pinned"]); // their values may hold a comma
const OPEN = new Set(["kind", "status", "project"]); // groups that are unfolded at first
const SETTLED = 450; // milliseconds after the last answer before facets are counted: who types on is not kept waiting by them
const PREVIEW = 120; // milliseconds that a row must stay chosen before all of it is read
const REST = 2000; // milliseconds between two looks at what others changed
const RECOUNT = 15_000; // milliseconds before facets are counted again for that
const NOTED = 300; // milliseconds between two addresses: browsers take some hundred in half a minute, and no more

let kept = { key: null }; // the last list, so that going back shows it at once

export async function show(root, page) {
  const state = read(page);
  const look = latest();
  const count = latest();
  const open = latest();
  const pick = latest();
  let list = { memories: [], next: null, total: null };
  let told = null; // all of the memory that is open
  let form = null; // what is being written
  let done = []; // entries of what was done here, the last one last
  let becomes = [];
  let looking = null; // the question that is out
  let wanted = false; // what was typed meanwhile
  let settled = 0;
  let preview = 0;
  let looked = 0;
  let tallied = 0;
  let noted = 0;
  let others = 0;
  let drawnOnce = false;
  let later = 0;
  let undrawn = null; // draws the rows that are not drawn yet

  // -- the page
  const search = make("input", { type: "search", id: "mem-q", value: state.q, placeholder: "Search what is remembered", autocomplete: "off", spellcheck: "false", "aria-controls": "mem-list", "aria-keyshortcuts": "/" });
  const all = make("a", { href: address(state, { view: "", id: "" }) }, "All");
  const waitingLink = make("a", { href: address(state, { view: "waiting", id: "" }) }, "Waiting for you");
  const counted = make("p", { class: "dim mem-count", role: "status" });
  const chosen = make("ul", { class: "mem-chosen", "aria-label": "Filters that are on" });
  const rows = make("ul", { class: "mem-results", id: "mem-list", "aria-label": "Memories" });
  const more = make("button", { type: "button", class: "quiet", hidden: true, on: { click: () => next() } }, "More");
  const groups = make("div", { class: "mem-groups" });
  const facets = make("details", { class: "mem-facets", open: !narrow() }, make("summary", {}, "Filters"), groups);
  const results = make("section", { class: "mem-list", "data-scrolls": "list", "aria-label": "Results" }, counted, chosen, rows, more);
  const pane = make("section", { class: "mem-detail", "aria-label": "Memory" });
  fill(
    root,
    make("div", { class: "head" }, make("h1", {}, title), make("nav", { class: "mem-views", "aria-label": "Views" }, all, waitingLink)),
    make("form", { role: "search", class: "mem-search", on: { submit: (event) => event.preventDefault() } }, make("label", { for: "mem-q", class: "unseen" }, "Search memories"), search, make("kbd", { "aria-hidden": "true" }, "/")),
    make("div", { class: "mem-panes" }, facets, results, pane),
  );
  const walk = walkable(() => rows.querySelectorAll(".row"), { onto: (node) => follow(node.dataset.id) });

  const asked = (path, query, signal) => get(path, query, { signal: AbortSignal.any([signal, page.signal]) });

  // -- the list
  function paint({ keep = false, whole = false } = {}) {
    const top = results.scrollTop;
    const node = rows.contains(document.activeElement) ? document.activeElement : null;
    const held = node?.closest(".mem-row")?.dataset.of ?? "";
    const place = held ? [...rows.children].findIndex((each) => each.dataset.of === held) : -1;
    const words = litBy(state.view ? "" : state.q);
    const first = whole || (keep && (top || held)) ? list.memories.length : SEEN;
    unless(others);
    undrawn = null;
    const stays = anew(rows, () => fill(rows, list.memories.slice(0, first).map((each) => row(each, words))));
    if (!stays) (rows.querySelectorAll(".row")[Math.min(place, list.memories.length - 1)] ?? search).focus({ preventScroll: true }); // the one that came in its place
    if (results.scrollTop !== (keep ? top : 0)) results.scrollTop = keep ? top : 0;
    rest();
    if (list.memories.length <= first) return;
    const { memories } = list;
    undrawn = () => {
      undrawn = null;
      rows.append(...memories.slice(first).map((each) => row(each, words)));
      mark();
    };
    others = soon(() => undrawn?.());
  }

  // What stands around the rows.
  function rest() {
    const shown = list.memories.length;
    const total = list.total;
    const words = total === null || total === undefined ? (list.next ? `${number(shown)} and more` : many(shown, "memory", "memories")) : many(total, "memory", "memories");
    counted.textContent = !shown ? "" : state.view ? `${many(total, "thing waits", "things wait")} for you` : words;
    if (!shown) fill(rows, make("li", {}, empty(state.view ? "Nothing waits for you." : filtered(state) ? "Nothing fits. Try fewer words or filters." : "Nothing is remembered yet.")));
    more.hidden = !list.next || shown >= MOST;
    mark();
  }

  function row(each, words) {
    const used = [each.used ? `✓ ${number(each.used)} used` : "", each.ignored ? `– ${number(each.ignored)} not used` : ""].filter(Boolean).join(" ");
    return make(
      "li",
      { class: "mem-row", "data-of": each.id },
      make(
        "a",
        { class: "row", href: address(state, { id: each.id }), "data-id": each.id },
        make("span", { class: "row-title" }, lit(each.title, words)),
        each.gist ? make("span", { class: "row-gist dim" }, lit(each.gist, words)) : null,
        make("span", { class: "figures" }, chip(each.kind), marks(each), each.project_name ? make("span", {}, each.project_name) : null, make("span", {}, age(each.created)), used ? make("span", {}, used) : null),
      ),
      state.view ? waits(each, doing, { becomes }) : null,
    );
  }

  const rowOf = (id) => [...rows.querySelectorAll(".row")].find((each) => each.dataset.id === id);

  function mark() {
    for (const each of rows.querySelectorAll(".row")) {
      const is = each.dataset.id === state.id;
      each.classList.toggle("chosen", is);
      if (is) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
    for (const [link, is] of [[all, !state.view], [waitingLink, Boolean(state.view)]]) {
      if (is) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    pane.classList.toggle("is-open", Boolean(state.id) || pane.classList.contains("has-receipt"));
    root.classList.toggle("has-detail", pane.classList.contains("is-open"));
  }

  // The answer to what stands in the box. One question is out at a time: the next is what stands there when it is back.
  async function refresh({ quiet = false, recount = true } = {}) {
    clearTimeout(settled);
    if (looking) {
      wanted = true;
      return looking;
    }
    looking = (async () => {
      do {
        wanted = false;
        const words = asking(state);
        const got = await look((signal) => (state.view ? queue(signal) : asked("/api/memories", { ...words, limit: quiet ? Math.min(ASKED, Math.max(ROWS, list.memories.length)) : ROWS }, signal)));
        if (!got || page.signal.aborted) return;
        looked = performance.now();
        const still = quiet && drawnOnce && JSON.stringify(got.memories) === JSON.stringify(list.memories.slice(0, got.memories.length)) && got.memories.length === list.memories.length;
        list = got;
        kept = { ...kept, key: JSON.stringify([state.view, words]), list };
        if (still) rest(); // what one reads, or is choosing, is left alone
        else paint({ keep: quiet, whole: page.back && !drawnOnce });
        drawnOnce = true;
      } while (wanted && !page.signal.aborted);
    })();
    try {
      await looking;
    } catch (error) {
      if (!page.signal.aborted) fill(rows, make("li", {}, trouble(error)));
    } finally {
      looking = null;
    }
    if (page.signal.aborted) return;
    if (performance.now() - noted > NOTED) note();
    chips();
    clearTimeout(settled);
    settled = setTimeout(() => (note(), recount && tally()), SETTLED);
  }

  function note() {
    noted = performance.now();
    if (address(state) !== location.pathname + location.search) page.replace(address(state));
  }

  async function queue(signal) {
    const got = await asked("/api/review", { project: state.project }, signal);
    becomes = got.becomes;
    tell(got.waiting);
    const memories = [...got.proposals, ...got.notes];
    return { memories, next: null, total: got.waiting };
  }

  const tell = (waiting) => fill(waitingLink, "Waiting for you", waiting ? [" ", make("span", { class: "chip warn" }, number(waiting))] : null);

  async function next() {
    if (looking || more.hidden) return;
    more.disabled = true;
    const got = await look((signal) => asked("/api/memories", { ...asking(state), limit: ROWS, after: list.next }, signal)).catch(tellTrouble);
    more.disabled = false;
    if (!got || page.signal.aborted) return;
    undrawn?.(); // those come first
    const words = litBy(state.q);
    list = { ...list, memories: [...list.memories, ...got.memories], next: got.next };
    kept = { ...kept, list };
    rows.append(...got.memories.map((each) => row(each, words)));
    rest();
  }

  // -- facets, counted when everything else is painted
  async function tally() {
    if (page.signal.aborted || state.view) return fill(groups, state.view ? make("p", { class: "dim" }, "Filters are for all memories.") : null);
    tallied = performance.now();
    try {
      const got = await count((signal) => asked("/api/facets", asking(state), signal));
      if (got && !page.signal.aborted) draw(got.facets, got.exact);
    } catch (error) {
      fill(groups, trouble(error));
    }
  }

  function draw(given, exact) {
    const parts = () => [
      Object.entries(FACETS).map(([name, label]) => {
        const values = given[name] ?? [];
        if (!values.length) return null;
        const is = OPEN.has(name) || chosenOf(name).length > 0;
        return make("details", { open: is, "data-facet": name }, make("summary", { "data-do": name }, label), make("ul", {}, values.map((each) => value(name, each))));
      }),
      exact === false ? make("p", { class: "dim" }, "Some counts are of the newest alone.") : null,
    ];
    const at = document.activeElement?.name;
    if (!anew(groups, () => fill(groups, parts()))) ([...groups.querySelectorAll("input")].find((each) => each.name === at) ?? search).focus({ preventScroll: true });
  }

  function value(name, { value: given, label, count: times }) {
    const text = String(given);
    const box = make("input", { type: "checkbox", name, value: text, "data-do": `${name} ${text}`, checked: chosenOf(name).includes(text), on: { change: () => toggle(name, text) } });
    return make("li", {}, make("label", {}, box, make("span", { class: "mem-value", title: text }, label || text), " ", make("span", { class: "dim figure" }, number(times))));
  }

  const chosenOf = (name) => (state[name] ? (ONE.has(name) ? [state[name]] : state[name].split(",")) : []);

  function toggle(name, text) {
    const before = chosenOf(name);
    const after = before.includes(text) ? before.filter((each) => each !== text) : ONE.has(name) ? [text] : [...before, text];
    state[name] = after.join(",");
    state.view = "";
    refresh();
  }

  function chips() {
    const on = Object.keys(FACETS).flatMap((name) => chosenOf(name).map((text) => [name, text]));
    const held = chosen.contains(document.activeElement);
    fill(
      chosen,
      on.map(([name, text]) => make("li", {}, make("button", { type: "button", class: "chip mem-chip", "aria-label": `Without ${FACETS[name]} ${text}`, on: { click: () => toggle(name, text) } }, `${FACETS[name].toLowerCase()}: ${named(name, text)} ×`))),
      on.length > 1 ? make("li", {}, make("button", { type: "button", class: "quiet", on: { click: clear } }, "Clear all")) : null,
    );
    if (held) (chosen.querySelector("button") ?? search).focus({ preventScroll: true });
  }

  // A value as people call it, where a row or a facet told.
  function named(name, text) {
    if (name === "pinned") return text === "1" ? "yes" : "no";
    if (name !== "project") return text;
    return list.memories.find((each) => each.project === text)?.project_name ?? text.split("/").at(-1);
  }

  function clear() {
    for (const name of Object.keys(FACETS)) state[name] = "";
    refresh();
  }

  // -- one of them
  async function reveal(id, { push = true, focus = false, quiet = false } = {}) {
    if (form && !(await leave())) return;
    state.id = id;
    if (id) kept.opened = id;
    pane.classList.remove("has-receipt");
    if (push) page.push(address(state));
    mark();
    if (!id) {
      told = null;
      return hint();
    }
    try {
      const got = await open((signal) => asked(`/api/memories/${encodeURIComponent(id)}`, {}, signal));
      if (!got || page.signal.aborted || state.id !== id) return; // it was shut before it came
      if (quiet && told && same(told, got)) return;
      told = got;
      drawn({ quiet });
      if (focus) {
        pane.querySelector("#mem-title").focus({ preventScroll: true });
        if (narrow()) scrollTo(0, 0);
      }
    } catch (error) {
      if (page.signal.aborted) return;
      told = null;
      fill(pane, back(), trouble(error));
    }
  }

  function drawn({ quiet = false } = {}) {
    const top = pane.scrollTop;
    const draw = () => fill(pane, back(), make("article", { class: "mem-one", "aria-labelledby": "mem-title" }, detail(told, doing)));
    const held = pane.contains(document.activeElement);
    const stays = quiet ? anew(pane, draw) : (draw(), !held);
    pane.scrollTop = quiet ? top : 0;
    if (!stays) pane.querySelector("#mem-title").focus({ preventScroll: true });
  }

  const back = () => make("p", { class: "mem-back" }, make("button", { type: "button", class: "quiet", on: { click: shut } }, "← All results"));

  function hint() {
    fill(pane, make("div", { class: "empty mem-hint" }, make("p", {}, "Choose a memory to see where it is from, what it is linked to, and where it was used."), make("p", {}, make("kbd", {}, "j"), " ", make("kbd", {}, "k"), " move, ", make("kbd", {}, "Enter"), " opens, ", make("kbd", {}, "?"), " lists all keys")));
  }

  // A row that was moved to by keys: where one is open already, this one is shown instead.
  function follow(id) {
    if (!state.id || narrow() || form) return;
    clearTimeout(preview);
    preview = setTimeout(() => {
      state.id = id;
      page.replace(address(state));
      reveal(id, { push: false });
    }, PREVIEW);
  }

  async function shut() {
    if (form) return leave();
    const id = state.id;
    await reveal("");
    (rowOf(id) ?? search).focus({ preventScroll: !narrow() });
  }

  // -- what is done with it
  const doing = {
    becomes: () => becomes,
    edit: () => act(async (one) => write(editor(one, { save: (changes) => attempt(() => saved(one, changes)), cancel: leave }))),
    supersede: () =>
      act(async (one) =>
        write(
          successor(one, {
            find: (q) => pick((signal) => asked("/api/memories", { q, limit: 8, status: "active", project: one.scope.startsWith("project:") ? one.project : "" }, signal)).then((got) => got && got.memories),
            save: (given) => attempt(async () => {
              const got = await post("/api/supersede", { old: one.id, ...given });
              form = null;
              await after(`Superseded by “${got.by.title}”.`, got.entry.number);
            }),
            cancel: leave,
          }),
        ),
      ),
    pin: () =>
      act(async (one) => {
        const off = one.pinned;
        told = { ...told, memory: { ...one, pinned: !off } }; // it can be taken back at once, so it is shown at once
        drawn({ quiet: true });
        try {
          const got = await post("/api/pin", { id: one.id, off });
          await after(off ? "No longer pinned." : "Pinned: it ranks higher.", got.entry.number);
        } catch (error) {
          await reveal(one.id, { push: false });
          throw error;
        }
      }),
    forget: () =>
      act(async (one) => {
        const would = await post("/api/forget", { ids: [one.id], dry_run: true });
        const why = make("input", { name: "why", placeholder: "Why, for the log (may stay empty)", "aria-label": "Why, for the log", autofocus: true, on: { keydown: (event) => event.key === "Enter" && event.preventDefault() } });
        const yes = await ask({ title: "Forget this for good?", body: [wouldGo(would), why], yes: "Forget for good", danger: true, read: () => ({ why: why.value }) });
        if (!yes) return;
        told = null;
        state.id = ""; // nobody looks at it again meanwhile
        fill(pane, make("p", { class: "empty", role: "status" }, "Forgetting, and looking through every file …"));
        const got = await post("/api/forget", { ids: [one.id], why: yes.why }).catch(async (error) => {
          await reveal(one.id, { push: false });
          throw error;
        });
        done = [];
        page.push(address(state));
        fill(pane, back(), receipt(got));
        pane.classList.add("has-receipt");
        pane.querySelector(".mem-receipt").focus({ preventScroll: true });
        page.say(got.left.length ? "Forgotten; something is left" : "Forgotten for good; 0 left");
        await refresh({ quiet: true });
        waiting();
      }),
    undo: (number_) =>
      attempt(async () => {
        const got = await post("/api/undo", { entry: number_ });
        const why = got.refused[number_];
        done = done.filter((each) => each !== number_);
        if (why) return toast(`It stays as it is: ${why}`);
        await after("Taken back.", got.undone[0].number, { again: true });
      }),
    undoLast: () => {
      const last = done.at(-1) ?? told?.history.find(stands)?.number;
      if (last) doing.undo(last);
      else toast("There is nothing to take back.");
    },
    decide: (one, what, more_ = {}) =>
      attempt(async () => {
        const got = await post("/api/review", { do: what, id: one.id, ...more_ });
        const words = { accept: "Accepted: it is a rule now.", refuse: "Refused.", promote: `Promoted: it is a ${got.memory.kind} now.`, discard: "Discarded." };
        await after(words[what], got.entry);
      }),
    facet: (name, text) => {
      state.q = search.value = "";
      for (const each of Object.keys(FACETS)) state[each] = "";
      state[name] = text;
      state.view = "";
      if (narrow()) reveal("", { push: true });
      refresh();
    },
  };

  // Do something with the memory that is open, or with the row that is chosen.
  async function act(fn) {
    if (form) return;
    const id = document.activeElement?.closest?.(".row")?.dataset.id ?? state.id;
    if (!id) return toast("Choose a memory first.");
    clearTimeout(preview); // a row that was just moved to would be read a second time, and the first answer given up
    if (!told || told.memory.id !== id) await reveal(id);
    if (told?.memory.id === id) await attempt(() => fn(told.memory));
  }

  async function attempt(fn) {
    try {
      await fn();
    } catch (error) {
      tellTrouble(error);
    }
  }

  function tellTrouble(error) {
    if (error.name !== "AbortError" && !page.signal.aborted) toast([error.message, error.hint].filter(Boolean).join(": "));
    return null;
  }

  // What was done is true in the list and in the detail before anybody is told.
  async function after(words, entry, { again = false } = {}) {
    if (!again) done.push(entry);
    await Promise.all([refresh({ quiet: true }), state.id ? reveal(state.id, { push: false, quiet: true }) : null]);
    if (!state.view) waiting();
    page.say(words);
    toast(words, { undo: () => doing.undo(entry) });
  }

  async function saved(one, changes) {
    if (!Object.keys(changes).length) return leave();
    const got = await post(`/api/memories/${encodeURIComponent(one.id)}`, changes);
    form = null;
    told = null;
    await after(`Revised: ${got.entry.why}.`, got.entry.number);
    pane.querySelector("[data-do=edit]")?.focus();
  }

  function write(made) {
    form = made;
    fill(pane, made.node);
    made.focus();
  }

  // Leave what is being written; what would be lost is asked for.
  async function leave() {
    if (form.dirty() && !(await ask({ title: "Leave without saving?", body: make("p", {}, "What you wrote here is not kept."), yes: "Leave", danger: true }))) return false;
    form = null;
    if (told) {
      drawn();
      pane.querySelector("#mem-title").focus({ preventScroll: true });
    } else hint();
    return true;
  }

  async function waiting() {
    const got = await get("/api/review", { limit: 0 }, { signal: page.signal }).catch(() => null);
    if (!got) return;
    const untold = !becomes.length;
    becomes = got.becomes;
    tell(got.waiting);
    if (untold && told?.waits === "note" && !form) drawn({ quiet: true }); // what it may become was not known
  }

  function escape(event) {
    if (form) return leave();
    if (event.target === search && search.value) {
      search.value = state.q = "";
      return refresh();
    }
    if (state.id || pane.classList.contains("has-receipt")) return shut();
    if (event.target === search) walk.next();
    else search.focus();
  }

  async function down() {
    const all_ = [...rows.querySelectorAll(".row")];
    if (all_.length && all_.at(-1) === document.activeElement && list.next) await next();
    walk.next();
  }

  function ends(at) {
    undrawn?.();
    const node = [...rows.querySelectorAll(".row")].at(at);
    if (node) walk.choose(node);
  }

  function up() {
    if (rows.querySelector(".row") === document.activeElement) return search.focus();
    walk.previous();
  }

  // -- what a person does
  search.addEventListener("input", () => {
    state.q = search.value;
    state.view = "";
    refresh();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "/" && !search.value) return event.preventDefault(); // who goes to the box by key is there already
    if (event.isComposing || !["ArrowDown", "Enter"].includes(event.key)) return;
    const first = rows.querySelector(".row");
    if (!first) return;
    event.preventDefault();
    if (event.key === "Enter") reveal(first.dataset.id, { focus: true });
    else walk.choose(first);
  });
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain) return;
    if (link === all || link === waitingLink) {
      event.preventDefault();
      const view = link === waitingLink ? "waiting" : "";
      if (view === state.view && state.id) return shut(); // it is the list already: the memory before it goes
      state.view = view;
      if (narrow()) state.id = "";
      page.push(address(state));
      return refresh();
    }
    const [, where, id] = link.pathname.split("/");
    if (where !== "memories" || !id) return;
    event.preventDefault();
    reveal(decodeURIComponent(id), { focus: true });
  });
  const seen = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && !more.hidden && next(), { rootMargin: "400px" });
  seen.observe(more);
  page.signal.addEventListener("abort", () => {
    seen.disconnect();
    clearTimeout(settled);
    clearTimeout(preview);
    clearTimeout(later);
    unless(others);
  });
  page.keys({
    "/": ["To the search box", () => (search.focus(), search.select())],
    j: ["Next memory", down],
    k: ["Previous memory", up],
    ArrowDown: ["Next memory", down],
    ArrowUp: ["Previous memory", up],
    Home: ["First memory", () => ends(0)],
    End: ["Last memory, and more of them", async () => (await next(), ends(-1))],
    Enter: ["Open it", () => rows.querySelector(".row.chosen")?.click()],
    e: ["Edit", doing.edit],
    p: ["Pin or unpin", doing.pin],
    s: ["Supersede", doing.supersede],
    f: ["Forget: shows what will go, and asks", doing.forget],
    u: ["Undo", doing.undoLast],
    w: ["What waits for you", () => waitingLink.click()],
    "Ctrl+Enter": ["Save what is written", () => form?.submit()],
    Escape: ["Back", escape],
  });
  page.live(lookAgain);

  // What others changed is seen soon, and what they change right after it a moment later.
  function lookAgain() {
    const now = performance.now();
    clearTimeout(later);
    if (page.signal.aborted || form || list.memories.length > ASKED) return;
    if (looking || now - looked < REST) {
      later = setTimeout(lookAgain, Math.max(200, REST - (now - looked)));
      return;
    }
    refresh({ quiet: true, recount: now - tallied > RECOUNT });
    if (state.id) reveal(state.id, { push: false, quiet: true });
  }

  // -- begin
  if (kept.key === JSON.stringify([state.view, asking(state)])) {
    list = kept.list;
    paint({ whole: page.back });
    drawnOnce = true;
    chips();
  }
  if (state.id) reveal(state.id, { push: false });
  else hint();
  mark();
  const left = page.back && !state.id && rowOf(kept.opened); // who comes back stands where the way led on
  if (left) left.focus({ preventScroll: true });
  else if (!state.id && !narrow()) search.focus({ preventScroll: true });
  await refresh({ quiet: list === kept.list });
  if (!state.view) waiting();
}

// When the browser has nothing else to do, and soon in any case.
const soon = (fn) => (window.requestIdleCallback ? requestIdleCallback(fn, { timeout: 200 }) : setTimeout(fn, 30));
const unless = (number_) => (window.cancelIdleCallback ? cancelIdleCallback(number_) : clearTimeout(number_));

const narrow = () => matchMedia("(max-width: 52rem)").matches;

function read(page) {
  const state = { id: page.path[1] ?? "", q: page.query.get("q") ?? "", view: page.query.get("view") ?? "" };
  for (const name of Object.keys(FACETS)) state[name] = page.query.get(name) ?? "";
  return state;
}

// What is asked of the worker.
const asking = (state) => Object.fromEntries(["q", ...Object.keys(FACETS)].map((name) => [name, state[name]]));

const filtered = (state) => Object.values(asking(state)).some(Boolean);

function address(state, other = {}) {
  const now = { ...state, ...other };
  const said = new URLSearchParams();
  for (const name of ["q", ...Object.keys(FACETS), "view"]) if (now[name]) said.set(name, now[name]);
  return `/memories${now.id ? `/${encodeURIComponent(now.id)}` : ""}${said.size ? `?${said}` : ""}`;
}

// Whether nothing is different but what changes with the clock.
function same(before, after) {
  const lasting = ({ score, why, ms, ...rest }) => JSON.stringify(rest);
  return lasting(before) === lasting(after);
}

// What finds the beginnings of words that are looked for; null for none.
function litBy(q) {
  const words = q.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((each) => each.length > 1);
  return words.length ? new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, "giu") : null;
}

// A text with these marked.
function lit(text, words) {
  return words ? text.split(words).map((part, at) => (at % 2 ? make("mark", {}, part) : part)) : text;
}
