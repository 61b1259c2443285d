// What the worker tells of a forgetting -> what would go, before anything does; and what went, afterwards.

import { make } from "../dom.js";
import { chip, many, memory, number } from "../parts.js";

// What would go, before anything does.
export function wouldGo(would) {
  const more = would.more;
  return [
    make("ul", { class: "mem-rows" }, would.memories.map((each) => make("li", {}, chip(each.kind), " ", each.title, " ", make("code", {}, each.id)))),
    more ? make("p", {}, `… and ${many(more, "more memory", "more memories")}`) : null,
    counts("Rows that go", would.tables),
    would.cut_memories.length ? make("p", {}, `These stay, without the passages that they quote: ${would.cut_memories.join(", ")}`) : null,
    would.copies.length ? make("p", {}, `Its text goes from these too: ${would.copies.join(", ")}`) : null,
    make("details", {}, make("summary", {}, "Not ours to remove"), make("ul", { class: "mem-ul" }, would.not_ours.map((each) => make("li", {}, each)))),
    make("p", { class: "bad" }, sentence(would.undo)),
  ];
}

// What went, and what was looked for afterwards.
export function receipt(told) {
  return make(
    "section",
    { class: "mem-receipt", "aria-label": "Receipt", tabindex: "-1" },
    make("h2", {}, told.left.length ? "Forgotten, but not without a trace" : "Forgotten for good"),
    counts("Rows removed", told.removed),
    counts("Rows cut", told.cut),
    counts("Changed in files", told.files),
    told.cut_memories.length ? make("p", {}, "These stay, without the passage that they quoted: ", told.cut_memories.map((id) => [memory(id, id), " "])) : null,
    make("p", {}, `${number(told.windows.looked_for)} windows of six bytes were looked for in ${many(told.scanned.files, "file")}; ${number(told.windows.in_what_stays)} more stand in what stays, and tell nothing.`),
    told.left.length ? make("ul", { class: "bad" }, told.left.map((each) => make("li", {}, `${number(each.windows)} are left in ${each.file}: ${each.why}`))) : make("p", { class: "good" }, "✓ 0 left."),
    told.not_looked_into.length ? make("p", { class: "warn" }, `Not looked into: ${told.not_looked_into.join(", ")}`) : null,
    make("p", { class: "dim" }, `The receipt is entry ${told.entry} of the log. ${sentence(told.undo)}`),
  );
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function counts(name, told) {
  const all = Object.entries(told).filter(([, count]) => count);
  return all.length ? make("table", {}, make("caption", { class: "unseen" }, name), make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "where"), make("th", { scope: "col" }, name.toLowerCase()))), make("tbody", {}, all.map(([where, count]) => make("tr", {}, make("td", {}, where), make("td", {}, number(count)))))) : null;
}
