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
  const one = data.memory;
  const { superseded_by: newer, links, history } = data;
  return [
    h(
      "header.mem-head",
      h("p.figures", chip(one.kind), ...marks(one), h("code", one.id)),
      h("h2#mem-title", { tabindex: "-1" }, one.title),
      newer ? h("p.warn", "Superseded by ", memoryLink(newer.id, newer.title)) : null,
      toolbar(data, actions),
    ),
    data.waits ? decision(one, actions) : null,
    one.body ? h("pre.mem-body", one.body) : null,
    details(one.detail),
    labelled("Tags", one.tags, (each) => filter("tag", each, actions)),
    labelled("Files", one.files, (each) => filter("file", each, actions)),
    labelled("Functions", one.functions, (each) => h("code", each)),
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

export const marks = (one) => [
  one.pinned ? chip("★ pinned", "good") : null,
  one.status !== "active" ? chip(one.status, "warn") : null,
  one.asleep ? chip("asleep: too unsure to come by itself", "warn") : null,
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
export function decision(one, actions, kinds = actions.becomes()) {
  const choose = (name, what, options, style) =>
    button(name, () => actions.decide(one, what, options?.()), { class: style, "data-do": name.toLowerCase() });
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

function origin({ memory: one, session }, actions) {
  const date = (seconds) => [formatDate(seconds), " (", age(seconds), ")"];
  return definitions([
    ["source", one.source],
    ["trust", [filter("trust", one.trust, actions), ` ${TRUST[one.trust] ?? ""}`]],
    ["session", session ? h("a", { href: storyPath(session.id) }, session.title || session.id) : one.session],
    ["project", one.project ? filter("project", one.project, actions, one.project_name, one.project) : ""],
    ["counts for", one.scope.startsWith("project:") ? "its project" : one.scope],
    ["created", date(one.created)],
    ["confirmed", one.confirmed > one.created ? date(one.confirmed) : ""],
    ["seen", one.seen > 1 ? `${formatNumber(one.seen)} times` : "once"],
    ["confidence", formatPercent(one.confidence)],
    ["status", one.status],
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

function injection(each) {
  const [style, text] = describeUsage(each.used, each.how);
  const { session } = each;
  const figures = [label(each.trigger), each.layer, formatTokens(each.tokens)];
  return h(
    "li",
    h(
      "p.figures",
      figures.map((figure) => h("span", figure)),
      h("span", { class: style }, text),
      age(each.at),
    ),
    session ? h("p", h("a", { href: storyPath(session) }, each.about || `session ${session}`)) : null,
    h("details", h("summary", `score ${each.score.toFixed(3)}`), factors(each.why)),
  );
}

function historyEntry(each, actions) {
  const text = each.what === "undo" ? "Do it again" : "Undo";
  const attributes = { class: "quiet", "data-do": `undo-${each.number}` };
  return h(
    "li",
    h(
      "p.figures",
      h("strong", `${each.who} ${each.done}`),
      h("span", `entry ${each.number}`),
      age(each.at),
      each.undone ? h("span", `undone by entry ${each.undone}`) : null,
      each.undo ? button(text, () => actions.undo(each), attributes) : null,
    ),
    each.why ? h("p.dim", each.why) : null,
    each.changes.length ? h("ul.mem-ul", each.changes.map(change)) : null,
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
