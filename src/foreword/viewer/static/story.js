// Show the story of one session: what it was about, and every step of it in order of time.

import { get } from "./api.js";
import { fill, make } from "./dom.js";
import {
  redraw,
  chip,
  clock,
  coded,
  day,
  many,
  memory,
  triggerIn,
  number,
  sentence,
  sessionState,
  tokens,
  walkable,
  when,
} from "./parts.js";

const REST = 3_000; // milliseconds between two looks at a session that goes on
const MARKS = { NEW: "+ NEW", MODIFIED: "~ MODIFIED", DELETED: "− DELETED" };
const SOURCES = {
  startup: "",
  resume: "it was resumed",
  clear: "in a cleared window",
  compact: "after a compaction",
  fork: "forked from another session",
};
const KEPT = {
  decision: "Decided",
  preference: "Rule",
  correction: "Corrected",
  learning: "Learned",
  observation: "Noted",
  handoff: "Handed over",
  pattern: "Pattern",
  goal: "Goal",
  note: "Note",
  project: "Project",
};
const ABOUT = [
  ["Changed", "changed"],
  ["Learned", "learned"],
  ["Decided", "decisions"],
  ["Rules", "rules"],
  ["Still open", "next"],
];
const AUTHORS = {
  typed: "a person typed this",
  mixed: "typed, with something pasted",
  pasted: "pasted",
  machine: "written by a program",
};

export async function showStory(root, page, id) {
  const back = () => (history.state?.from === "timeline" ? history.back() : page.go("/timeline"));
  const up = (event) => {
    event.preventDefault();
    back();
  };
  const body = make("div", { class: "story" });
  root.append(make("p", {}, make("a", { href: "/timeline", on: { click: up } }, "← Timeline")), body);
  page.keys({ Escape: ["Back to the timeline", back] });
  let shown = null;
  try {
    shown = await ask();
  } catch (error) {
    fill(body, make("h1", {}, "Story of a session"));
    throw error; // the frame tells it, and asks again where nobody answered
  }
  page.name(shown.session.title || "A session");
  const head = make("div", { class: "story-head" });
  const steps = make("ol", { class: "steps", "aria-label": "Oldest first" });
  const list = new Steps(steps, shown.session.id);
  let drawn = ""; // what the head was made of
  body.append(head, make("h2", {}, "Step by step"), steps);
  draw(shown);
  const walk = walkable(() => steps.querySelectorAll(".step"));
  page.keys({
    j: ["Next step", walk.next],
    k: ["Previous step", walk.previous],
    o: ["Open what it names", openChosen],
    Enter: ["Open what it names", openChosen],
  });
  let looked = performance.now();
  let waiting = 0;
  page.live(later);
  page.signal.addEventListener("abort", () => clearTimeout(waiting));

  function later() {
    if (waiting) return;
    waiting = setTimeout(again, Math.max(0, REST - (performance.now() - looked)));
  }

  async function again() {
    try {
      draw(await ask());
    } catch {
      // What is shown stays; the frame tells when the viewer is closed.
    }
    looked = performance.now();
    waiting = 0;
  }

  function draw(data) {
    const drawnAs = JSON.stringify([data.session, data.left_out]);
    if (drawn !== drawnAs) redraw(head, () => fill(head, headOf(data)));
    drawn = drawnAs;
    list.put(data.steps);
  }

  function openChosen() {
    const chosen = steps.querySelector(".step.chosen");
    const details = chosen?.querySelector("details");
    const link = chosen?.querySelector("a[href]");
    if (details) details.open = !details.open;
    else if (link) page.go(link.getAttribute("href"));
  }

  function ask() {
    return get(`/api/sessions/${encodeURIComponent(id)}`, {}, { signal: page.signal });
  }
}

// Functions with what became of each, those of one file together.
export function changes(some) {
  const files = new Map();
  for (const each of some) files.set(each.file, [...(files.get(each.file) ?? []), each]);
  return [...files].map(([file, functions]) =>
    make(
      "li",
      {},
      make("code", { class: "dim" }, file),
      functions.map((each) => [" ", changed(each)]),
    ),
  );
}

