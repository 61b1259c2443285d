// Draw totals and tables over a span of days that is chosen: what was given, whether it was used, why nothing was given.

import { fill, make } from "../dom.js";
import { triggerIn, number, projects, renew, stale, totals, trouble } from "../parts.js";
import { milliseconds } from "../format.js";

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
  const sums = make("div", {});
  const rates = make("div", { class: "rates" });
  fill(root, choice, sums, rates);

  function show(data) {
    rates.hidden = false;
    renew(sums, [data.tokens, data.items, data.injections], () => summed(data));
    renew(rates, [data.items, data.no_context, data.build_ms, data.memories], () => tables(data));
  }
  function fail(error) {
    rates.hidden = true;
    stale(sums);
    fill(
      sums,
      error.status === 503 ? make("p", { class: "dim" }, "No figures while the store cannot be read.") : trouble(error),
    );
  }
  return { show, fail, choose };
}

function summed(data) {
  const hit = data.items.hit_rate;
  const cost = data.tokens.per_used_item;
  const away = data.injections.away;
  return [
    totals({
      "tokens given": number(data.tokens.given),
      injections: number(data.injections.total),
      "items shown": number(data.items.shown),
      "used, of those judged": hit === null ? "–" : `${Math.round(hit * 100)} %`,
      "tokens for each used item": cost === null ? "–" : number(Math.round(cost)),
    }),
    away ? make("p", { class: "dim" }, `A hook gave ${number(away)} of these by itself, without the worker.`) : null,
  ];
}

function tables(data) {
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
  const trigger = (name) => triggerIn("at", name);
  const reasons = Object.entries(data.no_context).flatMap(([name, each]) =>
    Object.entries(each).map(([why, n]) => [trigger(name), why, number(n)]),
  );
  const took = (each) => ["median", "p95", "max"].map((which) => milliseconds(each[which]));
  return [
    grid("Items by kind", ["kind", ...columns], hits(data.items.by_kind)),
    grid("When nothing was given", ["trigger", "reason", "times"], reasons),
    grid(
      "Time to build a context",
      ["trigger", "times", "median", "p95", "longest"],
      Object.entries(data.build_ms).map(([name, each]) => [trigger(name), number(each.count), ...took(each)]),
    ),
    grid(
      "Memories by kind",
      ["kind", "active"],
      Object.entries(data.memories.by_kind).map(([name, n]) => [name, number(n)]),
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
