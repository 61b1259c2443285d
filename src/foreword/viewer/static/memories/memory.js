// Draw one memory: text, origin, links, score, use, history.

import { button, h } from "../dom.js";
import {
  describeUsage,
  formatDate,
  formatNumber,
  formatPercent,
  formatTokens,
  pluralize,
  storyPath,
} from "../format.js";
import { age, chip, factors, memoryLink } from "../parts.js";

const TRUST = {
  user: "written or said by the user",
  agent: "from an agent",
  tool: "from the output of a tool",
  imported: "imported, or read on the web",
};
// Names of links: from their target, and from their source.
const INCOMING = {
  supersedes: "superseded by",
  resolves: "resolved by",
  "caused-by": "caused",
  "relates-to": "relates to",
  "part-of": "has as a part",
};
const OUTGOING = { "caused-by": "caused by", "relates-to": "relates to", "part-of": "part of" };
const HIDDEN = new Set(["revised", "seen_in", "against", "from"]); // keys of `detail`

export function drawMemory(data, actions) {
  const memory = data.memory;
  const { superseded_by: newer, links, history } = data;
  return [
    h(
      "header.mem-head",
      h("p.figures", chip(memory.kind), ...statusChips(memory), h("code", memory.id)),
      h("h2#mem-title", { tabindex: "-1" }, memory.title),
      newer ? h("p.warn", "Superseded by ", memoryLink(newer.id, newer.title)) : null,
      toolbar(data, actions),
    ),
    data.waits ? decision(memory, actions) : null,
    memory.body ? h("pre.mem-body", memory.body) : null,
    details(memory.detail),
    labelled("Tags", memory.tags, (each) => filter("tag", each, actions)),
    labelled("Files", memory.files, (each) => filter("file", each, actions)),
    labelled("Functions", memory.functions, (each) => h("code", each)),
    section("Origin", origin(data, actions)),
    links.length ? section("Links", h("ul.mem-rows", links.map(link))) : null,
    section(
      "How it ranks now",
      h("p.figures", h("span", `score ${data.score.toFixed(3)}`), h("span", "without words to match")),
      factors(data.why),
    ),
    section("Shown and used", usage(data)),
    history.length
      ? section(
          "History",
          h(
            "ol.mem-rows",
            history.map((each) => historyEntry(each, actions)),
          ),
        )
      : null,
  ];
}

export const statusChips = (memory) => [
  memory.pinned ? chip("★ pinned", "good") : null,
  memory.status !== "active" ? chip(memory.status, "warn") : null,
  memory.asleep ? chip("asleep: too unsure to come by itself", "warn") : null,
];

function toolbar({ memory, history }, actions) {
  const last = history.find(canUndo);
  const tools = [
    ["Edit", "e", actions.edit],
    [memory.pinned ? "Unpin" : "Pin", "p", actions.pin],
    ["Forget", "f", actions.forget, "danger"],
    last ? ["Undo", null, () => actions.undo(last)] : null, // of this memory; `u` undoes the last action on any
  ].filter(Boolean);
  return h(
    "div.mem-tools",
    { role: "group", "aria-label": "Actions" },
    tools.map(([name, key, action, style]) => {
      const attributes = { class: style, "data-do": name.toLowerCase(), "aria-keyshortcuts": key };
      return button([name, key ? [" ", h("kbd", key)] : null], action, attributes);
    }),
  );
}

export const canUndo = (entry) => entry.undo && entry.what !== "undo";

// The buttons that decide about a note.
export function decision(memory, actions, kinds = actions.becomes()) {
  const choose = (name, what, options, style) =>
    button(name, () => actions.decide(memory, what, options?.()), { class: style, "data-do": name.toLowerCase() });
  const select = h(
    "select",
    { "aria-label": "What the note becomes", name: "as" },
    kinds.map((each) => h("option", { value: each }, each)),
  );
  return h(
    "div.mem-waits",
    { role: "group", "aria-label": "It waits for your decision" },
    h("p", "A note: choose what it becomes, or discard it."),
    h(
      "p.mem-tools",
      select,
      choose("Promote", "promote", () => ({ as: select.value }), "main"),
      choose("Discard", "discard"),
    ),
  );
}

const section = (name, ...children) => h("section.mem-part", h("h3", name), ...children);

const labelled = (name, list, draw) =>
  list.length
    ? h(
        "p.mem-named",
        h("span.dim", name),
        list.map((each) => [" ", draw(each)]),
      )
    : null;

const filter = (name, value, actions, label = value, title = `All with this ${name}`) =>
  button(label, () => actions.filter(name, value), { class: "chip mem-chip", dir: "auto", title });

