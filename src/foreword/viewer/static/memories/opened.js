// Show one memory beside the list, or the form that changes it; where nothing is open, what can be done.

import { latest } from "../api.js";
import * as requests from "./requests.js";
import { address, named } from "./choice.js";
import { fill, make } from "../dom.js";
import { receipt } from "./forget.js";
import { detail } from "./memory.js";
import { redraw, ask, trouble } from "../parts.js";

const PREVIEW = 120; // milliseconds that a row must stay chosen before all of it is read

let last = ""; // the memory that was open last: who comes back stands on its row

let left = null; // on a phone, where a memory hides the list: which list that was, and the line that one read there

export const lastOpened = () => last;

export function opened(here) {
  const { page, choice } = here;
  const open = latest();
  let data = null; // all of the memory that is open
  let form = null; // what is being written
  let preview = 0;
  const node = make("section", { class: "mem-detail", "aria-label": "Memory" });
  page.signal.addEventListener("abort", () => clearTimeout(preview));
  if (!page.back) left = null;

  const patient = page.patient();

  async function reveal(id, { push = true, focus = false, quiet = false } = {}) {
    if (form && (!(await leave()) || page.signal.aborted)) return;
    if (push) here.results.note(); // what was typed a moment ago belongs to the entry that is left
    if (push && id && here.narrow() && !here.root.classList.contains("has-detail"))
      left = { of: named(choice), line: here.results.reading() };
    choice.id = id;
    if (id) last = id;
    node.classList.remove("has-receipt");
    if (push) page.push(address(choice));
    marked();
    if (!id) {
      data = null;
      page.name("");
      return hint();
    }
    try {
      const got = await open((signal) => requests.one(id, { signal: AbortSignal.any([signal, page.signal]) }));
      if (!got || page.signal.aborted || choice.id !== id) return; // it was shut before it came
      if (quiet && data && same(data, got)) return;
      data = got;
      patient.answered();
      page.name(data.memory.title);
      draw({ quiet });
      if (focus) {
        node.querySelector("#mem-title").focus({ preventScroll: true });
        if (here.narrow()) scrollTo(0, 0);
      }
    } catch (error) {
      if (page.signal.aborted || choice.id !== id) return;
      if (quiet && data && error.status !== 404) return; // a look of our own: what is shown stays
      showError(error);
      patient.failed(error, () => choice.id === id && !data && !form && reveal(id, { push: false }));
    }
  }

  function showError(error) {
    data = null;
    page.name("");
    fill(node, back(), trouble(error));
  }

  function marked() {
    here.results.mark();
    here.viewed();
  }

  function draw({ quiet = false } = {}) {
    const top = node.scrollTop;
    const drawn = () =>
      fill(
        node,
        back(),
        make("article", { class: "mem-one", "aria-labelledby": "mem-title" }, detail(data, here.actions)),
      );
    const held = node.contains(document.activeElement);
    let stays = !held;
    if (quiet) stays = redraw(node, drawn);
    else drawn();
    node.scrollTop = quiet ? top : 0;
    if (!stays) node.querySelector("#mem-title").focus({ preventScroll: true });
  }

  const back = () =>
    make(
      "p",
      { class: "mem-back" },
      make("button", { type: "button", class: "quiet", on: { click: shut } }, "← All results"),
    );

  function hint() {
    fill(
      node,
      make(
        "div",
        { class: "empty mem-hint" },
        make("p", {}, "Choose a memory to see where it is from, what it is linked to, and where it was used."),
        make(
          "p",
          {},
          make("kbd", {}, "↓"),
          " ",
          make("kbd", {}, "↑"),
          " move, ",
          make("kbd", {}, "Enter"),
          " opens, ",
          make("kbd", {}, "?"),
          " lists all keys",
        ),
      ),
    );
  }

  // A row that was moved to by keys: where one is open already, this one is shown instead.
  function follow(id) {
    if (!choice.id || here.narrow() || form) return;
    clearTimeout(preview);
    preview = setTimeout(() => {
      choice.id = id;
      page.replace(address(choice));
      reveal(id, { push: false });
    }, PREVIEW);
  }

  async function shut() {
    if (form) return leave();
    const id = choice.id;
    await reveal("");
    const known = here.narrow() && left?.of === named(choice);
    const near = known ? here.results.readOn(left.line) : null;
    const to = here.results.of(id) ?? near ?? here.search;
    to.focus({ preventScroll: known || !here.narrow() });
    if (known && !inSight(to)) to.scrollIntoView({ block: "center" }); // a link led on from the row that was left
  }

  function write(made) {
    form = made;
    fill(node, made.node);
    made.focus();
  }

  // Whether nothing would be lost, or may be; asked once, however often one tries.
  let question = null;
  function mayLeave() {
    if (!form?.dirty()) return true;
    question ??= ask({
      title: "Discard your changes?",
      body: make("p", {}, "What you wrote here is not saved yet, and would not be kept."),
      yes: "Discard",
      danger: true,
    }).finally(() => (question = null));
    return question;
  }
  page.guard(() => form?.dirty(), mayLeave);

  // Show what somebody else changed meanwhile; what the user is writing stays, and wins when it is saved.
  const again = () => (form ? null : reveal(choice.id, { push: false, quiet: true }));

  // Leave what is being written; what would be lost is asked for.
  async function leave() {
    if (!(await mayLeave())) return false;
    form = null;
    if (data) {
      draw();
      node.querySelector("#mem-title").focus({ preventScroll: true });
    } else hint();
    return true;
  }

  // In its place while it is being forgotten, and what was found when it is.
  function showForgetting() {
    data = null;
    choice.id = ""; // nobody looks at it again meanwhile
    fill(node, make("p", { class: "empty", role: "status" }, "Forgetting, and looking through every file …"));
  }

  // The address of what is gone is not kept: the way back would lead to nothing.
  function gone(got) {
    page.replace(address(choice));
    fill(node, back(), receipt(got));
    node.classList.add("has-receipt");
    node.querySelector(".mem-receipt").focus({ preventScroll: true });
  }

  return {
    node,
    reveal,
    draw,
    hint,
    follow,
    shut,
    write,
    leave,
    again,
    showForgetting,
    gone,
    isOpen: () => Boolean(choice.id) || node.classList.contains("has-receipt"),
    data: () => data,
    setData: (other) => (data = other),
    form: () => form,
    written: () => (form = null),
    stay: () => clearTimeout(preview), // a row that was just moved to would be read a second time, and the first answer given up
  };
}

function inSight(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

// Whether nothing is different but what changes with the clock.
function same(before, after) {
  const lasting = ({ score, why, ms, ...rest }) => JSON.stringify(rest);
  return lasting(before) === lasting(after);
}
