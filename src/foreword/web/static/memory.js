// One memory, as the worker tells all of it -> what a person reads, and the forms that change it.

import { fill, make } from "./dom.js";
import { ago, chip, factors, many, memory, number, tokens, when } from "./parts.js";

const KINDS = ["summary", "handoff", "decision", "pattern", "failure", "observation", "change", "learning", "preference", "correction", "goal", "note", "project"];
const LISTS = ["tags", "files", "functions"];
const TRUST = { user: "the user said it", agent: "an agent said it", tool: "a tool's output said it", imported: "it was imported, or read in the web" };
// A link as it reads from either of its ends.
const BACK = { supersedes: "superseded by", resolves: "resolved by", "caused-by": "caused", "relates-to": "relates to", "part-of": "has as a part" };
const FORTH = { "caused-by": "caused by", "relates-to": "relates to", "part-of": "part of" };
const HOW = { fetched: "it was fetched", file: "its file was touched", function: "its function was touched", command: "its command was run", words: "its words came back" };
// Of a detail what is told elsewhere, or is a mark of our own.
const OURS = new Set(["revised", "changes", "revises", "proposal", "seen_in", "against", "from"]);

// All of it; `doing` has what its buttons do.
export function detail(told, doing) {
  const one = told.memory;
  return [
    make(
      "header",
      { class: "mem-head" },
      make("p", { class: "figures" }, chip(one.kind), ...marks(one), make("code", {}, one.id)),
      make("h2", { tabindex: "-1", id: "mem-title" }, one.title),
      told.superseded_by ? make("p", { class: "warn" }, "Superseded by ", memory(told.superseded_by.id, told.superseded_by.title)) : null,
      toolbar(told, doing),
    ),
    told.waits ? waits(told, doing) : null,
    one.body ? make("pre", { class: "mem-body" }, one.body) : null,
    fields(one.detail),
    named("Tags", one.tags, (each) => facet("tag", each, doing)),
    named("Files", one.files, (each) => facet("file", each, doing)),
    named("Functions", one.functions, (each) => make("code", {}, each)),
    section("Where it is from", provenance(told, doing)),
    told.links.length ? section("Links", make("ul", { class: "mem-rows" }, told.links.map(link))) : null,
    section("How it ranks now", make("p", { class: "figures" }, make("span", {}, `score ${told.score.toFixed(3)}`), make("span", {}, "without words to match")), factors(told.why)),
    section("Shown and used", shown(told)),
    section("History", make("ol", { class: "mem-rows" }, told.history.map((each) => entry(each, doing)))),
  ];
}

export function marks(one) {
  return [
    one.pinned ? chip("★ pinned", "good") : null,
    one.status !== "active" ? chip(one.status, "warn") : null,
    one.asleep ? chip("asleep: too unsure to come by itself", "warn") : null,
  ];
}

function toolbar(told, doing) {
  const one = told.memory;
  const does = [
    ["Edit", "e", doing.edit],
    [one.pinned ? "Unpin" : "Pin", "p", doing.pin],
    one.status === "superseded" ? null : ["Supersede", "s", doing.supersede],
    ["Forget", "f", doing.forget, "danger"],
    told.history.some(stands) ? ["Undo", "u", doing.undoLast] : null,
  ].filter(Boolean);
  return make(
    "div",
    { class: "mem-tools", role: "group", "aria-label": "What you can do" },
    does.map(([name, key, fn, more]) => make("button", { type: "button", class: more, "data-do": name.toLowerCase(), "aria-keyshortcuts": key, on: { click: fn } }, name, " ", make("kbd", {}, key))),
  );
}

// What can be taken back and is no taking back itself.
export const stands = (each) => each.undo && each.what !== "undo";