const definitions = (pairs) =>
  h(
    "dl.mem-dl",
    pairs
      .filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([name, value]) => h("div", h("dt", name), h("dd", value))),
  );

// The fields that only this kind has.
function details(detail) {
  const fields = Object.entries(detail).filter(([name, each]) => !HIDDEN.has(name) && !isEmpty(each));
  return fields.length ? definitions(fields.map(([name, each]) => [label(name), plain(each)])) : null;
}

const label = (name) => name.replaceAll("_", " ");

const isEmpty = (each) =>
  each === null || each === undefined || each === "" || (typeof each === "object" && !Object.keys(each).length);

function plain(value) {
  if (typeof value === "string") return h("span.mem-text", value);
  if (value === null || typeof value !== "object") return String(value ?? "");
  const entry = ([name, each]) => h("li", Array.isArray(value) ? null : `${label(name)}: `, plain(each));
  return h("ul.mem-ul", Object.entries(value).map(entry));
}

function origin({ memory, session }, actions) {
  const date = (seconds) => [formatDate(seconds), " (", age(seconds), ")"];
  return definitions([
    ["source", memory.source],
    ["trust", [filter("trust", memory.trust, actions), ` ${TRUST[memory.trust] ?? ""}`]],
    ["session", session ? h("a", { href: storyPath(session.id) }, session.title || session.id) : memory.session],
    ["project", memory.project ? filter("project", memory.project, actions, memory.project_name, memory.project) : ""],
    ["counts for", memory.scope.startsWith("project:") ? "its project" : memory.scope],
    ["created", date(memory.created)],
    ["confirmed", memory.confirmed > memory.created ? date(memory.confirmed) : ""],
    ["seen", memory.seen > 1 ? `${formatNumber(memory.seen)} times` : "once"],
    ["confidence", formatPercent(memory.confidence)],
    ["status", memory.status],
  ]);
}

function link({ forth, relation, kind, id, title, status }) {
  return h(
    "li",
    h("span.dim", (forth ? OUTGOING : INCOMING)[relation] ?? relation),
    " ",
    chip(kind),
    " ",
    memoryLink(id, title),
    status === "active" ? null : [" ", chip(status, "warn")],
  );
}

function usage({ shown, use }) {
  if (!shown.length) return h("p.dim", "It was never shown to an agent.");
  const unjudged = use.shown - use.used - use.ignored;
  return [
    h(
      "p.figures",
      h("span", `shown ${pluralize(use.shown, "time")}`),
      h("span", { class: use.used ? "used" : "" }, `${use.used ? "✓ " : ""}used ${formatNumber(use.used)}`),
      h("span", `– not used ${formatNumber(use.ignored)}`),
      unjudged ? h("span", `· not judged ${formatNumber(unjudged)}`) : null,
    ),
    h("ol.mem-rows", shown.map(injection)),
  ];
}

function injection(shown) {
  const [style, text] = describeUsage(shown.used, shown.how);
  const { session } = shown;
  const figures = [label(shown.trigger), shown.layer, formatTokens(shown.tokens)];
  return h(
    "li",
    h(
      "p.figures",
      figures.map((figure) => h("span", figure)),
      h("span", { class: style }, text),
      age(shown.at),
    ),
    session ? h("p", h("a", { href: storyPath(session) }, shown.about || `session ${session}`)) : null,
    h("details", h("summary", `score ${shown.score.toFixed(3)}`), factors(shown.why)),
  );
}

function historyEntry(entry, actions) {
  const text = entry.what === "undo" ? "Do it again" : "Undo";
  const attributes = { class: "quiet", "data-do": `undo-${entry.number}` };
  return h(
    "li",
    h(
      "p.figures",
      h("strong", `${entry.who} ${entry.done}`),
      h("span", `entry ${entry.number}`),
      age(entry.at),
      entry.undone ? h("span", `undone by entry ${entry.undone}`) : null,
      entry.undo ? button(text, () => actions.undo(entry), attributes) : null,
    ),
    entry.why ? h("p.dim", entry.why) : null,
    entry.changes.length ? h("ul.mem-ul", entry.changes.map(change)) : null,
  );
}

function change({ field, before, after }) {
  const value = (each) => (isEmpty(each) ? h("em.dim", "nothing") : plain(each));
  return h(
    "li.mem-change",
    h("span.dim", `${label(field)} `),
    h("del", value(before)),
    h("span", { "aria-hidden": "true" }, " → "),
    h("span.unseen", " became "),
    h("ins", value(after)),
  );
}
