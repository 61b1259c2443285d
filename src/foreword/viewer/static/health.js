// The page "Health": whether all is well, agents, what went wrong, what is stored, and what was given.

import { get, latest } from "./ask.js";
import { make } from "./dom.js";
import { choices, DAYS, figuresIn } from "./health/figures.js";
import { draw } from "./health/standing.js";
import { ageing } from "./parts.js";

export const title = "Health";

const LOOK = 4_000; // milliseconds between two looks
const COUNT = 15_000; // ... and between two counts of everything

export async function show(root, page) {
  const part = sections(root);
  const chosen = {
    project: page.query.get("project") ?? "",
    days: DAYS.find((each) => String(each) === page.query.get("days")) ?? 30,
  };
  const plots = figuresIn(
    part.figures,
    choices(page, chosen, (more) => {
      const before = address(chosen);
      Object.assign(chosen, more);
      page[address(chosen) === before ? "replace" : "push"](address(chosen)); // the same again is no step for the way back
      return count();
    }),
  );
  const looking = latest();
  const counting = latest();
  const patient = page.patient();
  let said = null;

  async function look() {
    const told = await looking((signal) => get("/api/health", { full: true }, { signal }));
    if (!told || page.signal.aborted) return;
    draw(part, told);
    if (said !== told.ok) page.say(told.says); // not whenever a figure changes
    said = told.ok;
  }

  async function count() {
    try {
      const told = await counting((signal) => get("/api/stats", chosen, { signal }));
      if (!told || page.signal.aborted) return;
      patient.answered();
      await plots.show(told);
    } catch (error) {
      if (page.signal.aborted) return;
      plots.fail(error);
      patient.failed(error, count);
    }
  }

  page.keys({
    7: ["The last 7 days", () => plots.choose(7)],
    3: ["The last 30 days", () => plots.choose(30)],
    9: ["The last 90 days", () => plots.choose(90)],
  });
  const lookAgain = seldom(() => look().catch(() => {}), LOOK, page.signal); // a viewer that closed says so by itself
  const countAgain = seldom(count, COUNT, page.signal);
  ageing(root, page.signal);
  await look(); // first: counting may take a second where much was given
  await count();
  page.live(() => {
    lookAgain();
    countAgain();
  });
}

const address = ({ project, days }) => `/health?${new URLSearchParams({ days, ...(project ? { project } : {}) })}`;

// At most once in a while, and not for nothing: what comes meanwhile is done at its end.
function seldom(fn, rest, signal) {
  let last = performance.now();
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    timer ||= setTimeout(
      () => {
        timer = 0;
        last = performance.now();
        fn();
      },
      Math.max(0, last + rest - performance.now()),
    );
  };
}

// -- the page ------------------------------------------------------------------------------------------------------
function sections(root) {
  const names = {
    verdict: "",
    hosts: "Agents",
    troubles: "Went wrong",
    worker: "Worker",
    store: "Store",
    figures: "What was given",
  };
  const part = {};
  root.append(make("div", { class: "head" }, make("h1", {}, title)));
  for (const [name, heading] of Object.entries(names)) {
    part[name] = make("div", { class: "part" });
    const id = `health-${name}`;
    root.append(
      make(
        "section",
        { class: `card of-${name}`, ...(heading ? { "aria-labelledby": id } : { "aria-label": "In one sentence" }) },
        heading ? make("h2", { id }, heading) : null,
        part[name],
      ),
    );
  }
  return part;
}
