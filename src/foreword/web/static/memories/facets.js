// What is chosen -> filters with how many there are of each, counted when everything else is painted; and those that are on.

import { latest } from "../ask.js";
import * as asking from "./asking.js";
import { FACETS, NAMES, chosenOf, clear, named, toggle } from "./choice.js";
import { fill, make } from "../dom.js";
import { anew, number, trouble } from "../parts.js";

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
    const asked = named(choice);
    try {
      const got = await count((signal) => asking.counts(choice, { signal: AbortSignal.any([signal, page.signal]) }));
      if (!got || page.signal.aborted) return;
      again.answered();
      draw(got.facets, got.exact);
      if (asked === named(choice)) here.results.totals(got.total);
    } catch (error) {
      fill(groups, trouble(error));
      again.failed(error, tally);
    }
  }

  function draw(given, exact) {
    const parts = () => [
      Object.entries(FACETS).map(([name, label]) => {
        const values = given[name] ?? [];
        if (!values.length) return null;
        const is = OPEN.has(name) || chosenOf(choice, name).length > 0;
        const cut = CUT.has(name) && values.length >= TOP;
        return make(
          "details",
          { open: is, "data-facet": name },
          make("summary", { "data-do": name }, label),
          make(
            "ul",
            {},
            values.map((each) => value(name, each)),
          ),
          cut ? make("p", { class: "dim" }, `Up to ${TOP} are listed, the most frequent first.`) : null,
        );
      }),
      exact === false ? make("p", { class: "dim" }, "Some counts cover only the newest.") : null,
    ];
    const at = document.activeElement?.name;
    if (anew(groups, () => fill(groups, parts()))) return;
    ([...groups.querySelectorAll("input")].find((each) => each.name === at) ?? here.search).focus({
      preventScroll: true,
    });
  }

  function value(name, { value: given, label, count: times }) {
    const text = String(given);
    const box = make("input", {
      type: "checkbox",
      name,
      value: text,
      "data-do": `${name} ${text}`,
      checked: chosenOf(choice, name).includes(text),
      on: { change: () => toggled(name, text) },
    });
    return make(
      "li",
      {},
      make(
        "label",
        {},
        box,
        make("span", { class: "mem-value", dir: "auto", title: text }, label || text),
        " ",
        make("span", { class: "dim figure" }, number(times)),
      ),
    );
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

  // A value as people call it, where a row told.
  function called(name, text) {
    if (name === "pinned") return text === "1" ? "yes" : "no";
    if (name === "scope" && text === "universal") return "everywhere";
    const key = name === "scope" && text.startsWith("project:") ? text.slice("project:".length) : text;
    if (name !== "project" && key === text) return text;
    return here.results.memories().find((each) => each.project === key)?.project_name ?? key.split("/").at(-1);
  }

  return { node, tally, chips, age: () => performance.now() - tallied };
}