export function waits(told, doing, { becomes = doing.becomes() } = {}) {
  const one = told.memory ?? told;
  const button = (name, fn, more) => make("button", { type: "button", class: more, "data-do": name.toLowerCase(), on: { click: fn } }, name);
  if (told.waits === "proposal") {
    const wider = one.detail.revises ? [] : [button("Accept everywhere", () => doing.decide(one, "accept", { scope: "universal" }))];
    return make(
      "div",
      { class: "mem-waits", role: "group", "aria-label": "It waits for your word" },
      make("p", {}, one.detail.revises ? ["Other words for ", memory(one.detail.revises, one.detail.revises), `, proposed by ${one.source}.`] : "Proposed as a rule: no agent is shown it before you accept it."),
      told.proposes.length ? make("ul", { class: "mem-rows" }, told.proposes.map((each) => change(each))) : null,
      make("p", { class: "mem-tools" }, button("Accept", () => doing.decide(one, "accept"), "main"), wider, button("Refuse", () => doing.decide(one, "refuse"))),
    );
  }
  const select = make("select", { "aria-label": "What the note becomes", name: "as" }, becomes.map((each) => make("option", { value: each }, each)));
  return make(
    "div",
    { class: "mem-waits", role: "group", "aria-label": "It waits for your word" },
    make("p", {}, "A raw note: make it what it is, or let it go."),
    make("p", { class: "mem-tools" }, select, button("Promote", () => doing.decide(one, "promote", { as: select.value }), "main"), button("Discard", () => doing.decide(one, "discard"))),
  );
}

const section = (name, ...children) => make("section", { class: "mem-part" }, make("h3", {}, name), ...children);

function named(name, list, each) {
  return list.length ? make("p", { class: "mem-named" }, make("span", { class: "dim" }, name), list.map((one) => [" ", each(one)])) : null;
}

const facet = (name, text, doing) => make("button", { type: "button", class: "chip mem-chip", title: `All with this ${name}`, on: { click: () => doing.facet(name, text) } }, text);

function rows(pairs) {
  return make("dl", { class: "mem-dl" }, pairs.filter(([, told]) => told !== "" && told !== null && told !== undefined).map(([name, told]) => make("div", {}, make("dt", {}, name), make("dd", {}, told))));
}

// What only this kind has: whatever its detail holds, by name.
function fields(given) {
  const told = Object.entries(given).filter(([name, each]) => !OURS.has(name) && !bare(each));
  return told.length ? rows(told.map(([name, each]) => [name.replaceAll("_", " "), plain(each)])) : null;
}

const bare = (each) => each === null || each === "" || (typeof each === "object" && !Object.keys(each).length);

function plain(told) {
  if (Array.isArray(told)) return make("ul", { class: "mem-ul" }, told.map((each) => make("li", {}, plain(each))));
  if (told && typeof told === "object") return make("ul", { class: "mem-ul" }, Object.entries(told).map(([name, each]) => make("li", {}, `${name.replaceAll("_", " ")}: `, plain(each))));
  return typeof told === "string" ? make("span", { class: "mem-text" }, told) : String(told ?? "");
}

