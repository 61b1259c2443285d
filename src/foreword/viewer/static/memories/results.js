// Show the list of memories that fit what is chosen, row by row; more of them when its end is near.

import { latest } from "../api.js";
import * as requests from "./requests.js";
import { address, filtered, named } from "./choice.js";
import { fill, make } from "../dom.js";
import { marks, waits } from "./memory.js";
import { age, redraw, chip, empty, many, number, reorder, trouble } from "../parts.js";

const ROWS = 50; // that are asked for at once
const ASKED = 200; // at most at once, when all that are shown are asked for again; a longer list is, for what one did oneself
const LOW = 70; // pixels of a low row, and of what always stands above the list: as many as are in sight are drawn
const ABOVE = 180; // at once, the others when the browser is idle
const MOST = 500; // rows in the list; whoever scrolls further has not found the right word yet
const SETTLED = 450; // milliseconds after the last answer before facets are counted: who types on is not kept waiting by them
const NOTED = 300; // milliseconds between two addresses: browsers take some hundred in half a minute, and no more

const kept = { key: null, list: null }; // the last list, so that going back shows it at once

export function results(here) {
  const { page, choice } = here;
  const look = latest();
  const again = page.patient();
  let list = { memories: [], next: null, total: null };
  let looking = null; // the question that is out
  let wanted = null; // how to look again, for what was typed or changed meanwhile
  let recounted = false; // whether facets are counted behind it
  let looked = 0;
  let settled = 0;
  let noted = 0;
  let others = 0;
  let drawnOnce = false;
  let tallied = false;
  let undrawn = null; // draws the rows that are not drawn yet
  const lines = new Map(); // id -> its row, and what it was drawn of
  const counted = make("p", { class: "dim mem-count", role: "status" });
  const ends = make("p", { class: "dim mem-ends", hidden: true }); // why a list ends before all are listed
  const rows = make("ul", { class: "mem-results", id: "mem-list", "aria-label": "Memories" });
  const more = make("button", { type: "button", class: "quiet", hidden: true, on: { click: () => next() } }, "More");
  const above = make("div", { class: "mem-above" }, counted);
  const node = make(
    "section",
    { class: "mem-list", "data-scrolls": "list", "aria-label": "Results" },
    above,
    here.chosen,
    rows,
    more,
    ends,
  );
  const within = (signal) => ({ signal: AbortSignal.any([signal, page.signal]) });
  const all = () => [...rows.querySelectorAll(".row")];

  // The list that was left here, if it is the same that is chosen now.
  function begin() {
    if (kept.key !== named(choice)) return false;
    list = kept.list;
    paint({ whole: page.back });
    drawnOnce = true;
    return true;
  }

  function paint({ keep = false, whole = false } = {}) {
    const reads = keep ? reading() : null;
    if (!keep) lines.clear();
    const at = rows.contains(document.activeElement) ? document.activeElement : null;
    const held = at?.closest(".mem-row")?.dataset.of ?? "";
    const place = held ? [...rows.children].findIndex((each) => each.dataset.of === held) : -1;
    const words = litBy(choice.view ? "" : choice.q);
    const first = whole || keep ? list.memories.length : inSight();
    unless(others);
    undrawn = null;
    const drawn = list.memories.slice(0, first).map((each) => row(each, words));
    // A row that stays is not taken out and put back: between the press and the release of a button that loses the click.
    const stays = redraw(rows, () => reorder(rows, drawn));
    const instead = () => all()[Math.min(place, list.memories.length - 1)] ?? document.getElementById("main"); // what came in its place
    if (!stays) instead().focus({ preventScroll: true });
    rest();
    if (!keep && node.scrollTop) node.scrollTop = 0;
    if (reads) readOn(reads);
    if (list.memories.length <= first) return;
    const { memories } = list;
    undrawn = () => {
      undrawn = null;
      rows.append(...memories.slice(first).map((each) => row(each, words)));
      mark();
    };
    others = soon(() => undrawn?.());
  }

  // Who has scrolled reads on at the same line: how far that is changes with what comes above it, and with rows whose height
  // is guessed until they are in sight. On a phone it is the window that scrolls.
  function reading() {
    const scrolled = here.narrow() ? scrollY : node.scrollTop;
    if (!scrolled) return null;
    const edge = here.narrow() ? 0 : node.getBoundingClientRect().top;
    const at = [...rows.children].findIndex((each) => each.getBoundingClientRect().bottom > edge);
    if (at < 0) return null; // the list is not in sight
    const below = [...rows.children].slice(at);
    return { ids: below.map((each) => each.dataset.of), top: below[0].getBoundingClientRect().top, scrolled };
  }

  // On at that line, or at the top where nobody had scrolled; the row that stands there.
  function readOn(line) {
    const { ids, top, scrolled } = line ?? { ids: [], top: 0, scrolled: 0 };
    undrawn?.();
    const drawn = new Map([...rows.children].map((each) => [each.dataset.of, each]));
    const row = drawn.get(ids.find((id) => drawn.has(id))); // the same row, or the next that is still there
    const from = row ? [...rows.children].indexOf(row) : 0;
    const near = [...rows.children].slice(from, from + inSight());
    for (const each of near) each.style.contentVisibility = "visible"; // as high as they are, not as is guessed
    if (here.narrow()) scrollTo(0, row ? scrollY + row.getBoundingClientRect().top - top : scrolled);
    else node.scrollTop = row ? node.scrollTop + row.getBoundingClientRect().top - top : scrolled;
    return row?.querySelector(".row");
  }

  const inSight = () => Math.ceil(Math.max(0, innerHeight - ABOVE) / LOW) + 1;

  // What stands around the rows.
  function rest() {
    const shown = list.memories.length;
    const total = list.total;
    // The end of what was looked at may be none.
    const some = many(total ?? 0, "memory", "memories");
    const says = choice.view ? `${many(total, "thing waits", "things wait")} for you` : some;
    if (counted.textContent !== says) counted.textContent = says; // a screen reader hears of none too, and of nothing twice
    if (!shown) fill(rows, make("li", {}, empty(nothing())));
    more.hidden = !list.next || shown >= MOST;
    ends.textContent = ending(shown, total);
    ends.hidden = !ends.textContent;
    mark();
  }

  function nothing() {
    if (choice.view) return "Nothing waits for you.";
    return filtered(choice) ? "Nothing fits. Try fewer words or filters." : "Nothing is remembered yet.";
  }

  function ending(shown, total) {
    if (choice.view) return shown < total ? `The newest ${number(shown)} are listed. Others follow as you decide.` : "";
    return list.next && shown >= MOST
      ? `The first ${number(shown)} are listed. More words or a filter lead to the others.`
      : "";
  }

  // A row as it was drawn, where nothing of it is another: it keeps its place, its height, and what was chosen in it.
  function row(each, words) {
    const sign = JSON.stringify([
      each,
      age(each.created),
      String(words),
      address(choice, { id: "" }),
      choice.view ? here.becomes : null,
    ]);
    const before = lines.get(each.id);
    if (before?.sign === sign) return before.line;
    const line = rowOf(each, words);
    lines.set(each.id, { sign, line });
    return line;
  }

  function rowOf(each, words) {
    const used = [
      each.used ? `✓ ${number(each.used)} used` : "",
      each.ignored ? `– ${number(each.ignored)} not used` : "",
    ]
      .filter(Boolean)
      .join(" ");
    return make(
      "li",
      { class: "mem-row", "data-of": each.id },
      make(
        "a",
        { class: "row", href: address(choice, { id: each.id }), "data-id": each.id },
        make("span", { class: "row-title", dir: "auto" }, lit(each.title, words)),
        each.excerpt ? make("span", { class: "row-excerpt dim", dir: "auto" }, lit(each.excerpt, words)) : null,
        make(
          "span",
          { class: "figures" },
          chip(each.kind),
          marks(each),
          each.project_name ? make("span", {}, each.project_name) : null,
          make("span", {}, age(each.created)),
          used ? make("span", {}, used) : null,
        ),
      ),
      choice.view ? waits(each, here.actions, { becomes: here.becomes }) : null,
    );
  }

  // The row of the memory that is open looks so.
  function mark() {
    for (const each of all()) {
      const is = each.dataset.id === choice.id;
      each.classList.toggle("chosen", is);
      if (is) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  }

  // The answer to what stands in the box. One question is out at a time: the next is what stands there when it is back.
  async function refresh({ quiet = false, recount = true } = {}) {
    clearTimeout(settled);
    if (looking) {
      wanted = { quiet: quiet && (wanted?.quiet ?? true) };
      recounted ||= recount;
      return looking;
    }
    [wanted, recounted] = [{ quiet }, recount];
    looking = (async () => {
      do {
        ({ quiet } = wanted);
        wanted = null;
        const key = named(choice);
        const count = quiet ? Math.max(ROWS, list.memories.length) : ROWS;
        const got = await look((signal) => (choice.view ? queue(signal) : fromTop(count, within(signal))));
        if (!got || page.signal.aborted) return;
        again.answered();
        looked = performance.now();
        const still = quiet && drawnOnce && JSON.stringify(got.memories) === JSON.stringify(list.memories);
        list = got;
        Object.assign(kept, { key, list });
        here.viewed();
        if (still)
          rest(); // what one reads, or is choosing, is left alone
        else paint({ keep: quiet, whole: page.back && !drawnOnce });
        drawnOnce = true;
      } while (wanted && !page.signal.aborted);
    })();
    try {
      await looking;
    } catch (error) {
      const unasked = quiet && drawnOnce && !wanted; // nobody typed or chose anything: what is read stays
      if (!page.signal.aborted && !unasked) {
        fill(rows, make("li", {}, trouble(error)));
        drawnOnce = false;
        again.failed(error, refresh);
      }
    } finally {
      looking = null;
    }
    if (page.signal.aborted) return;
    if (performance.now() - noted > NOTED) note();
    here.facets.chips();
    clearTimeout(settled);
    const settle = () => {
      note();
      if (recounted) here.facets.tally();
    };
    settled = setTimeout(settle, tallied ? SETTLED : 0);
    tallied = true; // before, nobody types: filters are wanted as soon as the list is there
  }

  // So many from the beginning, in as few questions as there may be, all of them of one choice.
  async function fromTop(count, within) {
    const request = { ...choice };
    const ask = (had, after) => requests.memories(request, { limit: Math.min(ASKED, count - had), after, ...within });
    let got = await ask(0, "");
    while (got.next && got.memories.length < count) {
      const some = await ask(got.memories.length, got.next);
      got = { ...got, memories: [...got.memories, ...some.memories], next: some.next };
    }
    return got;
  }

  function note() {
    noted = performance.now();
    if (address(choice) !== location.pathname + location.search) page.replace(address(choice));
  }

  async function queue(signal) {
    const got = await requests.waiting(choice, within(signal));
    here.showWaiting(got);
    return { memories: [...got.proposals, ...got.notes], next: null, total: got.waiting };
  }

  async function next() {
    if (looking || more.hidden) return;
    more.disabled = true;
    const got = await look((signal) =>
      requests.memories(choice, { limit: ROWS, after: list.next, ...within(signal) }),
    ).catch(here.reportError);
    more.disabled = false;
    if (!got || page.signal.aborted) return;
    undrawn?.(); // those come first
    const words = litBy(choice.q);
    list = { ...list, memories: [...list.memories, ...got.memories], next: got.next };
    kept.list = list;
    rows.append(...got.memories.map((each) => row(each, words)));
    rest();
  }

  const seen = new IntersectionObserver(
    (entries) => entries.some((each) => each.isIntersecting) && !more.hidden && next(),
    { rootMargin: "400px" },
  );
  seen.observe(more);
  page.signal.addEventListener("abort", () => {
    seen.disconnect();
    clearTimeout(settled);
    unless(others);
  });

  return {
    node,
    all,
    begin,
    mark,
    next,
    note,
    reading,
    readOn,
    refresh,
    memories: () => list.memories,
    more: () => Boolean(list.next),
    of: (id) => all().find((each) => each.dataset.id === id),
    whole: () => undrawn?.(),
    kept: () => list === kept.list,
    // How long nothing may be asked again because something was asked just now.
    rests: (pause) => (looking ? 200 : Math.max(0, pause - (performance.now() - looked))),
    // Whether it is too long to be asked for again whenever somebody else does something.
    long: () => list.memories.length > ASKED,
  };
}

// When the browser has nothing else to do, and soon in any case.
const soon = (fn) => (window.requestIdleCallback ? requestIdleCallback(fn, { timeout: 200 }) : setTimeout(fn, 30));
const unless = (number_) => (window.cancelIdleCallback ? cancelIdleCallback(number_) : clearTimeout(number_));

// What finds the beginnings of words that are looked for; null for none.
function litBy(q) {
  const words = q
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((each) => each.length > 1);
  return words.length ? new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, "giu") : null;
}

// A text with these marked.
function lit(text, words) {
  return words ? text.split(words).map((part, at) => (at % 2 ? make("mark", {}, part) : part)) : text;
}
