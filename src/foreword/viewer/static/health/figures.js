// What was given, what became of it and how the store grew -> plots and tables, over a span of days that is chosen.

import { fill, make } from "../dom.js";
import { many, triggerIn, number, projects, renew, stale, tokens, totals, trouble } from "../parts.js";
import { formats, plot, sized, spark } from "../plots.js";

export const DAYS = [7, 30, 90];

export function choices(page, chosen, change) {
  const buttons = DAYS.map((days) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(days === chosen.days), on: { click: () => choose(days) } },
      `${days} days`,
    ),
  );
  const choose = (days) => {
    for (const [place, each] of buttons.entries()) each.setAttribute("aria-pressed", String(DAYS[place] === days));
    return change({ days });
  };
  const node = make(
    "div",
    { class: "head" },
    make("div", { class: "days", role: "group", "aria-label": "How many days" }, buttons),
  );
  projects(page, { chosen: chosen.project, change: (project) => change({ project }) }).then(
    (each) => node.prepend(each),
    () => {},
  ); // of a broken store nobody knows any
  return { node, choose };
}

export function figuresIn(root, { node: choice, choose }) {
  const of = {
    tokens: plot("Tokens given a day", { stacked: true }),
    items: plot("What became of items", { stacked: true, hint: "Judged from what the agent did afterwards." }),
    build: plot("Time to build a context"),
    bytes: plot("Size of the store", { hint: "As each day began, and now; of all projects." }),
    memories: plot("Memories", { hint: "Active ones, by the day each is from." }),
    events: plot("Events a day", { stacked: true, hint: "As they arrived; of all projects." }),
    model: plot("Tokens of the model a day", { stacked: true }),
  };
  const sums = make("div", {});
  const rates = make("div", { class: "rates" });
  const drawn = make(
    "div",
    { class: "plots", hidden: true },
    Object.values(of).map((each) => each.node),
  );
  fill(root, choice, sums, drawn, rates);

  let turn = 0;
  async function show(told) {
    const mine = ++turn;
    drawn.hidden = rates.hidden = false;
    renew(sums, [told.tokens, told.items, told.injections], () => summed(told));
    for (const [name, figures] of Object.entries(drawings(told))) {
      await new Promise((next) => setTimeout(next)); // one plot at a time: a key that was pressed does not wait for all
      if (mine !== turn) return;
      of[name].node.hidden = !figures;
      if (figures) of[name].show(figures);
    }
    renew(rates, [told.items, told.silence, told.build_ms, told.memories.by_kind, told.memories.by_status], () =>
      tables(told),
    );
  }
  function fail(error) {
    turn += 1;
    drawn.hidden = rates.hidden = true;
    stale(sums);
    fill(
      sums,
      error.status === 503 ? make("p", { class: "dim" }, "No figures while the store cannot be read.") : trouble(error),
    );
  }
  return { show, fail, choose };
}

// What each plot shows.
function drawings(told) {
  const given = told.injections.by_day;
  const days = given.map((each) => each.day);
  const span = many(told.days, "day");
  const triggers = Object.keys(told.injections.by_trigger);
  const items = told.items.by_day;
  const became = { used: "used", ignored: "not used", unjudged: "not judged" };
  const built = new Map(told.build_ms_by_day.map((each) => [each.day, each]));
  const slowest = Math.max(0, ...told.build_ms_by_day.map((each) => each.p95));
  const grown = told.growth;
  const sizes = grown.map((each, day) => (day === grown.length - 1 ? told.store.bytes : each.bytes));
  const first = sizes.findIndex((n) => n !== null);
  const paid = new Map(told.model.by_day.map((each) => [each.day, each]));
  return {
    tokens: {
      days,
      series: triggers.map((name) => ({
        name: triggerIn("at", name),
        values: given.map((each) => each.tokens_by_trigger[name] ?? 0),
      })),
      says: `${tokens(told.tokens.given)} in ${many(told.injections.total, "injection")} over ${span}.`,
    },
    items: {
      days,
      series: Object.entries(became).map(([name, words]) => ({ name: words, values: items.map((each) => each[name]) })),
      says: `${many(told.items.shown, "item")}: ${number(told.items.used)} used, ${number(told.items.ignored)} not used, ${number(told.items.unjudged)} not judged.`,
    },
    build: {
      days,
      format: formats.ms,
      series: [
        ["half of them within", "median"],
        ["95 of 100 within", "p95"],
      ].map(([name, which]) => ({ name, values: days.map((day) => built.get(day)?.[which] ?? null) })),
      says: `On the slowest day 95 of 100 took ${formats.ms.told(slowest)} at most.`,
    },
    bytes: {
      days,
      format: formats.bytes,
      series: [{ name: "in all", values: sizes }],
      says: `${first < sizes.length - 1 ? `${sized(sizes[first])} at first, ` : ""}${sized(told.store.bytes)} now.`,
    },
    memories: {
      days,
      series: [{ name: "memories", values: grown.map((each) => each.memories) }],
      says: `${many(told.memories.total, "memory", "memories")}, of which ${number(told.memories.new)} are of the last ${span}.`,
    },
    events: {
      days,
      series: [{ name: "events", values: grown.map((each) => each.events) }],
      says: `${many(
        grown.reduce((sum, each) => sum + (each.events ?? 0), 0),
        "event",
      )} in ${span}.`,
    },
    model: paid.size && {
      days,
      series: [
        ["in", "tokens_in"],
        ["out", "tokens_out"],
      ].map(([name, which]) => ({ name, values: days.map((day) => paid.get(day)?.[which] ?? 0) })),
      says: `${many(told.model.calls, "call")}, ${number(told.model.refused)} more refused.`,
    },
  };
}

