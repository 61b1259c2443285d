// A prompt, a project and a budget -> what an agent would be given, and what was left out just below the line, and why.

import { get, latest, post } from "./ask.js";
import { fill, make } from "./dom.js";
import {
  age,
  anew,
  chip,
  coded,
  empty,
  item,
  many,
  meter,
  momentIn,
  number,
  projects,
  reorder,
  SCORED,
  tokens,
  trouble,
  walkable,
} from "./parts.js";

export const title = "Try it";

const PAUSE = 220; // milliseconds without a key before a prompt is asked
const QUIET = 500; // ... without a new answer before one is said aloud
const STEP = 10; // tokens that the slider moves by
const LEAP = 50; // ... and [ and ] do
const WORDED = ["prompt", "question"];
const NO_ROOM = ["room", "cap", "group", "limit", "off", "host"];
const NOTHING = "Nothing is remembered yet: no project has been seen. Work with an agent, or run `foreword init`.";
let draft = ""; // the prompt stays out of the address and off the disk; here it lasts while the viewer is open

// The prompt that the page begins with when it is shown next.
export function bring(prompt) {
  draft = prompt;
}

export async function show(root, page) {
  const asked = { ...Object.fromEntries(page.query), prompt: draft };
  const other = () => {
    form.otherProject();
    choose();
  };
  const choice = await projects(page, { all: "", change: other });
  const chosen = choice.querySelector("select");
  if (!chosen.options.length) {
    return void root.append(make("h1", {}, title), empty(coded(NOTHING)));
  }
  const form = controls(asked, choice);
  const result = make("section", { class: "try-result", "aria-label": "What would be injected" });
  const text = make("section", { class: "try-text", "aria-label": "As the agent would see it" });
  const rows = new Rows(result);
  const head = make(
    "div",
    { class: "head" },
    make("h1", {}, title),
    make("p", { class: "dim" }, "Nothing that you try is kept or counted."),
  );
  root.append(head, form.card, form.budget, make("div", { class: "try-halves" }, result, text));

  let wanted = null; // the question that comes next
  let busy = false;
  let pause = 0;
  let quiet = 0;
  const offering = latest();
  const [choosing, asking] = [page.patient(), page.patient()];

  // One question at a time, then the latest: what is drawn follows the slider, and never an older place of it.
  async function ask() {
    clearTimeout(pause);
    draft = form.prompt.value;
    if (!form.isOffered()) return; // it is asked when there is something to choose from
    wanted = { ...form.said(), prompt: draft, project: chosen.value };
    address();
    if (busy) return;
    busy = true;
    while (wanted) {
      const now = wanted;
      wanted = null;
      try {
        if (!now.prompt.trim() && now.moment === "prompt") draw(null);
        else draw(await post("/api/try", now, { signal: page.signal, changes: false }));
        asking.answered();
      } catch (error) {
        if (error.name === "AbortError") break;
        fail(error);
        asking.failed(error, ask);
      }
    }
    busy = false;
  }

  function fail(error) {
    form.meter();
    rows.clear(trouble(error));
    fill(text);
  }

  function draw(told) {
    form.meter(told);
    form.note(told);
    if (!told) {
      rows.clear(begin());
      return void fill(text);
    }
    rows.draw(told);
    const block = () => [
      make("h2", {}, "As the agent would see it"),
      make("pre", { class: "block", tabindex: "0" }, spoken(told)),
    ];
    anew(text, () => fill(text, told.text ? block() : null));
    point(null); // where the item stands that was chosen
    clearTimeout(quiet);
    const said = told.text ? summary(told) : `Nothing would be said: ${told.why}`;
    quiet = setTimeout(() => !page.signal.aborted && page.say(said), QUIET);
  }

  function begin() {
    const titles = form.choices.sessions
      .map((each) => each.title)
      .filter(Boolean)
      .slice(0, 3);
    const use = (words) => {
      form.prompt.value = words;
      form.prompt.focus();
      ask();
    };
    const examples = titles.map((each) =>
      make(
        "button",
        { type: "button", on: { click: () => use(each) } },
        each.length > 70 ? `${each.slice(0, 69)}…` : each,
      ),
    );
    return empty(
      make("p", {}, "Type what you would ask your agent, and see what it would be told first."),
      examples.length ? make("p", { class: "try-examples" }, "For example: ", examples) : null,
    );
  }

  // Everything but the prompt is in the address.
  function address() {
    const { moment, budget, session, host, form: shape } = form.said();
    const usual = form.range().usual;
    const said = {
      project: chosen.value,
      moment: moment === "prompt" ? "" : moment,
      budget: budget === usual ? "" : budget,
      session,
      host,
      form: shape,
    };
    page.replace(
      `/try?${new URLSearchParams(
        Object.entries(said)
          .filter(([, given]) => given !== "")
          .map(([name, given]) => [name, String(given)]),
      )}`,
    );
  }

  // What can be chosen in the project; of two that were chosen in a row the latter counts.
  async function choose() {
    try {
      const { project, session } = { project: chosen.value, session: form.session() };
      const told = await offering((signal) => get("/api/try", { project, session }, { signal }));
      if (!told || page.signal.aborted) return;
      choosing.answered();
      form.offer(told);
      ask();
    } catch (error) {
      if (page.signal.aborted) return;
      fail(error);
      choosing.failed(error, choose);
    }
  }

  const move = (by) => {
    form.slider.value = Number(form.slider.value) + by;
    form.moved();
    ask();
  };
  const point = (node) => {
    const row = node?.closest?.(".tried") ?? here();
    for (const each of text.querySelectorAll("[data-memory]"))
      each.classList.toggle("pointed", each.dataset.memory === row?.dataset.memory);
  };
  const walk = walkable(() => result.querySelectorAll(".tried"), { onto: point });
  result.addEventListener("pointerover", (event) => point(event.target));
  result.addEventListener("pointerleave", () => point(null));
  const here = () => result.querySelector(".tried:focus-within, .tried.chosen");
  const later = () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE);
  };
  form.on({ ask, later });
  page.keys({
    "Ctrl+Enter": ["Ask now", ask],
    p: ["Write the prompt", () => form.prompt.focus()],
    Escape: ["Leave the prompt", () => result.focus()],
    "[": ["Smaller budget", () => move(-LEAP)],
    "]": ["Larger budget", () => move(LEAP)],
    j: ["Next item", walk.next],
    k: ["Previous item", walk.previous],
    o: ["Open the memory", () => here() && page.go(`/memories/${encodeURIComponent(here().dataset.memory)}`)],
  });
  page.signal.addEventListener("abort", () => {
    clearTimeout(pause);
    clearTimeout(quiet);
  });
  result.tabIndex = -1;
  await choose();
  page.live(() => {
    if (!form.isOffered()) choose();
    else if (form.prompt.value.trim() || form.said().moment !== "prompt") ask();
  });
}

