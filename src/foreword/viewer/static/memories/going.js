// What the worker tells of a forgetting: what would go, before anything does; and what went, afterwards.

import { make } from "../dom.js";
import { chip, full, many, memory, number, sentence } from "../parts.js";

// What would go, before anything does.
export function wouldGo(would) {
  return [
    titles(would.memories),
    counts("Rows that go", would.tables),
    similar(would),
    would.backups.length ? make("p", {}, `It goes from these backups, too: ${would.backups.join(", ")}`) : null,
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
  const remnant = (each) => make("li", {}, `${number(each.sentences)} left in ${each.file}: ${each.why}`);
  return make(
    "section",
    { class: "mem-receipt", "aria-label": "Receipt", tabindex: "-1" },
    make("h2", {}, told.left.length ? "Forgotten, but not without a trace" : "Forgotten for good"),
    counts("Rows removed", told.removed),
    counts("Rows that lost copies", told.cut),
    counts("Changed in files", told.files),
    quoting.length ? make("p", {}, "These stay, without the sentences that they quoted: ", quoting) : null,
    similar(told),
    proof(told),
    told.left.length ? make("ul", { class: "bad" }, told.left.map(remnant)) : null,
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

// Which sentences the files were searched for.
function proof({ left, scanned, sentences }) {
  const sought = many(sentences.looked_for, "sentence");
  const checked = `Searched ${many(scanned.files, "file")} for ${sought} of the text`;
  return [
    left.length ? make("p", {}, `${checked}: some is left.`) : make("p", { class: "good" }, `✓ ${checked}: none left.`),
    sentences.too_short
      ? make("p", {}, `${many(sentences.too_short, "text")} too short to be looked for outside of the own session.`)
      : null,
  ];
}

// What says the same in other words: whoever forgets decides.
function similar(told) {
  if (!told.similar.length) return null;
  return [
    make("p", {}, "These say much the same in other words, and stay until you forget them, too:"),
    titles(told.similar),
  ];
}

function titles(memories) {
  const title = (each) =>
    make("li", {}, chip(each.kind), " ", make("bdi", {}, each.title), " ", make("code", {}, each.id));
  return make("ul", { class: "mem-rows" }, memories.map(title));
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
