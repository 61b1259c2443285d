// What the worker tells of a forgetting -> what would go, before anything does; and what went, afterwards.

import { make } from "../dom.js";
import { chip, full, many, memory, number, sentence } from "../parts.js";

// What would go, before anything does.
export function wouldGo(would) {
  const more = would.more;
  return [
    make(
      "ul",
      { class: "mem-rows" },
      would.memories.map((each) =>
        make("li", {}, chip(each.kind), " ", make("bdi", {}, each.title), " ", make("code", {}, each.id)),
      ),
    ),
    more ? make("p", {}, `… and ${many(more, "more memory", "more memories")}`) : null,
    counts("Rows that go", would.tables),
    counts("Rows that stay without its words", would.cut),
    counts("Lines of files that go or are cut", would.files),
    would.cut_memories.length
      ? make("p", {}, `These stay, without the passages that they quote: ${would.cut_memories.join(", ")}`)
      : null,
    would.copies.length ? make("p", {}, `Its text goes from these too: ${would.copies.join(", ")}`) : null,
    make(
      "details",
      {},
      make("summary", {}, "Not ours to remove"),
      make(
        "ul",
        { class: "mem-ul" },
        would.not_ours.map((each) => make("li", {}, each)),
      ),
    ),
    make("p", { class: "bad" }, full(sentence(would.undo))),
  ];
}

// What went, and what was looked for afterwards.
export function receipt(told) {
  const quoting = told.cut_memories.map((id) => [memory(id, id), " "]);
  const missed = told.windows.too_many;
  const remnant = (each) => make("li", {}, `${number(each.windows)} are left in ${each.file}: ${each.why}`);
  return make(
    "section",
    { class: "mem-receipt", "aria-label": "Receipt", tabindex: "-1" },
    make("h2", {}, told.left.length ? "Forgotten, but not without a trace" : "Forgotten for good"),
    counts("Rows removed", told.removed),
    counts("Rows cut", told.cut),
    counts("Changed in files", told.files),
    quoting.length ? make("p", {}, "These stay, without the passage that they quoted: ", quoting) : null,
    proof(told),
    told.left.length ? make("ul", { class: "bad" }, told.left.map(remnant)) : null,
    missed
      ? make("p", { class: "warn" }, `${number(missed)} pieces were too many to look for; their rows are gone.`)
      : null,
    told.not_looked_into.length
      ? make("p", { class: "warn" }, `Not looked into: ${told.not_looked_into.join(", ")}`)
      : null,
    make("p", { class: "dim" }, `The receipt is entry ${told.entry} of the log. ${full(sentence(told.undo))}`),
  );
}

// The same in a line, for who hears it, or is on another page by then.
export function shortly({ left, entry }) {
  const came = left.length ? "Forgotten, but something is left." : "Forgotten for good.";
  return `${came} The receipt is entry ${entry} of the log.`;
}

// What the files were looked through for: pieces of the text that nothing else has. Others tell nothing of it.
function proof({ left, scanned, windows }) {
  const checked = `Checked ${many(scanned.files, "file")} for any trace of the text`;
  const pieces = (n) => many(n, "piece of six bytes", "pieces of six bytes");
  const found = left.length
    ? make("p", {}, `${checked}: some is left.`)
    : make("p", { class: "good" }, `✓ ${checked}: none left.`);
  return [
    windows.looked_for
      ? found
      : make("p", {}, "There was nothing to look for: every piece of the text stands in what stays too."),
    make(
      "details",
      {},
      make("summary", {}, "What was looked for"),
      make("p", {}, `${pieces(windows.looked_for)} that only the forgotten text had.`),
      windows.in_what_stays
        ? make("p", {}, `Not ${pieces(windows.in_what_stays)} that what stays has too: they tell nothing.`)
        : null,
    ),
  ];
}

function counts(name, told) {
  const all = Object.entries(told).filter(([, count]) => count);
  if (!all.length) return null;
  const heads = ["where", name.toLowerCase()].map((each) => make("th", { scope: "col" }, each));
  const rows = all.map(([where, count]) => make("tr", {}, make("td", {}, where), make("td", {}, number(count))));
  return make(
    "table",
    {},
    make("caption", { class: "unseen" }, name),
    make("thead", {}, make("tr", {}, heads)),
    make("tbody", {}, rows),
  );
}