// The text, each item's line in a span of its own: who looks at an item sees where it stands.
function spoken(told) {
  const parts = [];
  let from = 0;
  for (const { memory, line } of told.items) {
    const at = told.text.indexOf(line, from);
    if (at < 0) continue; // changed code stands under its file, in another order
    parts.push(told.text.slice(from, at), make("span", { "data-memory": memory }, line));
    from = at + line.length;
  }
  return [...parts, told.text.slice(from)];
}

const summary = (told) => `${many(told.items.length, "item")}, ${number(told.tokens)} of ${tokens(told.budget)}`;

// ---- what is asked

function controls(asked, project) {
  let choices = { moments: [], sessions: [], hosts: [], forms: [] };
  const prompt = make("textarea", {
    id: "prompt",
    rows: "3",
    value: asked.prompt,
    spellcheck: "false",
    placeholder: "Why does the login test fail again?",
  });
  const moment = make("select", { id: "moment" });
  const session = make("select", { id: "session" });
  const host = make("select", { id: "host" });
  const shape = make("select", { id: "form" });
  const slider = make("input", { type: "range", id: "budget", step: STEP });
  const output = make("output", { for: "budget" });
  const usual = make("button", { type: "button", class: "quiet", title: "As the settings have it" });
  const spent = make("div", { class: "try-spent" });
  const note = make("p", { class: "dim try-note" });
  let set = Boolean(asked.budget); // somebody moved it
  let offered = false; // what the project has to choose from

  // Sessions of one project are none of another's.
  function otherProject() {
    offered = false;
    session.value = asked.session = "";
  }

  const range = () =>
    choices.moments.find((each) => each.name === moment.value) ?? { least: 40, usual: 500, most: 2000 };
  const options = (select, all, given) =>
    fill(
      select,
      all.map(([key, words]) => make("option", { value: key, selected: key === given }, words)),
    );
  const field = (words, control) => make("label", { class: "field" }, make("span", {}, words), control);

  function tell() {
    const value = Number(slider.value);
    output.textContent = tokens(value);
    usual.hidden = value === range().usual;
    usual.textContent = `Back to ${number(range().usual)}`;
    slider.setAttribute("aria-valuetext", tokens(value));
  }

  function reach(value) {
    const { least, usual, most } = range();
    Object.assign(slider, { min: least, max: most });
    slider.value = value ?? usual;
    tell();
  }

  function offer(told) {
    choices = told;
    offered = true;
    const named = (each) => `${each.title || each.id.slice(0, 8)} (${each.host}, ${age(each.last)})`;
    options(
      moment,
      told.moments.map((each) => [each.name, momentIn("one", each.name)]),
      moment.value || asked.moment || "prompt",
    );
    options(
      session,
      [["", "a new one"], ...told.sessions.map((each) => [each.id, named(each)])],
      session.value || asked.session,
    );
    options(host, [["", "any"], ...told.hosts.map((each) => [each.name, each.name])], host.value || asked.host);
    options(
      shape,
      [["", "as the agent takes it"], ...told.forms.map((each) => [each, each])],
      shape.value || asked.form,
    );
    more.open ||= Boolean(session.value || host.value || shape.value);
    reach(set ? Number(asked.budget ?? slider.value) : null);
    for (const each of ["budget", "moment", "session", "host", "form"]) delete asked[each]; // from now on they are chosen here
  }

  function on({ ask, later }) {
    prompt.addEventListener("input", later);
    moment.addEventListener("change", () => {
      unset();
      ask();
    });
    for (const each of [session, host, shape]) each.addEventListener("change", ask);
    slider.addEventListener("input", () => {
      moved();
      ask();
    });
    usual.addEventListener("click", () => {
      unset();
      slider.focus(); // the button hides itself
      ask();
    });
  }

  const moved = () => {
    set = true;
    tell();
  };
  const unset = () => {
    set = false;
    reach(null);
  };
  const more = make(
    "details",
    { class: "try-more" },
    make("summary", {}, "Session, agent, form"),
    make(
      "div",
      { class: "try-choices" },
      field("In session", session),
      field("Agent", host),
      field("Form of the text", shape),
    ),
  );
  const card = make(
    "form",
    { class: "card", on: { submit: (event) => event.preventDefault() } },
    make("label", { class: "field", for: "prompt" }, make("span", {}, "Prompt")),
    prompt,
    make("div", { class: "try-choices" }, project, field("Moment", moment), more),
    note,
  );
  const budget = make(
    "div",
    { class: "try-budget" },
    make("label", { for: "budget" }, "Budget"),
    slider,
    output,
    usual,
    spent,
  );

  return {
    card,
    budget,
    prompt,
    slider,
    offer,
    otherProject,
    isOffered: () => offered,
    session: () => session.value || asked.session,
    on,
    moved,
    range,
    get choices() {
      return choices;
    },
    said: () => ({
      moment: moment.value,
      budget: Number(slider.value),
      session: session.value,
      host: host.value,
      form: shape.value,
    }),
    meter: (told) =>
      fill(
        spent,
        told
          ? meter(
              told.tokens,
              told.budget,
              [summary(told), told.budget < Number(slider.value) ? " (what this window has left)" : ""].join(""),
            )
          : null,
      ),
    note: (told) => fill(note, told ? lookedFor(told) : null),
  };
}

