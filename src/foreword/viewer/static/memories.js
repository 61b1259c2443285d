// Show the page "Memories": search as you type, open a memory, and change it.

import { get } from "./api.js";
import { clickedLink, fill, h, setCurrent, walkable } from "./dom.js";
import { formatNumber } from "./format.js";
import { showErrorToast } from "./parts.js";
import { createActions } from "./memories/actions.js";
import { address, readChoice } from "./memories/choice.js";
import { createDetail, lastOpenedId } from "./memories/detail.js";
import { createFacets } from "./memories/facets.js";
import { createResults } from "./memories/results.js";

export const title = "Memories";

const REST = 2000; // milliseconds between two requests after commits
const FACETS_REST = 15_000;

export async function show(root, page) {
  const choice = readChoice(page);
  const search = h("input#mem-q", {
    type: "search",
    dir: "auto",
    value: searchText(choice),
    placeholder: "Search memories",
    autocomplete: "off",
    spellcheck: "false",
    "aria-controls": "mem-list",
    "aria-keyshortcuts": "/",
  });
  const chosen = h("ul.mem-chosen", { "aria-label": "Filters that are on" });
  const all = h("a", { href: address(choice, { view: "", id: "" }) }, "All");
  const waiting = h("a", { href: address(choice, { view: "waiting", id: "" }) }, "Waiting for you");
  // What the parts of the page share.
  const shared = {
    page,
    choice,
    search,
    chosen,
    becomes: [],
    isNarrow,
    reportError,
    showWaiting,
    loadWaiting,
    showView,
  };
  shared.actions = createActions(shared);
  shared.facets = createFacets(shared);
  shared.results = createResults(shared);
  shared.detail = createDetail(shared);
  const { actions, detail, facets, results } = shared;
  fill(
    root,
    h("div.head", h("h1", title), h("nav.mem-views", { "aria-label": "Views" }, all, waiting)),
    h(
      "form.mem-search",
      { role: "search", on: { submit: (event) => event.preventDefault() } },
      h("label.unseen", { for: "mem-q" }, "Search memories"),
      search,
      h("kbd", { "aria-hidden": "true" }, "/"),
    ),
    h("div.mem-panes", facets.node, results.node, detail.node),
  );
  const walk = walkable(results.links, { onChoose: (node) => detail.preview(node.dataset.id) });

  // Show which view it is, and whether a memory is open.
  function showView() {
    setCurrent(all, choice.view ? null : "page");
    setCurrent(waiting, choice.view ? "page" : null);
    root.classList.toggle("has-detail", detail.isOpen());
  }

  function showWaiting(answer) {
    shared.becomes = answer.becomes;
    const count = answer.waiting ? [" ", h("span.chip.warn", formatNumber(answer.waiting))] : null;
    fill(waiting, "Waiting for you", count);
  }

  async function loadWaiting() {
    const answer = await get("/api/review", { limit: 0 }, { signal: page.signal }).catch(() => null);
    if (!answer) return;
    const isFirst = !shared.becomes.length;
    showWaiting(answer);
    if (isFirst && detail.data()?.waits && !detail.form()) detail.draw({ quiet: true }); // with its choices
  }

  function reportError(error) {
    if (error.name !== "AbortError") showErrorToast(error);
    return null;
  }

  // -- keys

  // Someone on a control of a row moves on from its link.
  function focusLink() {
    const row = document.activeElement?.closest?.(".mem-row");
    if (row) results.linkOf(row.dataset.of)?.focus({ preventScroll: true });
  }

  function back(event) {
    if (detail.form()) return detail.leaveForm();
    if (event.target === search && search.value) {
      search.value = choice.q = "";
      return results.refresh();
    }
    if (detail.isOpen()) return detail.close();
    if (event.target !== search) return search.focus();
    if (results.links().length) walk.next();
    else document.getElementById("main").focus({ preventScroll: true });
  }

  async function down() {
    focusLink();
    if (results.hasMore() && results.links().at(-1) === document.activeElement) await results.loadMore();
    walk.next();
  }

  function up() {
    focusLink();
    if (results.links()[0] === document.activeElement) return search.focus();
    walk.previous();
  }

  async function focusSearch() {
    if (isNarrow() && detail.isOpen()) await detail.close();
    search.focus();
    search.select();
  }

  function goToEnd(at) {
    const link = results.links().at(at);
    if (link) walk.choose(link);
  }

  const openChosen = () =>
    results
      .links()
      .find((each) => each.classList.contains("chosen"))
      ?.click();
  page.keys({
    "/": ["To the search box", focusSearch],
    j: ["Next memory", down],
    k: ["Previous memory", up],
    ArrowDown: ["Next memory", down],
    ArrowUp: ["Previous memory", up],
    Home: ["First memory", () => goToEnd(0)],
    End: ["Last memory, and more of them", () => results.loadMore().then(() => goToEnd(-1))],
    Enter: ["Open it", openChosen],
    e: ["Edit", actions.edit],
    p: ["Pin or unpin it", actions.pin],
    f: ["Forget it: shows what will go, and asks", actions.forget],
    u: ["Undo the last action", actions.undoLast],
    w: ["What waits for you", () => waiting.click()],
    "Ctrl+Enter": ["Save the form", () => detail.form()?.submit()],
    Escape: ["Back", back],
  });

  // -- the search box and the links

  addEventListener("beforeunload", (event) => detail.form()?.isDirty() && event.preventDefault(), {
    signal: page.signal,
  });
  search.addEventListener("input", () => {
    choice.q = search.value;
    choice.view = "";
    results.refresh();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "/" && !search.value) return event.preventDefault(); // the key that leads here
    if (event.isComposing || !["ArrowDown", "Enter"].includes(event.key)) return;
    const [first] = results.links();
    if (!first) return;
    event.preventDefault();
    if (event.key === "Enter") detail.open(first.dataset.id, { focus: true });
    else walk.choose(first);
  });
  root.addEventListener("click", (event) => {
    const link = clickedLink(event);
    const [, place, id] = link?.pathname.split("/") ?? [];
    if (link === all || link === waiting) showList(link === waiting ? "waiting" : "");
    else if (place === "memories" && id) detail.open(decodeURIComponent(id), { focus: true });
    else return;
    event.preventDefault();
  });

  async function showList(view) {
    if (isNarrow() && detail.form() && !(await detail.leaveForm())) return;
    if (view === choice.view && choice.id) return detail.close();
    results.writeAddress();
    choice.view = view;
    search.value = searchText(choice);
    if (isNarrow()) choice.id = "";
    page.push(address(choice));
    return results.refresh();
  }

  page.live(() => {
    if (!detail.form()) results.refresh({ quiet: true, recount: facets.age() > FACETS_REST });
    if (choice.id) detail.reload();
  }, REST);

  if (results.restore()) facets.showChosen();
  if (choice.id) detail.open(choice.id, { push: false });
  else detail.showHint();
  results.markOpen();
  showView();
  const lastRow = page.back && !choice.id && results.linkOf(lastOpenedId());
  if (lastRow) lastRow.focus({ preventScroll: true });
  else if (!choice.id && !isNarrow()) search.focus({ preventScroll: true });
  await results.refresh({ quiet: results.isKept() });
  if (!choice.view) loadWaiting();
}

// What waits is not searched; the words are there again with the list of all.
const searchText = (choice) => (choice.view ? "" : choice.q);

const isNarrow = () => matchMedia("(max-width: 52rem)").matches;
