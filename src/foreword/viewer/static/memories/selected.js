// Rows that are ticked -> the memories that are selected, and a bar that says how many and what can be done with all of them.

import { fill, make } from "../dom.js";
import { many } from "../parts.js";

let picked = new Map(); // id -> the memory, as its row tells it; the way back leads to them too

export function selected(here) {
  const { page } = here;
  if (!page.back) picked = new Map();
  let range = { from: "", to: "", before: new Map() }; // what Shift has reached, and what was selected before it
  const bar = make("div", { class: "mem-bar", role: "group", "aria-label": "With those selected", hidden: true });
  const button = make(
    "button",
    { type: "button", class: "quiet mem-select", on: { click: () => ticking(!isTicking()) } },
    "Select",
  );

  const isTicking = () => here.root.classList.contains("is-ticking");

  // By touch there is nothing to hover over: the button shows the boxes, and a row is ticked wherever it is touched.
  function ticking(is) {
    here.root.classList.toggle("is-ticking", is);
    button.textContent = is ? "Done" : "Select";
    if (!is) clear();
  }

  function tick(each) {
    const click = (event) => (event.shiftKey ? reach(each.id) : toggle(each.id));
    const name = `Select: ${each.title}`;
    const box = make("input", {
      type: "checkbox",
      name: "selected",
      checked: picked.has(each.id),
      "aria-label": name,
      on: { click },
    });
    return make("label", { class: "mem-tick" }, box);
  }

  function toggle(id) {
    const all = new Map(picked);
    if (!all.delete(id)) all.set(id, known(id));
    range = { from: id, to: id, before: new Map(all) };
    change(all);
  }

  // Everything from where the range began to this row, and what was selected before.
  function reach(id) {
    const ids = here.results.memories().map((each) => each.id);
    const [first, last] = [ids.indexOf(range.from), ids.indexOf(id)].sort((a, b) => a - b);
    if (first < 0) return toggle(id);
    range.to = id;
    change(
      new Map([
        ...range.before,
        ...here.results
          .memories()
          .slice(first, last + 1)
          .map((each) => [each.id, each]),
      ]),
    );
  }

  // A step with Shift: the row where it begins is selected, and the row where it leads; a step back gives up one.
  async function extend(step) {
    const from = here.cursor();
    if (!from) return step();
    if (range.to !== from || !picked.has(from)) range = { from, to: from, before: new Map(picked) };
    await step();
    reach(here.cursor() ?? from);
  }

  const known = (id) => here.results.memories().find((each) => each.id === id);

  function clear() {
    range = { from: "", to: "", before: new Map() };
    change(new Map());
  }

  // Words tell of it too: `say` has what stands in the bar, for who does not see it.
  function change(all) {
    const before = picked.size;
    picked = new Map([...all].filter(([, each]) => each));
    drawn();
    if (picked.size !== before && !page.signal.aborted)
      page.say(picked.size ? `${picked.size} selected` : "Nothing is selected");
  }

  const leave = (ids) => change(new Map([...picked].filter(([id]) => !ids.includes(id))));

  let said = ""; // what the bar was drawn of

  function drawn() {
    for (const each of here.results.node.querySelectorAll(".mem-row")) {
      const is = picked.has(each.dataset.of);
      each.classList.toggle("is-picked", is);
      const box = each.querySelector(".mem-tick input");
      if (box && box.checked !== is) box.checked = is;
    }
    here.root.classList.toggle("has-picked", picked.size > 0);
    const held = bar.contains(document.activeElement) ? document.activeElement.dataset.do : null;
    bar.hidden = !picked.size;
    const says = JSON.stringify([[...picked.values()], here.results.memories().length]);
    if (picked.size && says !== said) fill(bar, parts()); // drawn anew under a pointer, its buttons would lose the click
    said = says;
    if (held === null || bar.contains(document.activeElement)) return;
    if (picked.size) (bar.querySelector(`[data-do="${held}"]`) ?? bar.querySelector("button")).focus();
    else here.back();
  }

  function parts() {
    const all = [...picked.values()];
    const some = (count) => (count === all.length ? "" : ` ${count}`);
    const listed = here.results.memories().length;
    return [
      make("strong", { class: "mem-bar-count" }, `${all.length} selected`),
      make(
        "div",
        { class: "mem-bar-does" },
        here.several.of(all).map(({ name, key, count, fn, danger }) =>
          make(
            "button",
            {
              type: "button",
              class: danger ? "danger" : null,
              "data-do": name,
              "aria-keyshortcuts": key,
              on: { click: fn },
            },
            `${name}${some(count)}`,
            key ? [" ", make("kbd", {}, key)] : null,
          ),
        ),
      ),
      listed > all.length
        ? make(
            "button",
            {
              type: "button",
              class: "quiet",
              "data-do": "all",
              on: { click: () => change(new Map(here.results.memories().map((each) => [each.id, each]))) },
            },
            `All ${many(listed, "row")}`,
          )
        : null,
      make(
        "button",
        { type: "button", class: "quiet", "data-do": "clear", "aria-keyshortcuts": "Escape", on: { click: clear } },
        "Clear ",
        make("kbd", {}, "Esc"),
      ),
    ];
  }

  // What is listed now: another choice leaves selected what it lists too; a look at the same one what may be further down.
  function listed({ same, whole }) {
    if (!picked.size) return;
    const now = new Map(here.results.memories().map((each) => [each.id, each]));
    const stays = [...picked].filter(([id]) => now.has(id) || (same && !whole));
    change(new Map(stays.map(([id, each]) => [id, now.get(id) ?? each])));
  }

  return {
    bar,
    button,
    tick,
    toggle,
    reach,
    extend,
    clear,
    leave,
    listed,
    drawn,
    isTicking,
    any: () => picked.size > 0,
    all: () => [...picked.values()],
    ids: () => [...picked.keys()],
  };
}
