// Draw what several pages show in the same way: ages, chips, factors, items, meters, dialogs, toasts.

import { get } from "./api.js";
import { add, fill, make } from "./dom.js";

const DAY = 86_400;
const AGES = [
  [DAY * 365, "y"],
  [DAY * 30, "mo"],
  [DAY * 7, "w"],
  [DAY, "d"],
  [3600, "h"],
  [60, "min"],
];

// How long ago, as injected text says it: "2h ago".
export function age(seconds, now = Date.now() / 1000) {
  const past = Math.max(0, now - seconds);
  const [unit, name] = AGES.find(([each]) => past >= each) ?? [1, "s"];
  return past < 10 ? "just now" : `${Math.floor(past / unit)} ${name} ago`;
}

// Made once each: a list has hundreds of times, and making one costs a hundred times as much as using it.
const dated = (how) => new Intl.DateTimeFormat(undefined, how);
const WHEN = dated({ dateStyle: "medium", timeStyle: "short" });
const CLOCK = dated({ hour: "2-digit", minute: "2-digit" });
const OF_YEAR = dated({ weekday: "short", day: "numeric", month: "short" });
const OF_ANY_YEAR = dated({ weekday: "short", day: "numeric", month: "short", year: "numeric" });

export const when = (seconds) => WHEN.format(seconds * 1000);

export const clock = (seconds) => CLOCK.format(seconds * 1000);

// The local day, in words where it is near.
export function day(seconds) {
  const then = new Date(seconds * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(then).setHours(0, 0, 0, 0)) / (DAY * 1000));
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return (then.getFullYear() === new Date().getFullYear() ? OF_YEAR : OF_ANY_YEAR).format(then);
}

const FIGURES = new Intl.NumberFormat(); // made once: a list has a hundred numbers
export const number = (n) => FIGURES.format(n);

export const tokens = (n) => `${number(n)} ${n === 1 ? "token" : "tokens"}`;

export const many = (n, one, more = `${one}s`) => `${number(n)} ${n === 1 ? one : more}`;

// A moment of time that tells its age, and the whole of it to who asks.
export function ago(seconds) {
  return make("time", { datetime: new Date(seconds * 1000).toISOString(), title: when(seconds) }, age(seconds));
}

// While a page is open what it says of ages stays true.
export function ageing(root, signal) {
  const tick = () => {
    for (const each of root.querySelectorAll("time:not([data-clock])"))
      each.textContent = age(Date.parse(each.dateTime) / 1000);
  };
  const ticking = setInterval(tick, 20_000);
  signal.addEventListener("abort", () => clearInterval(ticking));
}

export const chip = (text, more = "") => make("span", { class: `chip ${more}`.trim() }, text);

// The state of a session in one word, on every page: live, ended, or quiet where no end was reported.
export const sessionState = (goesOn, ended) =>
  goesOn ? make("span", { class: "pulse" }, "live") : chip(ended ? "ended" : "quiet");

// When something is given: what such a moment is called, alone and as a time, and several of them.
const TRIGGERS = {
  prompt: { one: "prompt", at: "for a prompt", all: "prompts" },
  session_start: { one: "session start", at: "at session start", all: "session start" },
  compaction: { one: "compaction", at: "for a compaction", all: "compactions" },
  question: { one: "question of the agent", at: "for a question", all: "questions" },
  tool: { one: "tool use", at: "around a tool use", all: "hints" },
};
export const triggerIn = (form, name) => TRIGGERS[name]?.[form] ?? name;

// A link to a memory, by its title.
export const memory = (id, title) => make("a", { href: `/memories/${encodeURIComponent(id)}` }, title || id);

// Each factor of a score as a small bar from the middle, which is 1: to the left it lowers the score, to the right it raises it.
export function factors(why) {
  const data = Object.entries(why ?? {});
  const bars = data.map(([name, factor]) =>
    make(
      "li",
      {},
      make("span", { class: "factor" }, name),
      make("span", { class: "figure" }, factor.toFixed(2)),
      bar(factor),
    ),
  );
  return data.length ? make("ul", { class: "factors", "aria-label": "Factors of the score" }, bars) : null;
}

function bar(factor) {
  const by = factor.toFixed(2) === "1.00" ? 0 : Math.max(-1, Math.min(1, factor - 1)); // as the figure beside it says
  const inner = by ? make("span", { class: by < 0 ? "less" : "more" }) : null;
  if (inner) inner.style.width = `${Math.abs(by) * 50}%`;
  return make("span", { class: "bar-of", "aria-hidden": "true" }, inner);
}

// So much of so much, in words and as a line.
export function meter(spent, limit, words) {
  return make("div", { class: "meter" }, make("span", { class: "meter-words" }, words), line(spent, limit));
}

