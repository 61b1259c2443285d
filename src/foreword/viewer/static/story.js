// One session -> its whole story: what it was about, and every step of it in order of time.

import { get } from "./ask.js";
import { fill, make } from "./dom.js";
import {
  anew,
  chip,
  clock,
  coded,
  day,
  many,
  memory,
  triggerIn,
  number,
  sentence,
  standing,
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

export async function tell(root, page, id) {
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

  function draw(told) {
    const said = JSON.stringify([told.session, told.left_out]);
    if (drawn !== said) anew(head, () => fill(head, headOf(told)));
    drawn = said;
    list.put(told.steps);
  }

  function openChosen() {
    const chosen = steps.querySelector(".step.chosen");
    const details = chosen?.querySelector("details");
    const link = chosen?.querySelector("a[href]");
    if (details) details.open = !details.open;
    else if (link) page.go(link.getAttribute("href"));
  }

  function ask() {
    return get(`/api/sessions/${encodeURIComponent(id)}`, { full: true }, { signal: page.signal });
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

export const unsaid = ({ running }) => (running ? "Nothing has been said yet" : "Nothing was said");

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
    this.told = [];
  }

  put(steps) {
    const times = new Map(); // two that are alike are still two
    const told = steps.map((each, at) => {
      const said = JSON.stringify([each, at ? day(steps[at - 1].at) : ""]);
      times.set(said, (times.get(said) ?? 0) + 1);
      return `${times.get(said)} ${said}`;
    });
    const known = new Map([...this.list.children].map((node, at) => [this.told[at], node]));
    const gone = new Set(this.told.filter((each) => !told.includes(each)));
    steps.forEach((each, at) => {
      const there = this.list.children[at];
      const old = known.get(told[at]);
      if (old && old === there) return;
      const node = old ?? stepOf(each, steps[at - 1] ?? null, this.session);
      if (!old && there && gone.has(this.told[at]) && known.get(this.told[at]) === there) carry(there, node);
      else this.list.insertBefore(node, there ?? null);
    });
    while (this.list.children.length > told.length) this.list.lastChild.remove();
    this.told = told;
  }
}

// One step that is told anew stands where it stood: unfolded, chosen and held as it was.
function carry(before, after) {
  after.classList.toggle("chosen", before.classList.contains("chosen"));
  for (const { name, value } of after.attributes) before.setAttribute(name, value);
  if (!anew(before, () => before.replaceChildren(...after.childNodes))) before.focus({ preventScroll: true });
}

function headOf(told) {
  const { session } = told;
  const { injected } = session;
  const points = ABOUT.filter(([, name]) => session[name].length);
  const minutes = Math.max(1, Math.round((session.last - session.started) / 60));
  return [
    make("h1", {}, session.title || unsaid(session)),
    make(
      "p",
      { class: "figures" },
      standing(session.running, session.ended),
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
    told.left_out
      ? make(
          "p",
          { class: "dim" },
          `${many(told.left_out, "earlier step")} left out: these are the last ${number(told.steps.length)}.`,
        )
      : null,
    told.without_events
      ? make("p", { class: "dim" }, "What was said and run in it is not kept; this is what came of it.")
      : null,
  ];
}

function stepOf(told, before, session) {
  const [label, kind, body] = (TELL[told.what] ?? (() => [told.what, "", null]))(told, session);
  const fresh = before && day(before.at) !== day(told.at);
  return make(
    "li",
    { class: `step ${kind}`, tabindex: "-1" },
    fresh ? make("p", { class: "day-of" }, day(told.at)) : null,
    make(
      "p",
      { class: "step-head" },
      make("time", { datetime: new Date(told.at * 1000).toISOString(), title: when(told.at) }, clock(told.at)),
      " ",
      make("strong", {}, label),
    ),
    body ? make("div", { class: "step-body" }, body) : null,
  );
}

// What happened -> what it is called, how it looks, and what there is to say of it.
const TELL = {
  start: (told) => ["Started", "quiet", SOURCES[told.source] || null],
  end: () => ["Ended", "quiet", null],
  compaction: () => ["Compacted", "quiet", "the context window was summed up, and began again"],
  prompt: (told) => ["Asked", "asked", [told.text ? said(told) : null, turnOf(told)]],
  answer: (told) => ["Answered", "answered", said(told)],
  edit: (told) => [
    "Changed",
    "changed",
    make(
      "ul",
      {},
      told.files.map((each) => make("li", {}, make("code", { class: "dim" }, each))),
    ),
  ],
  run: (told) => [told.failed ? "✗ Failed" : "Ran", told.failed ? "failed" : "", ran(told)],
  failure: (told) => [
    "✗ Failure",
    "failed",
    make(
      "p",
      {},
      memory(told.memory.id, told.memory.title),
      told.memory.seen > 1 ? make("span", { class: "dim" }, ` seen ${number(told.memory.seen)} times`) : null,
      " ",
      fate(told.memory),
    ),
  ],
  injected: (told, session) => ["Given", "injected", injected(told, session)],
  kept: (told) => [
    KEPT[told.memory.kind] ?? told.memory.kind,
    "kept",
    [
      make(
        "p",
        {},
        memory(told.memory.id, told.memory.title),
        told.memory.status === "active" ? null : make("span", { class: "dim" }, ` (${told.memory.status})`),
      ),
      told.text ? make("p", { class: "dim" }, told.text) : null,
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

const said = (told) => [
  make("p", { class: "said" }, told.text, told.more ? "…" : ""),
  told.more ? make("p", { class: "dim" }, `${many(told.more, "more character")}`) : null,
];

// A command, and where it failed the error in a line, and the end of the output for who wants it.
const ran = ({ command, error, output }) => [
  make("p", {}, make("code", {}, command)),
  error ? make("p", {}, error) : null,
  output
    ? make("details", {}, make("summary", {}, "The end of its output"), make("pre", { class: "block" }, output))
    : null,
];

function injected(told, session) {
  const words = `${many(told.memories, "memory", "memories")} ${triggerIn("at", told.trigger)}, ${tokens(told.tokens)}`;
  return make(
    "p",
    {},
    make("a", { href: `/now/${encodeURIComponent(session)}` }, words),
    told.used ? make("span", { class: "used" }, ` ✓ ${number(told.used)} used`) : null,
  );
}
