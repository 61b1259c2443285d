// Draw all of one memory, for a person to read.

import { make } from "../dom.js";
import { ago, chip, factors, many, memory, number, tokens, useOf, when } from "../parts.js";

const TRUST = {
  user: "the user said it",
  agent: "an agent said it",
  tool: "a tool's output said it",
  imported: "it was imported, or read on the web",
};
// A link as it reads from either of its ends.
const BACK = {
  supersedes: "superseded by",
  resolves: "resolved by",
  "caused-by": "caused",
  "relates-to": "relates to",
  "part-of": "has as a part",
};
const FORTH = { "caused-by": "caused by", "relates-to": "relates to", "part-of": "part of" };
// Keys of a detail that are shown elsewhere, or are for us alone.
const OURS = new Set(["revised", "seen_in", "against", "from"]);

// All of it; `doing` has what its buttons do.
export function detail(data, actions) {
  const one = data.memory;
  return [
    make(
      "header",
      { class: "mem-head" },
      make("p", { class: "figures" }, chip(one.kind), ...marks(one), make("code", {}, one.id)),
      make("h2", { tabindex: "-1", id: "mem-title" }, one.title),
      data.superseded_by
        ? make("p", { class: "warn" }, "Superseded by ", memory(data.superseded_by.id, data.superseded_by.title))
        : null,
      toolbar(data, actions),
    ),
    data.waits ? waits(data, actions) : null,
    one.body ? make("pre", { class: "mem-body" }, one.body) : null,
    fields(one.detail),
    named("Tags", one.tags, (each) => facet("tag", each, actions)),
    named("Files", one.files, (each) => facet("file", each, actions)),
    named("Functions", one.functions, (each) => make("code", {}, each)),
    section("Where it is from", provenance(data, actions)),
    data.links.length ? section("Links", make("ul", { class: "mem-rows" }, data.links.map(link))) : null,
    section(
      "How it ranks now",
      make(
        "p",
        { class: "figures" },
        make("span", {}, `score ${data.score.toFixed(3)}`),
        make("span", {}, "without words to match"),
      ),
      factors(data.why),
    ),
    section("Shown and used", shown(data)),
    data.history.length
      ? section(
          "History",
          make(
            "ol",
            { class: "mem-rows" },
            data.history.map((each) => entry(each, actions)),
          ),
        )
      : null,
  ];
}

export function marks(one) {
  return [
    one.pinned ? chip("★ pinned", "good") : null,
    one.status !== "active" ? chip(one.status, "warn") : null,
    one.asleep ? chip("asleep: too unsure to come by itself", "warn") : null,
  ];
}

function toolbar(data, actions) {
  const one = data.memory;
  const last = data.history.find(canUndo);
  const does = [
    ["Edit", "e", actions.edit],
    [one.pinned ? "Unpin" : "Pin", "p", actions.pin],
    ["Forget", "f", actions.forget, "danger"],
    last ? ["Undo", null, () => actions.undo(last)] : null, // of this one: `u` has what was done last, wherever
  ].filter(Boolean);
  return make(
    "div",
    { class: "mem-tools", role: "group", "aria-label": "What you can do" },
    does.map(([name, key, fn, more]) => {
      const about = {
        type: "button",
        class: more,
        "data-do": name.toLowerCase(),
        "aria-keyshortcuts": key,
        on: { click: fn },
      };
      return make("button", about, name, key ? [" ", make("kbd", {}, key)] : null);
    }),
  );
}

// What can be taken back and is no taking back itself.
export const canUndo = (each) => each.undo && each.what !== "undo";

export function waits(data, actions, { becomes = actions.becomes() } = {}) {
  const one = data.memory ?? data;
  const button = (name, fn, more) =>
    make("button", { type: "button", class: more, "data-do": name.toLowerCase(), on: { click: fn } }, name);
  if (data.waits === "proposal") {
    return make(
      "div",
      { class: "mem-waits", role: "group", "aria-label": "It waits for your word" },
      make("p", {}, "Proposed as a rule: no agent is shown it before you accept it."),
      make(
        "p",
        { class: "mem-tools" },
        button("Accept", () => actions.decide(one, "accept"), "main"),
        button("Accept everywhere", () => actions.decide(one, "accept", { scope: "universal" })),
        button("Refuse", () => actions.decide(one, "refuse")),
      ),
    );
  }
  const select = make(
    "select",
    { "aria-label": "What the note becomes", name: "as" },
    becomes.map((each) => make("option", { value: each }, each)),
  );
  return make(
    "div",
    { class: "mem-waits", role: "group", "aria-label": "It waits for your word" },
    make("p", {}, "A raw note: make it what it is, or let it go."),
    make(
      "p",
      { class: "mem-tools" },
      select,
      button("Promote", () => actions.decide(one, "promote", { as: select.value }), "main"),
      button("Discard", () => actions.decide(one, "discard")),
    ),
  );
}

const section = (name, ...children) => make("section", { class: "mem-part" }, make("h3", {}, name), ...children);

function named(name, list, each) {
  return list.length
    ? make(
        "p",
        { class: "mem-named" },
        make("span", { class: "dim" }, name),
        list.map((one) => [" ", each(one)]),
      )
    : null;
}

const facet = (name, text, actions) =>
  make(
    "button",
    {
      type: "button",
      class: "chip mem-chip",
      dir: "auto",
      title: `All with this ${name}`,
      on: { click: () => actions.facet(name, text) },
    },
    text,
  );

