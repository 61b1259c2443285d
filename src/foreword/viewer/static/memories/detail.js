// Show the open memory beside the list, or its form, or the receipt of a forgotten one.

import { get, latestOnly } from "../api.js";
import { button, fill, h, redraw } from "../dom.js";
import { memoryPath } from "../format.js";
import { confirm, errorBox } from "../parts.js";
import { address, listKey } from "./choice.js";
import { receipt } from "./forget.js";
import { drawMemory } from "./memory.js";

const PREVIEW = 120; // milliseconds that a row must stay chosen before its memory is loaded

let lastOpened = ""; // who comes back stands on its row
let leftList = null; // on a phone, where a memory hides the list: the list's key and scroll position

export const lastOpenedId = () => lastOpened;

export function createDetail(shared) {
  const { page, choice } = shared;
  const load = latestOnly();
  const retrier = page.retrier();
  let data = null;
  let form = null;
  let timer = 0;
  let question = null;
  const node = h("section.mem-detail", { "aria-label": "Memory" });
  page.signal.addEventListener("abort", () => clearTimeout(timer));
  page.guard(() => form?.isDirty(), mayLeave);
  if (!page.back) leftList = null;

  async function open(id, { push = true, focus = false, quiet = false } = {}) {
    if (form && (!(await leaveForm()) || page.signal.aborted)) return;
    if (push) shared.results.writeAddress(); // what was typed a moment ago belongs to the entry that is left
    if (push && id && shared.isNarrow() && !isOpen()) leftList = { key: listKey(choice), top: scrollY };
    choice.id = id;
    if (id) lastOpened = id;
    node.classList.remove("has-receipt");
    if (push) page.push(address(choice));
    shared.results.markOpen();
    shared.showView();
    if (!id) {
      clear();
      return showHint();
    }
    try {
      const answer = await load((signal) =>
        get(`/api${memoryPath(id)}`, { full: true }, { signal: AbortSignal.any([signal, page.signal]) }),
      );
      if (!answer || page.signal.aborted || choice.id !== id) return;
      if (quiet && data && isSame(data, answer)) return;
      data = answer;
      retrier.succeeded();
      page.name(data.memory.title);
      draw({ quiet });
      if (focus) focusTitle();
      if (focus && shared.isNarrow()) scrollTo(0, 0);
    } catch (error) {
      if (page.signal.aborted || choice.id !== id) return;
      if (quiet && data && error.status !== 404) return;
      clear();
      fill(node, backButton(), errorBox(error));
      retrier.failed(error, () => choice.id === id && !data && !form && open(id, { push: false }));
    }
  }

  function clear() {
    data = null;
    page.name("");
  }

  function draw({ quiet = false } = {}) {
    const top = node.scrollTop;
    const content = () => h("article.mem-one", { "aria-labelledby": "mem-title" }, drawMemory(data, shared.actions));
    const drawContent = () => fill(node, backButton(), content());
    let keepsFocus = !node.contains(document.activeElement);
    if (quiet) keepsFocus = redraw(node, drawContent);
    else drawContent();
    node.scrollTop = quiet ? top : 0;
    if (!keepsFocus) focusTitle();
  }

  const focusTitle = () => node.querySelector("#mem-title").focus({ preventScroll: true });

  const backButton = () => h("p.mem-back", button("← All results", close, { class: "quiet" }));

  const showHint = () =>
    fill(
      node,
      h(
        "div.empty.mem-hint",
        h("p", "Choose a memory to see where it is from, what it is linked to, and where it was used."),
        h(
          "p",
          h("kbd", "↓"),
          " ",
          h("kbd", "↑"),
          " move, ",
          h("kbd", "Enter"),
          " opens, ",
          h("kbd", "?"),
          " lists all keys",
        ),
      ),
    );

  // Show the memory of a row that was reached by keys instead of the open one.
  function preview(id) {
    if (!choice.id || shared.isNarrow() || form) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      choice.id = id;
      page.replace(address(choice));
      open(id, { push: false });
    }, PREVIEW);
  }

  async function close() {
    if (form) return leaveForm();
    const { id } = choice;
    await open("");
    const isLeft = shared.isNarrow() && leftList?.key === listKey(choice);
    if (isLeft) scrollTo(0, leftList.top);
    (shared.results.linkOf(id) ?? shared.search).focus({ preventScroll: isLeft || !shared.isNarrow() });
  }

  function showForm(newForm) {
    form = newForm;
    fill(node, form.node);
    form.focus();
  }

  // Whether the form may be left; asks where changes would be lost.
  function mayLeave() {
    if (!form?.isDirty()) return true;
    question ??= confirm({
      title: "Discard your changes?",
      body: h("p", "Your changes are not saved yet."),
      yes: "Discard",
      danger: true,
    }).finally(() => (question = null));
    return question;
  }

  async function leaveForm() {
    if (!(await mayLeave())) return false;
    form = null;
    if (data) {
      draw();
      focusTitle();
    } else showHint();
    return true;
  }

  // Show what changed meanwhile; a form stays, and wins when it is saved.
  const reload = () => (form ? null : open(choice.id, { push: false, quiet: true }));

  function showForgetting() {
    data = null;
    choice.id = ""; // so that nothing loads it again
    fill(node, h("p.empty", { role: "status" }, "Forgetting, and searching every file …"));
  }

  function showReceipt(answer) {
    page.replace(address(choice)); // the way back would lead to nothing
    fill(node, backButton(), receipt(answer));
    node.classList.add("has-receipt");
    node.querySelector(".mem-receipt").focus({ preventScroll: true });
  }

  const isOpen = () => Boolean(choice.id) || node.classList.contains("has-receipt");

  return {
    node,
    open,
    draw,
    showHint,
    preview,
    close,
    showForm,
    leaveForm,
    reload,
    showForgetting,
    showReceipt,
    isOpen,
    data: () => data,
    setData: (other) => (data = other),
    form: () => form,
    dropForm: () => (form = null),
    cancelPreview: () => clearTimeout(timer),
  };
}

// Whether nothing changed but what changes with time.
function isSame(before, after) {
  const lasting = ({ score, why, ms, ...rest }) => JSON.stringify(rest);
  return lasting(before) === lasting(after);
}
