// Draw what would be forgotten, and afterwards the receipt.

import { h } from "../dom.js";
import { capitalize, endSentence, formatNumber, pluralize } from "../format.js";
import { chip, memoryLink } from "../parts.js";

export const forgetPreview = (data) => [
  titles(data.memories),
  countTable("Rows that go", data.tables),
  similar(data),
  data.backups.length ? h("p", `Also removed from these backups: ${data.backups.join(", ")}`) : null,
  h(
    "details",
    h("summary", "Not removed by this"),
    h(
      "ul.mem-ul",
      data.not_ours.map((each) => h("li", each)),
    ),
  ),
  h("p.bad", endSentence(capitalize(data.undo))),
];

export function receipt(data) {
  const { left } = data;
  const remnant = (each) => h("li", `${formatNumber(each.sentences)} left in ${each.file}: ${each.why}`);
  const quoting = data.cut_memories.map((id) => [memoryLink(id, id), " "]);
  const unread = data.not_looked_into;
  return h(
    "section.mem-receipt",
    { "aria-label": "Receipt", tabindex: "-1" },
    h("h2", left.length ? "Forgotten, but not without a trace" : "Forgotten for good"),
    countTable("Rows removed", data.removed),
    countTable("Rows that lost copies", data.cut),
    countTable("Changed in files", data.files),
    quoting.length ? h("p", "These stay, without the sentences that they quoted: ", quoting) : null,
    similar(data),
    proof(data),
    left.length ? h("ul.bad", left.map(remnant)) : null,
    unread.length ? h("p.warn", `Not searched: ${unread.join(", ")}`) : null,
    h("p.dim", `The receipt is entry ${data.entry} of the log. ${endSentence(capitalize(data.undo))}`),
  );
}

export function describeReceipt({ left, entry }) {
  const result = left.length ? "Forgotten, but something is left." : "Forgotten for good.";
  return `${result} The receipt is entry ${entry} of the log.`;
}

function proof({ left, scanned, sentences }) {
  const checked = `Searched ${pluralize(scanned.files, "file")} for ${pluralize(sentences.looked_for, "sentence")} of the text`;
  return [
    left.length ? h("p", `${checked}: some is left.`) : h("p.good", `✓ ${checked}: none left.`),
    sentences.too_short
      ? h("p", `${pluralize(sentences.too_short, "text")} too short to be searched for outside of the own session.`)
      : null,
  ];
}

const similar = (data) =>
  data.similar.length
    ? [h("p", "These say much the same in other words, and stay until you forget them too:"), titles(data.similar)]
    : null;

const titles = (memories) =>
  h(
    "ul.mem-rows",
    memories.map(({ id, kind, title }) => h("li", chip(kind), " ", h("bdi", title), " ", h("code", id))),
  );

function countTable(name, counts) {
  const rows = Object.entries(counts).filter(([, count]) => count);
  if (!rows.length) return null;
  return h(
    "table",
    h("caption.unseen", name),
    h(
      "thead",
      h(
        "tr",
        ["where", name.toLowerCase()].map((each) => h("th", { scope: "col" }, each)),
      ),
    ),
    h(
      "tbody",
      rows.map(([where, count]) => h("tr", h("td", where), h("td", formatNumber(count)))),
    ),
  );
}