function lookedFor({ moment, terms, build_ms }) {
  if (!WORDED.includes(moment))
    return "There are no words to match at this moment: what is recent, near and trusted comes.";
  return terms.length ? ["Looked for: ", terms.map((each) => [chip(each), " "]), `in ${build_ms.toFixed(1)} ms`] : null;
}

// ---- what is answered: a row for each memory, which stays itself while it crosses the line

class Rows {
  constructor(root) {
    this.root = root;
    this.rows = new Map();
  }

  clear(...instead) {
    this.rows.clear();
    fill(this.root, ...instead);
  }

  draw(told) {
    const before = new Map(
      [...this.rows].map(([id, row]) => [id, { top: row.node.getBoundingClientRect().top, is: row.is }]),
    );
    const wanted = this.nodes(told);
    const held = this.root.contains(document.activeElement) ? document.activeElement : null;
    reorder(this.root, wanted);
    if (held && held !== document.activeElement) (held.isConnected ? held : this.root).focus({ preventScroll: true }); // a row that moves loses it
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.glide(before);
  }

  nodes(told) {
    const known = this.rows;
    this.rows = new Map();
    const row = (entry, is) => {
      const found = known.get(entry.memory) ?? {
        node: make("div", { class: "tried", tabindex: "-1", "data-memory": entry.memory }),
        as: "",
      };
      const as = JSON.stringify([entry, is]);
      if (found.as !== as) kept(found.node, () => fill(found.node, drawn(entry, is)));
      found.node.classList.toggle("left", is === "left");
      this.rows.set(entry.memory, { node: found.node, as, is });
      return found.node;
    };
    const silent = told.text ? null : silence(told);
    const several = told.layers.length > 1;
    const parts = told.layers.map((layer) => {
      const items = told.items.filter((each) => each.layer === layer.name);
      const left = told.left.filter((each) => each.layer === layer.name);
      const had = layer.skipped || `${number(layer.spent)} of ${tokens(layer.cap)}`;
      return [
        several
          ? make(
              "div",
              { class: "try-layer" },
              make("h2", {}, layer.heading),
              make("p", { class: "figures" }, make("span", {}, had), make("span", {}, `at most ${layer.limit}`)),
            )
          : null,
        items.map((each) => row(each, "in")),
        groups(left, told, layer).map(([words, some]) => [line(words), some.map((each) => row(each, "left"))]),
      ];
    });
    const rest = told.more
      ? make("p", { class: "dim try-rest" }, `${many(told.more, "more memory", "more memories")} further below`)
      : null;
    const problems = told.problems.map((each) => make("p", { class: "warn" }, each));
    const whole =
      told.text && !told.left.some((each) => NO_ROOM.includes(each.reason)) && !several
        ? line(`The budget holds all of it: ${tokens(told.budget - told.tokens)} to spare`)
        : null;
    const scored = told.items.length ? make("p", { class: "dim how" }, SCORED) : null;
    return [
      problems,
      silent,
      scored,
      parts.map((each, at) => (at || several ? each : [each[0], each[1], whole, each[2]])),
      rest,
    ]
      .flat(Infinity)
      .filter(Boolean);
  }