function provenance(told, doing) {
  const one = told.memory;
  const session = told.session;
  return rows([
    ["source", one.source],
    ["trust", [facet("trust", one.trust, doing), ` ${TRUST[one.trust] ?? ""}`]],
    ["session", session ? make("a", { href: `/timeline/${encodeURIComponent(session.id)}` }, session.title || session.id) : one.session],
    ["project", one.project ? make("button", { type: "button", class: "chip mem-chip", title: one.project, on: { click: () => doing.facet("project", one.project) } }, one.project_name) : ""],
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
  return make("li", {}, make("span", { class: "dim" }, word), " ", chip(each.kind), " ", memory(each.id, each.title), each.status === "active" ? null : [" ", chip(each.status, "warn")]);
}

function shown(told) {
  const use = told.use;
  if (!told.shown.length) return make("p", { class: "dim" }, "It was never shown to an agent.");
  const untold = use.shown - use.used - use.ignored;
  return [
    make("p", { class: "figures" }, make("span", {}, `shown ${many(use.shown, "time")}`), make("span", { class: "used" }, `✓ used ${number(use.used)}`), make("span", {}, `– not used ${number(use.ignored)}`), untold ? make("span", {}, `· cannot be told ${number(untold)}`) : null),
    make("ol", { class: "mem-rows" }, told.shown.map(once)),
  ];
}

function once(each) {
  const [kind, words] = each.used ? ["used", `✓ used${HOW[each.how] ? `: ${HOW[each.how]}` : ""}`] : each.used === false ? ["ignored", "– not used"] : ["unjudged", each.how ? "· cannot be told" : "· not judged yet"];
  const why = make("details", {}, make("summary", {}, `score ${each.score.toFixed(3)}`));
  why.addEventListener("toggle", () => why.open && !why.querySelector("ul") && why.append(factors(each.why) ?? ""));
  return make(
    "li",
    {},
    make("p", { class: "figures" }, make("span", {}, each.moment.replaceAll("_", " ")), make("span", {}, each.layer), make("span", {}, tokens(each.tokens)), make("span", { class: kind }, words), ago(each.at)),
    each.session ? make("p", {}, make("a", { href: `/timeline/${encodeURIComponent(each.session)}` }, each.about || `session ${each.session}`)) : null,
    why,
  );
}

function entry(each, doing) {
  const undo = each.undo ? make("button", { type: "button", class: "quiet", "data-do": `undo-${each.number}`, on: { click: () => doing.undo(each.number) } }, each.what === "undo" ? "Do it again" : "Undo") : null;
  return make(
    "li",
    {},
    make("p", { class: "figures" }, make("strong", {}, `${each.who} ${each.said}`), each.number ? make("span", {}, `entry ${each.number}`) : null, ago(each.at), each.undone ? make("span", {}, `taken back by entry ${each.undone}`) : null, undo),
    each.what === "add" || !each.why ? null : make("p", { class: "dim" }, each.why),
    each.changes.length ? make("ul", { class: "mem-ul" }, each.changes.map(change)) : null,
  );
}

// What something was, and what it became.
function change({ field, before, after }) {
  const said = (told) => (bare(told) || told === undefined ? make("em", { class: "dim" }, "nothing") : plain(told));
  return make("li", { class: "mem-change" }, make("span", { class: "dim" }, `${field.replaceAll("_", " ")} `), make("del", {}, said(before)), make("span", { "aria-label": "became" }, " → "), make("ins", {}, said(after)));
}

// What changes the words of a memory: resolves to what is different, or null.
export function editor(one, { save, cancel }) {
  const scope = one.scope.startsWith("project:") ? "project" : one.scope;
  const was = { title: one.title, body: one.body, kind: one.kind, why: one.detail.why ?? "", fixed_by: one.detail.fixed_by ?? "", scope, confidence: one.confidence };
  for (const name of LISTS) was[name] = one[name].join(name === "tags" ? ", " : "\n");
  const inputs = {
    title: make("input", { name: "title", value: was.title, required: true }),
    body: make("textarea", { name: "body", value: was.body, rows: 6 }),
    kind: make("select", { name: "kind" }, KINDS.map((each) => make("option", { value: each, selected: each === was.kind }, each))),
    why: make("textarea", { name: "why", value: was.why, rows: 2 }),
    fixed_by: make("textarea", { name: "fixed_by", value: was.fixed_by, rows: 2 }),
    scope: make("input", { name: "scope", value: was.scope, required: true, list: "mem-scopes" }),
    confidence: make("input", { name: "confidence", type: "number", min: 0, max: 1, step: "any", value: was.confidence }),
    tags: make("input", { name: "tags", value: was.tags }),
    files: make("textarea", { name: "files", value: was.files, rows: 2 }),
    functions: make("textarea", { name: "functions", value: was.functions, rows: 2 }),
  };
  const labels = { title: "Title", body: "Body", kind: "Kind", why: "Why", fixed_by: "Fixed by", scope: "Counts for: project, universal or language:NAME", confidence: "Confidence, from 0 to 1", tags: "Tags, with commas between", files: "Files, one a line", functions: "Functions, one a line" };
  const hidden = (name) => (name === "why" && !was.why && one.kind !== "decision") || (name === "fixed_by" && !was.fixed_by && one.kind !== "failure");
  const began = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value])); // as a browser normalises it
  const different = () => {
    const changed = Object.keys(inputs).filter((name) => inputs[name].value !== began[name]);
    return Object.fromEntries(changed.map((name) => [name, meant(name, inputs[name].value)]));
  };
  return form("Edit", [
    Object.entries(inputs).map(([name, input]) => make("label", { hidden: hidden(name) }, make("span", { class: "dim" }, labels[name]), input)),
    make("datalist", { id: "mem-scopes" }, ["project", "universal", "language:python", "language:typescript", "language:go", "language:rust"].map((each) => make("option", { value: each }))),
  ], { yes: "Save", go: () => save(different()), cancel, dirty: () => Object.keys(different()).length > 0, first: inputs.title });
}