export function line(spent, limit) {
  const inner = make("span", { class: spent > limit ? "over" : "" });
  inner.style.width = `${limit ? Math.min(1, spent / limit) * 100 : 0}%`;
  return make("span", { class: "meter-line", "aria-hidden": "true" }, inner);
}

const HOW = {
  fetched: "it was fetched",
  file: "its file was touched",
  function: "its function was touched",
  command: "its command was run",
  words: "its words came back",
};

// What became of something that was given: the class of it, and in words how that is known.
export function useOf(used, how) {
  if (used) return ["used", `✓ used${how ? `: ${HOW[how] ?? how}` : ""}`];
  if (used === 0 || used === false) return ["ignored", "– not used"];
  return ["unjudged", how ? "· cannot be told" : "· not judged yet"];
}

export const SCORED =
  "A score is the product of its factors: a bar to the left of the middle lowers it, one to the right raises it.";

// One injected memory: title, where it stood, what it cost, what it scored and why, and whether it was used.
export function item(entry, { why = true, layer = false, more = null } = {}) {
  const [kind, words] = entry.used === undefined ? [] : useOf(entry.used, entry.how);
  return make(
    "article",
    { class: "item", "data-memory": entry.memory, tabindex: "-1" },
    make("p", { class: "item-title" }, entry.kind ? chip(entry.kind) : null, " ", memory(entry.memory, entry.title)),
    make(
      "p",
      { class: "figures" },
      layer ? make("span", {}, entry.layer) : null,
      words ? make("span", { class: kind }, words) : null,
      make("span", {}, tokens(entry.tokens)),
      make("span", {}, `score ${entry.score.toFixed(3)}`),
    ),
    why ? factors(entry.why) : null,
    more,
  );
}

// Figures, each below its name.
export const totals = (data) =>
  make(
    "dl",
    { class: "totals" },
    Object.entries(data).map(([name, drawn]) => make("div", {}, make("dt", {}, name), make("dd", {}, drawn))),
  );

export const empty = (...words) => make("div", { class: "empty" }, ...words);

