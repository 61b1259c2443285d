// Draw the filters with how many memories there are of each, counted when all else is painted; and those that are on.

import { latest } from "../api.js";
import * as requests from "./requests.js";
import { FACETS, NAMES, chosenOf, clear, toggle } from "./choice.js";
import { fill, make } from "../dom.js";
import { number, reorder, trouble } from "../parts.js";

const CUT = new Set(["tag", "file"]); // of these the worker tells the first
const TOP = 20;
const OPEN = new Set(["kind", "status", "project"]); // groups that are unfolded at first

// Filters that stand above the list would push it off the screen: they are unfolded where they stand beside it.
const beside = () => !matchMedia("(max-width: 76rem)").matches;

export function facets(here) {
  const { page, choice } = here;
  const count = latest();
  let tallied = 0;
  const groups = make("div", { class: "mem-groups" });
  const node = make("details", { class: "mem-facets", open: beside() }, make("summary", {}, "Filters"), groups);

  const again = page.patient();

  async function tally() {
    if (page.signal.aborted || choice.view)
      return fill(groups, choice.view ? make("p", { class: "dim" }, "Filters are for all memories.") : null);
    tallied = performance.now();
    try {
      const got = await count((signal) => requests.counts(choice, { signal: AbortSignal.any([signal, page.signal]) }));
      if (!got || page.signal.aborted) return;
      again.answered();
      draw(got.facets);
    } catch (error) {
      fill(groups, trouble(error));
      again.failed(error, tally);
    }
  }

  // Filters that stay keep their nodes: drawn anew between the press and the release of a button, they would lose the click.
  const drawn = new Map(); // the name of a filter, or its name and a value of it -> its nodes
  const of = (key, make) => drawn.get(key) ?? drawn.set(key, make()).get(key);

  function draw(given) {
    const at = document.activeElement;
    const held = groups.contains(at);
    const some = Object.keys(FACETS).filter((name) => given[name]?.length);
    reorder(
      groups,
      some.map((name) => group(name, given[name])),
    );
    if (!held || at.isConnected) return;
    ([...groups.querySelectorAll("input")].find((each) => each.name === at.name) ?? here.search).focus({
      preventScroll: true,
    });
  }

  function group(name, values) {
    const { node, list, cut } = of(name, () => {
      const open = OPEN.has(name) || chosenOf(choice, name).length > 0;
      const list = make("ul", {});
      const cut = make("p", { class: "dim" }, `Up to ${TOP} are listed, the most frequent first.`);
      const summary = make("summary", {}, FACETS[name]);
      return { node: make("details", { open, "data-facet": name }, summary, list, cut), list, cut };
    });
    cut.hidden = !(CUT.has(name) && values.length >= TOP);
    reorder(
      list,
      values.map((each) => value(name, each)),
    );
    return node;
  }

  function value(name, { value: given, label, count: times }) {
    const text = String(given);
    const { node, box, shown, figure } = of(`${name} ${text}`, () => {
      const box = make("input", { type: "checkbox", name, value: text, on: { change: () => toggled(name, text) } });
      const shown = make("span", { class: "mem-value", dir: "auto", title: text });
      const figure = make("span", { class: "dim figure" });
      return { node: make("li", {}, make("label", {}, box, shown, " ", figure)), box, shown, figure };
    });
    box.checked = chosenOf(choice, name).includes(text);
    shown.textContent = label || text;
    figure.textContent = number(times);
    return node;
  }

  function toggled(name, text) {
    toggle(choice, name, text);
    here.results.refresh();
  }

  const clearAll = () => {
    clear(choice);
    here.results.refresh();
  };

  // The filters that are on, each to be taken off; of what waits only a project is chosen.
  function chips() {
    const on = NAMES.filter((name) => !choice.view || name === "project").flatMap((name) =>
      chosenOf(choice, name).map((text) => [name, text]),
    );
    const held = here.chosen.contains(document.activeElement);
    fill(
      here.chosen,
      on.map(([name, text]) => make("li", {}, off(name, text))),
      on.length > 1
        ? make("li", {}, make("button", { type: "button", class: "quiet", on: { click: clearAll } }, "Clear all"))
        : null,
    );
    if (held) (here.chosen.querySelector("button") ?? here.search).focus({ preventScroll: true });
  }

  // What takes a filter off; who hears it hears what is seen.
  function off(name, text) {
    const about = { type: "button", class: "chip mem-chip", on: { click: () => toggled(name, text) } };
    return make(
      "button",
      about,
      make("span", { class: "unseen" }, "Remove "),
      `${FACETS[name].toLowerCase()}: `,
      make("bdi", {}, called(name, text)),
      make("span", { "aria-hidden": "true" }, " ×"),
    );
  }

  // A value as people call it, where a row has that name.
  function called(name, text) {
    if (name === "pinned") return text === "1" ? "yes" : "no";
    if (name === "scope" && text === "universal") return "everywhere";
    const key = name === "scope" && text.startsWith("project:") ? text.slice("project:".length) : text;
    if (name !== "project" && key === text) return text;
    return here.results.memories().find((each) => each.project === key)?.project_name ?? key.split("/").at(-1);
  }

  return { node, tally, chips, age: () => performance.now() - tallied };
}