function changed({ function: name, what, signature }) {
  return make(
    "span",
    { class: "function", title: signature || null },
    chip(MARKS[what] ?? what, `what ${what === "NEW" ? "good" : what === "DELETED" ? "bad" : "warn"}`),
    " ",
    make("code", {}, name),
  );
}

export const untitled = ({ running }) => (running ? "Nothing has been said yet" : "Nothing was said");

// What came of a failure: fixed, back again, or not fixed yet.
export function fate({ fix, open }) {
  if (fix)
    return [make("span", { class: open ? "warn" : "good" }, open ? "came back after" : "✓ fixed"), ": ", coded(fix)];
  return make("span", { class: open ? "bad" : "dim" }, open ? "✗ not fixed yet" : "no longer seen");
}

// The steps that are shown: a session that goes on only adds some, and what is there stays as it is.
class Steps {
  constructor(list, session) {
    this.list = list;
    this.session = session;
    this.data = [];
  }

  put(steps) {
    const times = new Map(); // two that are alike are still two
    const data = steps.map((each, at) => {
      const drawnAs = JSON.stringify([each, at ? day(steps[at - 1].at) : ""]);
      times.set(drawnAs, (times.get(drawnAs) ?? 0) + 1);
      return `${times.get(drawnAs)} ${drawnAs}`;
    });
    const known = new Map([...this.list.children].map((node, at) => [this.data[at], node]));
    const gone = new Set(this.data.filter((each) => !data.includes(each)));
    steps.forEach((each, at) => {
      const there = this.list.children[at];
      const old = known.get(data[at]);
      if (old && old === there) return;
      const node = old ?? stepOf(each, steps[at - 1] ?? null, this.session);
      if (!old && there && gone.has(this.data[at]) && known.get(this.data[at]) === there) carry(there, node);
      else this.list.insertBefore(node, there ?? null);
    });
    while (this.list.children.length > data.length) this.list.lastChild.remove();
    this.data = data;
  }
}

// A step that is drawn again keeps its place: unfolded, chosen and focused as it was.
function carry(before, after) {
  after.classList.toggle("chosen", before.classList.contains("chosen"));
  for (const { name, value } of after.attributes) before.setAttribute(name, value);
  if (!redraw(before, () => before.replaceChildren(...after.childNodes))) before.focus({ preventScroll: true });
}