// Words between backticks are typed as they are; a backtick alone is one.
export const coded = (text) =>
  text.split(/`([^`]+)`/).map((each, place) => (place % 2 ? make("code", {}, each) : each));

export const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

export const shorten = (words, most) => (words.length > most ? `${words.slice(0, most - 1).trimEnd()}…` : words);

// With a stop where it has none.
export const full = (words) => (/[.!?…]$/.test(words) ? words : `${words}.`);

// What became of a memory that was another when it was read.
const SINCE = {
  superseded: "been superseded",
  discarded: "been set aside",
  stale: "gone stale",
  active: "been brought back",
};
export const since = (status) => (SINCE[status] ? `It has since ${SINCE[status]}.` : `It is ${status} now.`);

export function trouble(error) {
  const words = sentence(error.message || String(error));
  return make(
    "div",
    { class: "trouble", role: "alert", "data-unanswered": error.status === 0 },
    make("p", {}, make("strong", {}, coded(words))),
    error.hint ? make("p", {}, coded(error.hint)) : null,
  );
}

// A question that must be answered: resolves to what `read` reads from the form, or to null.
export function ask({ title, body = [], yes = "Yes", danger = false, read = () => true }) {
  return new Promise((settle) => {
    const form = make("form", { method: "dialog" });
    const dialog = make("dialog", { class: "dialog", "aria-labelledby": "ask-title" }, form);
    const no = make("button", { type: "button", class: "quiet", on: { click: () => dialog.close("") } }, "Cancel");
    const go = make("button", { type: "submit", value: "yes", class: danger ? "danger" : "main" }, yes);
    add(form, [make("h2", { id: "ask-title" }, title), body, make("p", { class: "actions" }, no, go)]);
    dialog.addEventListener("close", () => {
      settle(dialog.returnValue === "yes" ? read(form) : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// What went wrong and the way out, as one reads it in a line.
const troubled = (error) =>
  [error.message || String(error), error.hint].filter(Boolean).map((each) => [coded(full(sentence(each))), " "]);

// What was done, for some seconds, and where there is one a way back; what went wrong, for as long as two sentences take.
export const toastTrouble = (error) => toast(troubled(error), { seconds: 15 });

export function toast(words, { undo = null, seconds = undo ? 12 : 6 } = {}) {
  const note = make("div", { class: "toast" }, make("span", {}, words));
  const before = document.activeElement;
  const gone = () => {
    const held = note.contains(document.activeElement);
    note.remove();
    if (held) (before?.isConnected ? before : document.getElementById("main")).focus({ preventScroll: true });
  };
  const back = () => {
    gone();
    undo();
  };
  if (undo) note.append(make("button", { type: "button", class: "quiet", on: { click: back } }, "Undo"));
  document.getElementById("toasts").append(note);
  const late = () => (note.contains(document.activeElement) ? setTimeout(late, 2_000) : gone());
  setTimeout(late, seconds * 1_000);
}

// A choice of project; the address has it as ?project=KEY. One that is seen meanwhile is there to be chosen too.
export async function projects(page, { chosen = page.query.get("project") ?? "", all = "All projects", change } = {}) {
  const select = make("select", { id: "project", on: { change: () => change(select.value) } });
  const option = (key, name) => make("option", { value: key }, name || key);
  const draw = (some, key) => {
    const isUnknown = key && (all || some.length) && !some.some((each) => each.key === key);
    fill(
      select,
      all ? option("", all) : null,
      some.map((each) => option(each.key, each.label)),
      isUnknown ? option(key, `${key} (not known)`) : null,
    );
    if (key) select.value = key;
  };
  let data = await known(page);
  draw(data, chosen);
  page.live(async () => {
    const now = await known(page).catch(() => data); // whoever is not there is asked again with the rest of the page
    if (select === document.activeElement || JSON.stringify(now.map(named)) === JSON.stringify(data.map(named))) return;
    data = now;
    draw(data, select.value);
  });
  return make("label", { class: "field" }, make("span", {}, "Project"), leading(select));
}

export const known = async (page) => (await get("/api/projects", {}, { signal: page.signal })).projects;

const named = ({ key, label }) => [key, label];

// A choice that leads to another address is there again with the focus: who goes along it by arrow keys goes on.
let led = { id: "", until: 0 };
export function leading(select) {
  const again = () => {
    led.until = 0;
    select.focus({ preventScroll: true });
  };
  select.addEventListener("change", () => {
    led = { id: select.id, until: Date.now() + 3_000 };
  });
  if (led.id === select.id && Date.now() < led.until) requestAnimationFrame(again);
  return select;
}

// The nodes in their order, each moved only where it must: moving one that has the focus would take it away.
export function reorder(list, nodes) {
  const wanted = new Set(nodes);
  for (const each of [...list.children]) if (!wanted.has(each)) each.remove();
  let there = list.firstElementChild;
  for (const each of nodes) {
    if (each === there) there = there.nextElementSibling;
    else list.insertBefore(each, there);
  }
}

// Draw a node again, and keep the focus, what was unfolded and what was chosen in it.
export function redraw(node, draw) {
  const at = document.activeElement;
  const before = signs(node);
  const held = at !== node && node.contains(at) ? before.get(at) : "";
  const left = new Map([...before].map(([each, sign]) => [sign, each]));
  draw();
  for (const [each, sign] of signs(node)) {
    const was = left.get(sign);
    if (was && was !== each && each.tagName === "SUMMARY") each.parentElement.open = was.parentElement.open;
    if (was && was !== each && each.tagName === "SELECT") each.value = was.value;
    if (held && sign === held) each.focus({ preventScroll: true });
  }
  return !held || node.contains(document.activeElement);
}

// Draw a node again only where its data changed; the focus stays.
export function renew(node, data, drawing) {
  const drawn = JSON.stringify(data);
  if (node.drawn === drawn) return;
  node.drawn = drawn;
  if (!redraw(node, () => fill(node, drawing(data)))) node.focus({ preventScroll: true });
}

// Mark a node as not drawn from data, so that `renew` draws it the next time.
export function stale(node) {
  node.drawn = "";
}

// What can have the focus, each with a name that it has in the next drawing too.
function signs(node) {
  const seen = new Map();
  const all = [...node.querySelectorAll("a, button, summary, select, input, textarea, [tabindex]")];
  return new Map(
    all.map((each) => {
      const name = [
        each.tagName,
        ownerOf(each),
        each.getAttribute("aria-keyshortcuts") ??
          each.dataset.do ??
          each.getAttribute("href") ??
          each.name ??
          each.className,
      ].join(" ");
      seen.set(name, (seen.get(name) ?? 0) + 1);
      return [each, `${name} ${seen.get(name)}`];
    }),
  );
}

// The memory, or whatever else, that a node is about.
function ownerOf(node) {
  const { of, memory } = node.closest("[data-of], [data-memory]")?.dataset ?? {};
  return of ?? memory ?? "";
}

// Up and down a list of nodes by keys; the one that is chosen has the focus.
export function walkable(find, { onto = () => {} } = {}) {
  const step = (by) => {
    const all = [...find()];
    if (!all.length) return;
    const at = all.findIndex((each) => each.contains(document.activeElement) || each.classList.contains("chosen"));
    choose(all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))]);
  };
  const choose = (node) => {
    for (const each of find()) each.classList.toggle("chosen", each === node);
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "nearest" });
    onto(node);
  };
  return { next: () => step(1), previous: () => step(-1), choose };
}
