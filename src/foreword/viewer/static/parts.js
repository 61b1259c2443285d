// Draw what several pages show: ages, chips, scores, items, meters, errors, dialogs, toasts, the choice of project.
// A function that returns an element is named for it.

import { get } from "./api.js";
import { append, button, fill, h } from "./dom.js";
import * as format from "./format.js";

export const age = (seconds) =>
  h("time", { datetime: isoDate(seconds), title: format.formatDate(seconds) }, format.formatAge(seconds));

export const clock = (seconds) =>
  h(
    "time",
    { datetime: isoDate(seconds), title: format.formatDate(seconds), "data-clock": true },
    format.formatClock(seconds),
  );

const isoDate = (seconds) => new Date(seconds * 1000).toISOString();

// Keep the ages of an open page true.
export function updateAges(root, signal) {
  const tick = () => {
    for (const each of root.querySelectorAll("time:not([data-clock])"))
      each.textContent = format.formatAge(Date.parse(each.dateTime) / 1000);
  };
  const timer = setInterval(tick, 20_000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

export const chip = (text, style = "") => h("span", { class: `chip ${style}`.trim() }, text);

// "quiet" where no end was reported.
export const sessionState = ({ running, ended }) =>
  running ? h("span.pulse", "live") : chip(ended ? "ended" : "quiet");

export const memoryLink = (id, title) => h("a", { href: format.memoryPath(id) }, title || id);

export const empty = (...children) => h("div.empty", ...children);

// Mark what stands between backticks as code.
export const code = (text) => text.split(/`([^`]+)`/).map((each, at) => (at % 2 ? h("code", each) : each));

// Figures, each below its name.
export const totals = (figures) =>
  h(
    "dl.totals",
    Object.entries(figures).map(([name, value]) => h("div", h("dt", name), h("dd", value))),
  );

// -- scores -----------------------------------------------------------------------------------------------------------

export const SCORE_HELP =
  "A score is the product of its factors: a bar to the left of the middle lowers it, one to the right raises it.";

// Each factor of a score, as a bar from the middle.
export function factors(why) {
  const bars = Object.entries(why ?? {}).map(([name, factor]) =>
    h("li", h("span.factor", name), h("span.figure", factor.toFixed(2)), factorBar(factor)),
  );
  return bars.length ? h("ul.factors", { "aria-label": "Factors of the score" }, bars) : null;
}

function factorBar(factor) {
  const delta = factor.toFixed(2) === "1.00" ? 0 : Math.max(-1, Math.min(1, factor - 1)); // like the figure beside it
  return h(
    "span.bar-of",
    { "aria-hidden": "true" },
    delta ? share(Math.abs(delta) / 2, delta < 0 ? "less" : "more") : null,
  );
}

export const meter = (spent, limit, label) => h("div.meter", h("span.meter-words", label), meterLine(spent, limit));

export const meterLine = (spent, limit) =>
  h(
    "span.meter-line",
    { "aria-hidden": "true" },
    share(limit ? Math.min(1, spent / limit) : 0, spent > limit ? "over" : null),
  );

// A span as wide as its share of its parent.
export function share(rate, style = null) {
  const node = h("span", { class: style });
  node.style.width = `${rate * 100}%`;
  return node;
}

// One injected memory: title, cost, score with its factors, and whether it was used.
export function item(entry, { layer = false, more = null } = {}) {
  const [style, usage] = entry.used === undefined ? [] : format.describeUsage(entry.used, entry.how);
  return h(
    "article.item",
    { "data-memory": entry.memory, tabindex: "-1" },
    h("p.item-title", entry.kind ? chip(entry.kind) : null, " ", memoryLink(entry.memory, entry.title)),
    h(
      "p.figures",
      layer ? h("span", entry.layer) : null,
      usage ? h("span", { class: style }, usage) : null,
      h("span", format.formatTokens(entry.tokens)),
      h("span", `score ${entry.score.toFixed(3)}`),
    ),
    factors(entry.why),
    more,
  );
}

// -- what became of a session -----------------------------------------------------------------------------------------

const MARKS = { NEW: ["+ NEW", "good"], MODIFIED: ["~ MODIFIED", "warn"], DELETED: ["− DELETED", "bad"] };

// Changed functions by file.
export const changedFiles = (changes) =>
  [...Map.groupBy(changes, (each) => each.file)].map(([file, functions]) =>
    h(
      "li",
      h("code.dim", file),
      functions.map((each) => [" ", changedFunction(each)]),
    ),
  );

function changedFunction({ function: name, what, signature }) {
  const [label, style] = MARKS[what] ?? [what, "warn"];
  return h("span.function", { title: signature || null }, chip(label, `what ${style}`), " ", h("code", name));
}

// Whether a failure was fixed, came back or is open.
export function failureState({ fix, open }) {
  if (!fix) return h("span", { class: open ? "bad" : "dim" }, open ? "✗ not fixed yet" : "no longer seen");
  return [h("span", { class: open ? "warn" : "good" }, open ? "came back after" : "✓ fixed"), ": ", code(fix)];
}

export const sessionTitle = ({ title, running }) => title || (running ? "No prompt yet" : "No prompt");

// -- errors, dialogs, toasts ------------------------------------------------------------------------------------------

export const errorBox = (error) =>
  h(
    "div.trouble",
    { role: "alert", "data-unanswered": error.status === 0 },
    h("p", h("strong", code(format.capitalize(error.message || String(error))))),
    error.hint ? h("p", code(error.hint)) : null,
  );

// Ask a question; resolve to what `read` reads from the form, or to null.
export function confirm({ title, body = [], yes = "Yes", danger = false, read = () => true }) {
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" });
    const dialog = h("dialog.dialog", { "aria-labelledby": "ask-title" }, form);
    const no = button("Cancel", () => dialog.close(""), { class: "quiet" });
    const submit = h("button", { type: "submit", value: "yes", class: danger ? "danger" : "main" }, yes);
    append(form, [h("h2#ask-title", title), body, h("p.actions", no, submit)]);
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? read(form) : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function showErrorToast(error) {
  const sentences = [error.message || String(error), error.hint].filter(Boolean);
  showToast(
    sentences.map((each) => [code(format.endSentence(format.capitalize(each))), " "]),
    { seconds: 15 },
  );
}

export function showToast(text, { undo = null, seconds = undo ? 12 : 6 } = {}) {
  const note = h("div.toast", h("span", text));
  const before = document.activeElement;
  const remove = () => {
    const hadFocus = note.contains(document.activeElement);
    note.remove();
    if (hadFocus) (before?.isConnected ? before : document.getElementById("main")).focus({ preventScroll: true });
  };
  const takeBack = () => {
    remove();
    undo();
  };
  if (undo) note.append(button("Undo", takeBack, { class: "quiet" }));
  document.getElementById("toasts").append(note);
  const expire = () => (note.contains(document.activeElement) ? setTimeout(expire, 2_000) : remove());
  setTimeout(expire, seconds * 1_000);
}

// -- choices ----------------------------------------------------------------------------------------------------------

export const loadProjects = async (page) => (await get("/api/projects", {}, { signal: page.signal })).projects;

// The choice of project, which follows new projects.
export async function projectChoice(
  page,
  { chosen = page.query.get("project") ?? "", all = "All projects", change } = {},
) {
  const select = h("select#project", { on: { change: () => change(select.value) } });
  const option = (key, label) => h("option", { value: key }, label || key);
  const draw = (key) => {
    const isUnknown = key && (all || known.length) && !known.some((each) => each.key === key);
    fill(
      select,
      all ? option("", all) : null,
      known.map((each) => option(each.key, each.label)),
      isUnknown ? option(key, `${key} (not known)`) : null,
    );
    if (key) select.value = key;
  };
  const names = (projects) => JSON.stringify(projects.map(({ key, label }) => [key, label]));
  let known = await loadProjects(page);
  draw(chosen);
  page.live(async () => {
    const now = await loadProjects(page).catch(() => known);
    if (select === document.activeElement || names(now) === names(known)) return;
    known = now;
    draw(select.value);
  });
  return h("label.field", h("span", "Project"), keepFocus(select));
}

// Give a select that leads to another address the focus there too, so that arrow keys go on.
let focusNext = { id: "", until: 0 };
export function keepFocus(select) {
  select.addEventListener("change", () => {
    focusNext = { id: select.id, until: Date.now() + 3_000 };
  });
  if (focusNext.id === select.id && Date.now() < focusNext.until) {
    requestAnimationFrame(() => {
      focusNext.until = 0;
      select.focus({ preventScroll: true });
    });
  }
  return select;
}
