// One session -> its whole story: what it was about, and every step of it in order of time.

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
  ["Learned", "learned"],
  ["Decided", "decisions"],
  ["Committed", "commits"],
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

  function draw(told) {
    const said = JSON.stringify([told.session, told.about, told.handoff, told.injected, told.left_out]);
    if (drawn !== said) redraw(head, () => fill(head, headOf(told)));
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

export const untitled = ({ running }) => (running ? "Nothing has been said yet" : "Nothing was said");

// How often a session saw a failure, where that is more than once.
export const times = ({ times: count }) =>
  count > 1 ? make("span", { class: "dim" }, ` ${number(count)} times`) : null;

// What came of a failure: fixed there, later or before in another session, or not yet.
export function fate({ fix, open, by, later }) {
  const where = by
    ? make(
        "a",
        { href: `/timeline/${encodeURIComponent(by.session)}`, title: when(by.last) },
        by.title || by.session.slice(0, 8),
      )
    : null;
  const told = fix ? [": ", coded(fix)] : null;
  if (later)
    return [
      make("span", { class: open ? "warn" : "good" }, open ? "fixed later in " : "✓ fixed later in "),
      where,
      open ? ", and it came back" : null,
      told,
    ];
  if (by)
    return [
      make(
        "span",
        { class: open ? "warn" : "dim" },
        open ? "came back after it was fixed in " : "no longer seen; before, it was fixed in ",
      ),
      where,
      told,
    ];
  if (fix) return [make("span", { class: open ? "warn" : "good" }, open ? "came back after" : "✓ fixed"), told];
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
  if (!redraw(before, () => before.replaceChildren(...after.childNodes))) before.focus({ preventScroll: true });
}

function headOf(told) {
  const { session, about, handoff, injected } = told;
  const left = handoff?.next.length ? [] : (about.next ?? []);
  const points = ABOUT.map(([label, name]) => [label, name === "next" ? left : (about[name] ?? [])]).filter(
    ([, some]) => some.length,
  );
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
      about.memory ? memory(about.memory, "Its summary") : null,
    ),
    about.text ? make("p", { class: "said" }, about.text) : null,
    about.work ? make("p", { class: "dim" }, `${about.work.charAt(0).toUpperCase()}${about.work.slice(1)}.`) : null,
    points.length || handoff
      ? make(
          "dl",
          { class: "lines card about" },
          points.map(([label, some]) => [
            make("dt", {}, label),
            make(
              "dd",
              {},
              make(
                "ul",
                {},
                some.map((each) => make("li", {}, each)),
              ),
            ),
          ]),
          handoff
            ? [
                make("dt", {}, "Handed over"),
                make(
                  "dd",
                  {},
                  make(
                    "ul",
                    {},
                    make("li", {}, memory(handoff.id, handoff.title)),
                    bullets("next", handoff.next),
                    bullets("in the way", handoff.blockers),
                    bullets("open", handoff.questions),
                  ),
                ),
              ]
            : null,
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

const bullets = (label, some) => some.map((each) => make("li", {}, make("span", { class: "dim" }, `${label}: `), each));

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
  prompt: (told) => ["Asked", "asked", [said(told), turnOf(told)]],
  turn: (told) => ["Asked", "asked", [told.text ? said(told) : null, turnOf(told)]],
  answer: (told) => ["Answered", "answered", said(told)],
  edit: (told) => [
    "Changed",
    "changed",
    make(
      "ul",
      {},
      told.files.flatMap(({ file, functions }) =>
        functions.length ? changes(functions) : make("li", {}, make("code", { class: "dim" }, file)),
      ),
    ),
  ],
  run: (told) =>
    told.failed
      ? ["✗ Failed", "failed", [ran(told), broke(told)]]
      : ["Ran", "", [ran(told), told.memory ? make("p", {}, memory(told.memory.id, told.memory.title)) : null]],
  failure: (told) => [
    "✗ Failed",
    "failed",
    [
      told.command ? make("p", {}, make("code", {}, told.command)) : null,
      broke({ failure: told.memory }),
      made(told.memory) ? make("p", {}, fate(told.memory)) : null,
    ],
  ],
  fixed: (told) => [
    "✓ Fixed",
    "fixed",
    [make("p", {}, memory(told.memory.id, told.memory.title)), make("p", {}, coded(told.text))],
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

// Whether the session itself fixed it: a step of its own tells that.
const made = ({ fix, by }) => Boolean(fix && !by);

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

const ran = (told) =>
  make(
    "p",
    {},
    make("code", {}, told.command),
    told.times ? make("span", { class: "dim" }, ` ${told.times} times`) : null,
  );

// What a run ended in: the error in a line, the failure that it is, and the end of the output for who wants it.
function broke({ failure, error, output, more }) {
  return [
    failure
      ? make(
          "p",
          {},
          memory(failure.id, failure.title),
          failure.seen > 1
            ? make(
                "span",
                { class: "dim" },
                ` seen ${number(failure.seen)} times${failure.times < failure.seen ? `, ${number(failure.times)} of them here` : ""}`,
              )
            : null,
          made(failure) ? null : [" ", fate(failure)],
        )
      : error
        ? make("p", {}, error)
        : null,
    output
      ? make(
          "details",
          {},
          make("summary", {}, more ? `The end of its output (${number(more)} characters before it)` : "Its output"),
          make("pre", { class: "block" }, output),
        )
      : null,
  ];
}

function injected(told, session) {
  const count = many(told.items.length + told.more, "memory", "memories");
  const words = `${count} ${triggerIn("at", told.trigger)}, ${tokens(told.tokens)}`;
  return make(
    "details",
    {},
    make("summary", {}, words, told.used ? make("span", { class: "used" }, ` ✓ ${number(told.used)} used`) : null),
    make(
      "ul",
      {},
      told.items.map((each) =>
        make(
          "li",
          {},
          each.kind ? [chip(each.kind), " "] : null,
          memory(each.memory, each.title),
          each.used ? make("span", { class: "used", title: each.how || null }, " ✓ used") : null,
        ),
      ),
      told.more ? make("li", { class: "dim" }, `and ${number(told.more)} more`) : null,
    ),
    make("p", {}, make("a", { href: `/now/${encodeURIComponent(session)}` }, "As the agent saw it, and why")),
  );
}
