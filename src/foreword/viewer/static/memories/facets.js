// Show the filters with how many memories each has, and above the list those that are on.

import { get, latestOnly } from "../api.js";
import { button, drawList, fill, h, renew } from "../dom.js";
import { formatNumber } from "../format.js";
import { errorBox } from "../parts.js";
import { clear, FACETS, NAMES, searchOf, toggle, valuesOf } from "./choice.js";

const LIMITED = new Set(["tag", "file"]); // facets of which the worker counts the most frequent values
const TOP = 20;
const UNFOLDED = new Set(["kind", "status", "project"]);

// Filters above the list would push it off a narrow screen.
const areBeside = () => !matchMedia("(max-width: 76rem)").matches;

export function createFacets(shared) {
  const { page, choice } = shared;
  const load = latestOnly();
  const retrier = page.retrier();
  let counted = 0;
  const groups = h("div.mem-groups");
  const node = h("details.mem-facets", { open: areBeside() }, h("summary", "Filters"), groups);

  async function count() {
    if (page.signal.aborted) return;
    if (choice.view) return fill(groups, h("p.dim", "Filters are for all memories."));
    counted = performance.now();
    try {
      const answer = await load((signal) =>
        get("/api/facets", searchOf(choice), { signal: AbortSignal.any([signal, page.signal]) }),
      );
      if (!answer || page.signal.aborted) return;
      retrier.succeeded();
      draw(answer.facets);
    } catch (error) {
      fill(groups, errorBox(error));
      retrier.failed(error, count);
    }
  }

  function draw(facets) {
    const focused = groups.contains(document.activeElement) ? document.activeElement : null;
    const names = Object.keys(FACETS).filter((name) => facets[name]?.length);
    const nodes = drawList(groups, names, { key: (name) => name, create: group });
    for (const [index, node] of nodes.entries()) drawValues(node, names[index], facets[names[index]]);
    if (!focused || focused.isConnected) return;
    const instead = [...groups.querySelectorAll("input")].find((each) => each.name === focused.name) ?? shared.search;
    instead.focus({ preventScroll: true });
  }

  const group = (name) =>
    h(
      "details",
      { open: UNFOLDED.has(name) || valuesOf(choice, name).length > 0, "data-facet": name },
      h("summary", FACETS[name]),
      h("ul"),
      h("p.dim", `The ${TOP} most frequent are listed.`),
    );

  function drawValues(details, name, values) {
    const [, list, note] = details.children;
    note.hidden = !LIMITED.has(name) || values.length < TOP;
    const boxes = drawList(list, values, {
      key: ({ value }) => value,
      create: ({ value }) => box(name, String(value)),
    });
    for (const [index, item] of boxes.entries()) {
      const { value, label, count: times } = values[index];
      item.querySelector("input").checked = valuesOf(choice, name).includes(String(value));
      item.querySelector(".mem-value").textContent = label || String(value);
      item.querySelector(".figure").textContent = formatNumber(times);
    }
  }

  function box(name, value) {
    const input = h("input", { type: "checkbox", name, value, on: { change: () => toggleFilter(name, value) } });
    return h("li", h("label", input, h("span.mem-value", { dir: "auto", title: value }), " ", h("span.dim.figure")));
  }

  function toggleFilter(name, value) {
    toggle(choice, name, value);
    shared.results.refresh();
  }

  const clearAll = () => {
    clear(choice);
    shared.results.refresh();
  };

  // Show the filters that are on, each with a way to remove it; what waits is filtered by project only.
  function showChosen() {
    const names = NAMES.filter((name) => !choice.view || name === "project");
    const active = names.flatMap((name) => valuesOf(choice, name).map((value) => [name, value, labelOf(name, value)]));
    const hadFocus = shared.chosen.contains(document.activeElement);
    renew(shared.chosen, active, () => [
      active.map((each) => h("li", removeButton(...each))),
      active.length > 1 ? h("li", button("Clear all", clearAll, { class: "quiet" })) : null,
    ]);
    if (!shared.chosen.contains(document.activeElement) && hadFocus)
      (shared.chosen.querySelector("button") ?? shared.search).focus({ preventScroll: true });
  }

  const removeButton = (name, value, label) =>
    button(
      [
        h("span.unseen", "Remove "),
        `${FACETS[name].toLowerCase()}: `,
        h("bdi", label),
        h("span", { "aria-hidden": "true" }, " ×"),
      ],
      () => toggleFilter(name, value),
      { class: "chip mem-chip" },
    );

  function labelOf(name, value) {
    if (name === "pinned") return value === "1" ? "yes" : "no";
    if (name === "scope" && value === "universal") return "everywhere";
    const key = name === "scope" && value.startsWith("project:") ? value.slice("project:".length) : value;
    if (name !== "project" && key === value) return value;
    return shared.results.memories().find((each) => each.project === key)?.project_name ?? key.split("/").at(-1);
  }

  return { node, count, showChosen, age: () => performance.now() - counted };
}