function rows(pairs) {
  return make(
    "dl",
    { class: "mem-dl" },
    pairs
      .filter(([, data]) => data !== "" && data !== null && data !== undefined)
      .map(([name, data]) => make("div", {}, make("dt", {}, name), make("dd", {}, data))),
  );
}

// What only this kind has: whatever its detail holds, by name.
function fields(values) {
  const data = Object.entries(values).filter(([name, each]) => !OURS.has(name) && !bare(each));
  return data.length ? rows(data.map(([name, each]) => [name.replaceAll("_", " "), plain(each)])) : null;
}

const bare = (each) => each === null || each === "" || (typeof each === "object" && !Object.keys(each).length);

function plain(data) {
  if (Array.isArray(data))
    return make(
      "ul",
      { class: "mem-ul" },
      data.map((each) => make("li", {}, plain(each))),
    );
  if (data && typeof data === "object")
    return make(
      "ul",
      { class: "mem-ul" },
      Object.entries(data).map(([name, each]) => make("li", {}, `${name.replaceAll("_", " ")}: `, plain(each))),
    );
  return typeof data === "string" ? make("span", { class: "mem-text" }, data) : String(data ?? "");
}

function provenance(data, actions) {
  const one = data.memory;
  const session = data.session;
  return rows([
    ["source", one.source],
    ["trust", [facet("trust", one.trust, actions), ` ${TRUST[one.trust] ?? ""}`]],
    [
      "session",
      session
        ? make("a", { href: `/timeline/${encodeURIComponent(session.id)}` }, session.title || session.id)
        : one.session,
    ],
    [
      "project",
      one.project
        ? make(
            "button",
            {
              type: "button",
              class: "chip mem-chip",
              dir: "auto",
              title: one.project,
              on: { click: () => actions.facet("project", one.project) },
            },
            one.project_name,
          )
        : "",
    ],
    ["counts for", one.scope.startsWith("project:") ? "its project" : one.scope],
    ["created", [when(one.created), " (", ago(one.created), ")"]],
    ["confirmed", one.confirmed > one.created ? [when(one.confirmed), " (", ago(one.confirmed), ")"] : ""],
    ["seen", one.seen > 1 ? `${number(one.seen)} times` : "once"],
    ["confidence", `${Math.round(one.confidence * 100)} %`],
    ["status", one.status],
  ]);
}

function link(each) {
  const word = each.forth ? (FORTH[each.relation] ?? each.relation) : (BACK[each.relation] ?? each.relation);
  return make(
    "li",
    {},
    make("span", { class: "dim" }, word),
    " ",
    chip(each.kind),
    " ",
    memory(each.id, each.title),
    each.status === "active" ? null : [" ", chip(each.status, "warn")],
  );
}

function shown(data) {
  const use = data.use;
  if (!data.shown.length) return make("p", { class: "dim" }, "It was never shown to an agent.");
  const unjudged = use.shown - use.used - use.ignored;
  return [
    make(
      "p",
      { class: "figures" },
      make("span", {}, `shown ${many(use.shown, "time")}`),
      make("span", { class: use.used ? "used" : "" }, `${use.used ? "✓ " : ""}used ${number(use.used)}`),
      make("span", {}, `– not used ${number(use.ignored)}`),
      unjudged ? make("span", {}, `· not judged ${number(unjudged)}`) : null,
    ),
    make("ol", { class: "mem-rows" }, data.shown.map(once)),
  ];
}

function once(each) {
  const [kind, words] = useOf(each.used, each.how);
  const why = make("details", {}, make("summary", {}, `score ${each.score.toFixed(3)}`));
  why.addEventListener("toggle", () => why.open && !why.querySelector("ul") && why.append(factors(each.why) ?? ""));
  return make(
    "li",
    {},
    make(
      "p",
      { class: "figures" },
      make("span", {}, each.trigger.replaceAll("_", " ")),
      make("span", {}, each.layer),
      make("span", {}, tokens(each.tokens)),
      make("span", { class: kind }, words),
      ago(each.at),
    ),
    each.session
      ? make(
          "p",
          {},
          make("a", { href: `/timeline/${encodeURIComponent(each.session)}` }, each.about || `session ${each.session}`),
        )
      : null,
    why,
  );
}

function entry(each, actions) {
  const undo = each.undo
    ? make(
        "button",
        { type: "button", class: "quiet", "data-do": `undo-${each.number}`, on: { click: () => actions.undo(each) } },
        each.what === "undo" ? "Do it again" : "Undo",
      )
    : null;
  return make(
    "li",
    {},
    make(
      "p",
      { class: "figures" },
      make("strong", {}, `${each.who} ${each.done}`),
      make("span", {}, `entry ${each.number}`),
      ago(each.at),
      each.undone ? make("span", {}, `taken back by entry ${each.undone}`) : null,
      undo,
    ),
    !each.why ? null : make("p", { class: "dim" }, each.why),
    each.changes.length ? make("ul", { class: "mem-ul" }, each.changes.map(change)) : null,
  );
}

// What something was, and what it became.
function change({ field, before, after }) {
  const text = (data) => (bare(data) || data === undefined ? make("em", { class: "dim" }, "nothing") : plain(data));
  return make(
    "li",
    { class: "mem-change" },
    make("span", { class: "dim" }, `${field.replaceAll("_", " ")} `),
    make("del", {}, text(before)),
    make("span", { "aria-hidden": "true" }, " → "),
    make("span", { class: "unseen" }, " became "),
    make("ins", {}, text(after)),
  );
}