function headOf(data) {
  const { session } = data;
  const { injected } = session;
  const points = ABOUT.filter(([, name]) => session[name].length);
  const minutes = Math.max(1, Math.round((session.last - session.started) / 60));
  return [
    make("h1", {}, session.title || untitled(session)),
    make(
      "p",
      { class: "figures" },
      sessionState(session.running, session.ended),
      make("span", {}, `${day(session.started)}, ${clock(session.started)}`),
      make("span", {}, minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`),
      make("a", { href: `/timeline?project=${encodeURIComponent(session.project)}` }, session.project_name),
      make("span", {}, session.host),
      make("span", {}, many(session.events, "event")),
      make("span", { class: "mono" }, session.id),
    ),
    make(
      "p",
      { class: "figures" },
      injected.injections
        ? [
            make("span", {}, `given ${many(injected.items, "memory", "memories")} in ${tokens(injected.tokens)}`),
            make(
              "span",
              { class: injected.used ? "used" : "" },
              injected.used ? `✓ ${number(injected.used)} used` : session.running ? "none used so far" : "none used",
            ),
            make("a", { href: `/now/${encodeURIComponent(session.id)}` }, "What it was given, and why"),
          ]
        : make("span", {}, "it was given nothing"),
      session.summary_id ? memory(session.summary_id, "Its summary") : null,
    ),
    session.summary ? make("p", { class: "said" }, session.summary) : null,
    session.work ? make("p", { class: "dim" }, sentence(`${session.work}.`)) : null,
    points.length
      ? make(
          "dl",
          { class: "lines card about" },
          points.map(([label, name]) => [
            make("dt", {}, label),
            make(
              "dd",
              {},
              make(
                "ul",
                {},
                name === "changed"
                  ? changes(session.changed)
                  : session[name].map((each) => make("li", {}, each.id ? memory(each.id, each.title) : each)),
              ),
            ),
          ]),
        )
      : null,
    data.left_out
      ? make(
          "p",
          { class: "dim" },
          `${many(data.left_out, "earlier step")} left out: these are the last ${number(data.steps.length)}.`,
        )
      : null,
    data.without_events
      ? make("p", { class: "dim" }, "What was said and run in it is not kept; this is what came of it.")
      : null,
  ];
}

function stepOf(data, before, session) {
  const [label, kind, body] = (TELL[data.what] ?? (() => [data.what, "", null]))(data, session);
  const fresh = before && day(before.at) !== day(data.at);
  return make(
    "li",
    { class: `step ${kind}`, tabindex: "-1" },
    fresh ? make("p", { class: "day-of" }, day(data.at)) : null,
    make(
      "p",
      { class: "step-head" },
      make("time", { datetime: new Date(data.at * 1000).toISOString(), title: when(data.at) }, clock(data.at)),
      " ",
      make("strong", {}, label),
    ),
    body ? make("div", { class: "step-body" }, body) : null,
  );
}

// What happened -> what it is called, how it looks, and what there is to say of it.
const TELL = {
  start: (data) => ["Started", "quiet", SOURCES[data.source] || null],
  end: () => ["Ended", "quiet", null],
  compaction: () => ["Compacted", "quiet", "the context window was summed up, and began again"],
  prompt: (data) => ["Asked", "asked", [data.text ? quote(data) : null, turnOf(data)]],
  answer: (data) => ["Answered", "answered", quote(data)],
  edit: (data) => [
    "Changed",
    "changed",
    make(
      "ul",
      {},
      data.files.map((each) => make("li", {}, make("code", { class: "dim" }, each))),
    ),
  ],
  run: (data) => [data.failed ? "✗ Failed" : "Ran", data.failed ? "failed" : "", ran(data)],
  failure: (data) => [
    "✗ Failure",
    "failed",
    make(
      "p",
      {},
      memory(data.memory.id, data.memory.title),
      data.memory.seen > 1 ? make("span", { class: "dim" }, ` seen ${number(data.memory.seen)} times`) : null,
      " ",
      fate(data.memory),
    ),
  ],
  injected: (data, session) => ["Given", "injected", injected(data, session)],
  kept: (data) => [
    KEPT[data.memory.kind] ?? data.memory.kind,
    "kept",
    [
      make(
        "p",
        {},
        memory(data.memory.id, data.memory.title),
        data.memory.status === "active" ? null : make("span", { class: "dim" }, ` (${data.memory.status})`),
      ),
      data.text ? make("p", { class: "dim" }, data.text) : null,
    ],
  ],
};

// Who wrote the prompt, and why we think so; what came of the turn.
const turnOf = ({ turn, author, author_why, outcome }) =>
  turn
    ? [
        author ? make("p", { class: "dim" }, `${AUTHORS[author] ?? author}: ${author_why}`) : null,
        make(
          "p",
          {},
          make("span", { class: "dim" }, outcome ? "What came of it: " : "Kept as "),
          memory(turn, outcome || turn),
        ),
      ]
    : null;

const quote = (data) => [
  make("p", { class: "said" }, data.text, data.more ? "…" : ""),
  data.more ? make("p", { class: "dim" }, `${many(data.more, "more character")}`) : null,
];

// A command, and where it failed the error in a line, and the end of the output for who wants it.
const ran = ({ command, error, output }) => [
  make("p", {}, make("code", {}, command)),
  error ? make("p", {}, error) : null,
  output
    ? make("details", {}, make("summary", {}, "The end of its output"), make("pre", { class: "block" }, output))
    : null,
];

function injected(data, session) {
  const words = `${many(data.memories, "memory", "memories")} ${triggerIn("at", data.trigger)}, ${tokens(data.tokens)}`;
  return make(
    "p",
    {},
    make("a", { href: `/now/${encodeURIComponent(session)}` }, words),
    data.used ? make("span", { class: "used" }, ` ✓ ${number(data.used)} used`) : null,
  );
}