function summed(told) {
  const hit = told.items.hit_rate;
  const cost = told.tokens.per_used_item;
  const away = told.injections.away;
  return [
    totals({
      "tokens given": [number(told.tokens.given), " ", spark(told.injections.by_day.map((each) => each.tokens))],
      injections: number(told.injections.total),
      "items shown": number(told.items.shown),
      "used, of those judged": hit === null ? "–" : `${Math.round(hit * 100)} %`,
      "tokens for each used item": cost === null ? "–" : number(Math.round(cost)),
    }),
    away ? make("p", { class: "dim" }, `A hook gave ${number(away)} of these by itself, without the worker.`) : null,
  ];
}

function tables(told) {
  const share = (rate) => (rate === null ? "–" : [`${Math.round(rate * 100)} %`, barred(rate)]);
  const hits = (groups) =>
    Object.entries(groups).map(([name, each]) => [
      name,
      number(each.shown),
      number(each.used),
      number(each.ignored),
      share(each.hit_rate),
    ]);
  const columns = ["shown", "used", "not used", "used of judged"];
  const called = (name, groups) => Object.fromEntries(Object.entries(groups).map(([key, each]) => [name(key), each]));
  const layer = (name) => told.layer_names[name] ?? name;
  const trigger = (name) => triggerIn("at", name);
  const silences = Object.entries(called(trigger, told.silence));
  const built = Object.entries(called(trigger, told.build_ms));
  const took = (each) => ["median", "p95", "max"].map((which) => formats.ms.told(each[which]));
  return [
    grid("Items by kind", ["kind", ...columns], hits(told.items.by_kind)),
    grid("Items by part of the context", ["part", ...columns], hits(called(layer, told.items.by_layer))),
    grid(
      "When nothing was worth saying",
      ["trigger", "asked", "silent", "share"],
      silences.map(([name, each]) => [name, number(each.recalls), number(each.silences), share(each.rate)]),
    ),
    grid(
      "Time to build a context",
      ["trigger", "times", "median", "p95", "longest"],
      built.map(([name, each]) => [name, number(each.count), ...took(each)]),
    ),
    grid(
      "Memories by kind",
      ["kind", "active"],
      Object.entries(told.memories.by_kind).map(([name, n]) => [name, number(n)]),
    ),
    grid(
      "Memories by status",
      ["status", "memories"],
      Object.entries(told.memories.by_status).map(([name, n]) => [name, number(n)]),
    ),
  ];
}

function grid(caption, head, rows) {
  if (!rows.length) return null;
  return make(
    "div",
    {},
    make(
      "table",
      {},
      make("caption", {}, caption),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          head.map((name, place) => make("th", { scope: "col", class: place ? "n" : null }, name)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map(([name, ...cells]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, name),
            cells.map((cell) => make("td", { class: "n" }, cell)),
          ),
        ),
      ),
    ),
  );
}

function barred(rate) {
  const inner = make("span", {});
  inner.style.width = `${rate * 100}%`;
  return make("span", { class: "share", "aria-hidden": "true" }, inner);
}
