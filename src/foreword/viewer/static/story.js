// Show the story of one session: what it was about, and its steps, oldest first.

import { get } from "./api.js";
import { drawList, fill, h, renew, walkable } from "./dom.js";
import {
  capitalize,
  formatClock,
  formatDay,
  formatNumber,
  formatTokens,
  livePath,
  nameTrigger,
  pluralize,
  projectPath,
} from "./format.js";
import { changedFiles, clock, failureState, memoryLink, sessionState, sessionTitle } from "./parts.js";

const REST = 3_000; // milliseconds between two requests for a running session
const SOURCES = {
  startup: "",
  resume: "it was resumed",
  clear: "in a cleared window",
  compact: "after a compaction",
  fork: "forked from another session",
};
const KINDS = {
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
const OUTCOMES = [
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
  const backLink = (event) => {
    event.preventDefault();
    back();
  };
  const body = h("div.story");
  root.append(h("p", h("a", { href: "/timeline", on: { click: backLink } }, "← Timeline")), body);
  page.keys({ Escape: ["Back to the timeline", back] });
  const load = () => get(`/api/sessions/${encodeURIComponent(id)}`, {}, { signal: page.signal });
  const head = h("div.story-head");
  const steps = h("ol.steps", { "aria-label": "Oldest first" });
  const draw = (data) => {
    renew(head, [data.session, data.left_out], () => summary(data));
    drawSteps(steps, data);
  };
  try {
    const data = await load();
    page.name(data.session.title || "A session");
    draw(data);
  } catch (error) {
    fill(body, h("h1", "Story of a session"));
    throw error; // app.js shows it, and tries again
  }
  body.append(head, h("h2", "Step by step"), steps);
  const walk = walkable(() => steps.querySelectorAll(".step"));
  const openChosen = () => {
    const chosen = steps.querySelector(".step.chosen");
    const details = chosen?.querySelector("details");
    const link = chosen?.querySelector("a[href]");
    if (details) details.open = !details.open;
    else if (link) page.go(link.getAttribute("href"));
  };
  page.keys({
    j: ["Next step", walk.next],
    k: ["Previous step", walk.previous],
    o: ["Open what it names", openChosen],
    Enter: ["Open what it names", openChosen],
  });
  page.live(async () => draw(await load()), REST);
}

function summary(data) {
  const { session } = data;
  const { injected } = session;
  const outcomes = OUTCOMES.filter(([, name]) => session[name].length);
  const minutes = Math.max(1, Math.round((session.last - session.started) / 60));
  const outcome = (name) =>
    name === "changed"
      ? changedFiles(session.changed)
      : session[name].map((each) => h("li", each.id ? memoryLink(each.id, each.title) : each));
  return [
    h("h1", sessionTitle(session)),
    h(
      "p.figures",
      sessionState(session),
      h("span", `${formatDay(session.started)}, ${formatClock(session.started)}`),
      h("span", minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`),
      h("a", { href: projectPath(session.project) }, session.project_name),
      h("span", session.host),
      h("span", pluralize(session.events, "event")),
      h("span.mono", session.id),
    ),
    h(
      "p.figures",
      injected.tokens ? injectedFigures(session) : h("span", "no context injected"),
      session.summary_id ? memoryLink(session.summary_id, "Its summary") : null,
    ),
    session.summary ? h("p.quote", session.summary) : null,
    session.work ? h("p.dim", capitalize(`${session.work}.`)) : null,
    outcomes.length
      ? h(
          "dl.lines.card.about",
          outcomes.map(([label, name]) => [h("dt", label), h("dd", h("ul", outcome(name)))]),
        )
      : null,
    data.left_out
      ? h("p.dim", `${pluralize(data.left_out, "earlier step")} left out; the last ${data.steps.length} are shown.`)
      : null,
    data.without_events ? h("p.dim", "Its prompts and commands are no longer stored; its memories are.") : null,
  ];
}

function injectedFigures({ id, running, injected: { shown, tokens, used } }) {
  const usage = used ? `✓ ${formatNumber(used)} used` : running ? "none used so far" : "none used";
  return [
    h("span", `${pluralize(shown, "item")} injected, ${formatTokens(tokens)}`),
    h("span", { class: used ? "used" : "" }, usage),
    h("a", { href: livePath(id) }, "What was injected, and why"),
  ];
}

function drawSteps(list, { steps, session }) {
  const counts = new Map(); // steps of one kind at one time
  const entries = steps.map((step, index) => {
    const key = `${step.at} ${step.what}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    const day = index && formatDay(steps[index - 1].at) !== formatDay(step.at) ? formatDay(step.at) : "";
    const [label, style, body] = (STEPS[step.what] ?? (() => [step.what, "", null]))(step, session.id);
    return { key: `${key} ${counts.get(key)}`, step, day, label, style, body };
  });
  drawList(list, entries, {
    key: ({ key }) => key,
    data: ({ step, day }) => [step, day],
    create: () => h("li", { tabindex: "-1" }),
    draw: ({ step, day, label, style, body }, node) => {
      node.className = `step ${style}${node.classList.contains("chosen") ? " chosen" : ""}`;
      return [
        day ? h("p.day-of", day) : null,
        h("p.step-head", clock(step.at), " ", h("strong", label)),
        body ? h("div.step-body", body) : null,
      ];
    },
  });
}

// Kind of step -> its label, style and body.
const STEPS = {
  start: (step) => ["Started", "quiet", SOURCES[step.source] || null],
  end: () => ["Ended", "quiet", null],
  compaction: () => ["Compacted", "quiet", "the context window was summarized"],
  prompt: (step) => ["Prompt", "prompt", [step.text ? quote(step) : null, turn(step)]],
  answer: (step) => ["Answer", "answer", quote(step)],
  edit: ({ files }) => [
    "Changed",
    "changed",
    h(
      "ul",
      files.map((each) => h("li", h("code.dim", each))),
    ),
  ],
  run: (step) => [step.failed ? "✗ Failed" : "Ran", step.failed ? "failed" : "", command(step)],
  failure: ({ memory }) => ["✗ Failure", "failed", failure(memory)],
  injected: (step, session) => ["Injected", "injected", injection(step, session)],
  kept: ({ memory, text }) => [
    KINDS[memory.kind] ?? memory.kind,
    "kept",
    [
      h(
        "p",
        memoryLink(memory.id, memory.title),
        memory.status === "active" ? null : h("span.dim", ` (${memory.status})`),
      ),
      text ? h("p.dim", text) : null,
    ],
  ],
};

// Who wrote a prompt, and why we think so; what came of its turn.
const turn = ({ turn: id, author, author_why, outcome }) =>
  id
    ? [
        author ? h("p.dim", `${AUTHORS[author] ?? author}: ${author_why}`) : null,
        h("p", h("span.dim", outcome ? "Outcome: " : "Kept as "), memoryLink(id, outcome || id)),
      ]
    : null;

const quote = ({ text, more }) => [
  h("p.quote", text, more ? "…" : ""),
  more ? h("p.dim", pluralize(more, "more character")) : null,
];

const command = ({ command: line, error, output }) => [
  h("p", h("code", line)),
  error ? h("p", error) : null,
  output ? h("details", h("summary", "The end of its output"), h("pre.block", output)) : null,
];

const failure = ({ id, title, seen, ...state }) =>
  h(
    "p",
    memoryLink(id, title),
    seen > 1 ? h("span.dim", ` seen ${formatNumber(seen)} times`) : null,
    " ",
    failureState(state),
  );

function injection({ memories, trigger, tokens, used }, session) {
  const text = `${pluralize(memories, "memory", "memories")} ${nameTrigger("at", trigger)}, ${formatTokens(tokens)}`;
  return h(
    "p",
    h("a", { href: livePath(session) }, text),
    used ? h("span.used", ` ✓ ${formatNumber(used)} used`) : null,
  );
}