  // From where it stood to where it stands; what crossed the line is lit for a moment.
  glide(before) {
    for (const [id, row] of this.rows) {
      const was = before.get(id);
      if (!was) {
        row.node.animate([{ opacity: 0 }, { opacity: 1 }], 160);
        continue;
      }
      const by = was.top - row.node.getBoundingClientRect().top;
      if (by)
        row.node.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], {
          duration: 180,
          easing: "ease-out",
        });
      if (was.is !== row.is)
        row.node.animate(
          [
            { backgroundColor: getComputedStyle(row.node).getPropertyValue("--mark") },
            { backgroundColor: "transparent" },
          ],
          900,
        );
    }
  }
}

// A link that somebody stands on is still stood on when its row is drawn anew: ages, and so scores, change all the time.
const kept = (node, draw) => anew(node, draw) || node.focus({ preventScroll: true });

function drawn(entry, is) {
  const says =
    is === "left"
      ? make("p", { class: "try-why" }, make("strong", {}, "Left out: "), entry.says)
      : entry.says
        ? make("p", { class: "try-why" }, entry.says)
        : null;
  return item(entry, { more: [says, is === "left" ? make("pre", { class: "try-said" }, entry.line) : null] });
}

function groups(left, told, layer) {
  const kind = (each) => (NO_ROOM.includes(each.reason) ? 0 : each.reason === "threshold" ? 2 : 1);
  const words = [
    left.some((each) => !["limit", "off"].includes(each.reason))
      ? `The budget ends here: ${number(told.tokens)} of ${tokens(told.budget)}`
      : `Here it ends: at most ${many(layer.limit, "item")}`,
    "Not said again, or not by itself",
    `Below the threshold: ${layer.least.toFixed(3)} is needed`,
  ];
  return words.map((each, at) => [each, left.filter((one) => kind(one) === at)]).filter(([, some]) => some.length);
}

const line = (words) => make("p", { class: "try-line" }, make("span", {}, words));

function silence(told) {
  const best = told.left.find((each) => each.reason === "threshold");
  const layer = best && told.layers.find((each) => each.name === best.layer);
  return make(
    "div",
    { class: "empty" },
    make("p", {}, make("strong", {}, "Nothing would be said"), `: ${told.why}.`),
    best ? make("p", {}, `The best scores ${best.score.toFixed(3)}, and ${layer.least.toFixed(3)} is needed.`) : null,
  );
}
