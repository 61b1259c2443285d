// Show the list of memories that fit the choice, row by row, and load more near its end.

import { get, latestOnly } from "../api.js";
import { button, drawList, fill, h, setCurrent } from "../dom.js";
import { formatAge, formatNumber, pluralize } from "../format.js";
import { chip, empty, errorBox } from "../parts.js";
import { address, hasFilters, listKey, searchOf } from "./choice.js";
import { decision, statusChips } from "./memory.js";

const PAGE = 50; // rows of one request
const LARGEST = 200; // ... when all that are shown are loaded again
const MOST = 500; // rows in the list: more words find what is further down
const SETTLED = 450; // milliseconds after the last answer before facets are counted
const ADDRESS_REST = 300; // milliseconds between two addresses: browsers allow some hundred in half a minute

const lastList = { key: null, list: null }; // the last list: going back shows it at once

export function createResults(shared) {
  const { page, choice } = shared;
  const load = latestOnly();
  const retrier = page.retrier();
  let list = { memories: [], next: null, total: null };
  let isPainted = false;
  let isQuiet = true; // no request since the last answer came from the user
  let recounts = false;
  let hasCounted = false;
  let timer = 0;
  let addressWritten = 0;
  const count = h("p.dim.mem-count", { role: "status" });
  const end = h("p.dim.mem-ends", { hidden: true }); // why the list ends before all are listed
  const rows = h("ul.mem-results#mem-list", { "aria-label": "Memories" });
  const more = button("More", loadMore, { class: "quiet", hidden: true });
  const node = h(
    "section.mem-list",
    { "data-scrolls": "list", "aria-label": "Results" },
    count,
    shared.chosen,
    rows,
    more,
    end,
  );
  const eitherAborts = (signal) => AbortSignal.any([signal, page.signal]);
  const links = () => [...rows.querySelectorAll(".row")];

  // Show the list that was left, if the choice is the same.
  function restore() {
    if (lastList.key !== listKey(choice)) return false;
    list = lastList.list;
    paint();
    return true;
  }

  function paint({ toTop = false } = {}) {
    const focused = [...rows.children].findIndex((each) => each.contains(document.activeElement));
    const words = wordPattern(choice.view ? "" : choice.q);
    const drawnWith = [String(words), address(choice, { id: "" }), choice.view ? shared.becomes : null];
    drawList(rows, list.memories, {
      key: (each) => each.id,
      data: (each) => [each, formatAge(each.created), drawnWith],
      create: (each) => h("li.mem-row", { "data-of": each.id }),
      draw: (each) => row(each, words),
    });
    if (focused >= 0 && !rows.contains(document.activeElement)) {
      const instead = links()[Math.min(focused, list.memories.length - 1)] ?? document.getElementById("main");
      instead.focus({ preventScroll: true });
    }
    paintAround();
    if (toTop) node.scrollTop = 0;
    isPainted = true;
  }

  function paintAround() {
    const { memories, next, total } = list;
    const text = choice.view
      ? `${pluralize(total, "thing waits", "things wait")} for you`
      : pluralize(total ?? 0, "memory", "memories");
    if (count.textContent !== text) count.textContent = text; // a screen reader reads each once
    if (!memories.length) fill(rows, h("li", empty(nothing())));
    const isFull = next && memories.length >= MOST;
    more.hidden = !next || isFull;
    end.hidden = choice.view ? memories.length >= total : !isFull;
    end.textContent = choice.view
      ? `The newest ${formatNumber(memories.length)} are listed. Others follow as you decide.`
      : `The first ${formatNumber(memories.length)} are listed. More words or a filter lead to the others.`;
    markOpen();
  }

  function nothing() {
    if (choice.view) return "Nothing waits for you.";
    return hasFilters(choice) ? "Nothing found. Try fewer words or filters." : "There are no memories yet.";
  }

  function row(memory, words) {
    const usage = [
      memory.used ? `✓ ${formatNumber(memory.used)} used` : "",
      memory.ignored ? `– ${formatNumber(memory.ignored)} not used` : "",
    ].filter(Boolean);
    const figures = [memory.project_name, formatAge(memory.created), usage.join(" ")].filter(Boolean);
    return [
      h(
        "a.row",
        { href: address(choice, { id: memory.id }), "data-id": memory.id },
        h("span.row-title", { dir: "auto" }, highlight(memory.title, words)),
        memory.excerpt ? h("span.row-excerpt.dim", { dir: "auto" }, highlight(memory.excerpt, words)) : null,
        h(
          "span.figures",
          chip(memory.kind),
          statusChips(memory),
          figures.map((text) => h("span", text)),
        ),
      ),
      choice.view ? decision(memory, shared.actions, shared.becomes) : null,
    ];
  }

  function markOpen() {
    for (const link of links()) {
      const isOpen = link.dataset.id === choice.id;
      link.classList.toggle("chosen", isOpen);
      setCurrent(link, isOpen ? "true" : null);
    }
  }

  // Load the list. `quiet`: nobody typed or chose anything, so what is read stays.
  async function refresh({ quiet = false, recount = true } = {}) {
    clearTimeout(timer);
    isQuiet &&= quiet;
    recounts ||= recount;
    const key = listKey(choice);
    try {
      const size = quiet ? Math.max(PAGE, list.memories.length) : PAGE;
      const answer = await load((signal) => (choice.view ? loadWaiting(signal) : loadTop(size, eitherAborts(signal))));
      if (!answer || page.signal.aborted) return;
      retrier.succeeded();
      list = answer;
      Object.assign(lastList, { key, list });
      shared.showView();
      paint({ toTop: !isQuiet });
      isQuiet = true;
    } catch (error) {
      if (page.signal.aborted || (quiet && isPainted)) return;
      fill(rows, h("li", errorBox(error)));
      isPainted = false;
      retrier.failed(error, refresh);
    }
    if (performance.now() - addressWritten > ADDRESS_REST) writeAddress();
    shared.facets.showChosen();
    const settle = () => {
      writeAddress();
      if (recounts) shared.facets.count();
      recounts = false;
    };
    timer = setTimeout(settle, hasCounted ? SETTLED : 0);
    hasCounted = true;
  }

  const request = (wanted, options, signal) => get("/api/memories", { ...searchOf(wanted), ...options }, { signal });

  async function loadTop(size, signal) {
    const wanted = { ...choice };
    let answer = await request(wanted, { limit: Math.min(LARGEST, size) }, signal);
    while (answer.next && answer.memories.length < size) {
      const limit = Math.min(LARGEST, size - answer.memories.length);
      const following = await request(wanted, { limit, after: answer.next }, signal);
      answer = { ...answer, memories: [...answer.memories, ...following.memories], next: following.next };
    }
    return answer;
  }

  async function loadWaiting(signal) {
    const answer = await get("/api/review", { project: choice.project }, { signal: eitherAborts(signal) });
    shared.showWaiting(answer);
    return { memories: answer.notes, next: null, total: answer.waiting };
  }

  async function loadMore() {
    if (more.disabled || more.hidden) return;
    more.disabled = true;
    const options = { limit: PAGE, after: list.next };
    const answer = await load((signal) => request(choice, options, eitherAborts(signal))).catch(shared.reportError);
    more.disabled = false;
    if (!answer || page.signal.aborted) return;
    list = { ...list, memories: [...list.memories, ...answer.memories], next: answer.next };
    lastList.list = list;
    paint();
  }

  function writeAddress() {
    addressWritten = performance.now();
    if (address(choice) !== location.pathname + location.search) page.replace(address(choice));
  }

  const observer = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && loadMore(), {
    rootMargin: "400px",
  });
  observer.observe(more);
  page.signal.addEventListener("abort", () => {
    observer.disconnect();
    clearTimeout(timer);
  });

  return {
    node,
    links,
    restore,
    markOpen,
    loadMore,
    writeAddress,
    refresh,
    memories: () => list.memories,
    hasMore: () => Boolean(list.next),
    linkOf: (id) => links().find((each) => each.dataset.id === id),
    isKept: () => list === lastList.list,
  };
}

// Matches the beginnings of the words that are searched; null for none.
function wordPattern(q) {
  const words = q
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((each) => each.length > 1);
  return words.length ? new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, "giu") : null;
}

const highlight = (text, words) =>
  words ? text.split(words).map((part, index) => (index % 2 ? h("mark", part) : part)) : text;