function meant(name, text) {
  if (name === "confidence") return text === "" ? 1 : Number(text);
  if (!LISTS.includes(name)) return text;
  return text.split(name === "tags" ? "," : "\n").map((each) => each.trim()).filter(Boolean);
}

// What takes its place: a memory that is known, found as one types, or new words.
export function successor(one, { find, save, cancel }) {
  const title = make("input", { name: "title", maxlength: 1000, placeholder: "What is true now, in one line" });
  const body = make("textarea", { name: "body", rows: 3 });
  const why = make("textarea", { name: "why", rows: 2 });
  const query = make("input", { type: "search", name: "find", autocomplete: "off", placeholder: "Words of the memory that takes its place" });
  const found = make("ul", { class: "mem-rows mem-pick", "aria-label": "Memories that may take its place" });
  let chosen = "";
  const look = async () => {
    const all = await find(query.value);
    if (all === null) return;
    fill(found, all.filter((each) => each.id !== one.id).map((each) => make("li", {}, make("label", {}, make("input", { type: "radio", name: "new", value: each.id, checked: each.id === chosen, on: { change: () => { chosen = each.id; title.value = ""; } } }), " ", chip(each.kind), " ", each.title))));
    if (!found.children.length) fill(found, make("li", { class: "dim" }, "Nothing like that."));
  };
  query.addEventListener("input", look);
  title.addEventListener("input", () => {
    chosen = "";
    for (const each of found.querySelectorAll("input")) each.checked = false;
  });
  const told = () => (title.value.trim() ? { title: title.value.trim(), body: body.value, why: why.value } : chosen ? { new: chosen } : null);
  const lacks = make("p", { class: "bad", role: "alert", hidden: true }, "Say what is true now, or choose a memory.");
  return form("Supersede", [
    make("p", { class: "dim" }, "The old one is kept, linked, and no longer shown."),
    make("fieldset", {}, make("legend", {}, "With new words"), make("label", {}, make("span", { class: "dim" }, "Title"), title), make("label", {}, make("span", { class: "dim" }, "Body"), body), make("label", {}, make("span", { class: "dim" }, "Why"), why)),
    make("fieldset", {}, make("legend", {}, "Or by a memory that is known"), make("label", {}, make("span", { class: "dim" }, "Find"), query), found),
    lacks,
  ], { yes: "Supersede", go: () => { lacks.hidden = Boolean(told()); if (told()) save(told()); }, cancel, dirty: () => Boolean(told()), first: title });
}

function form(name, children, { yes, go, cancel, dirty, first }) {
  const node = make(
    "form",
    { class: "mem-form fields", "aria-label": name, on: { submit: (event) => { event.preventDefault(); go(); } } },
    make("h2", {}, name),
    children,
    make("p", { class: "actions" }, make("button", { type: "button", class: "quiet", on: { click: cancel } }, "Cancel ", make("kbd", {}, "Esc")), make("button", { type: "submit", class: "main" }, `${yes} `, make("kbd", {}, "Ctrl+Enter"))),
  );
  return { node, dirty, submit: () => node.requestSubmit(), focus: () => first.focus() };
}

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
