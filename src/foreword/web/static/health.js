// The page "Health": whether all is well, hosts, what went wrong, what is stored, what was given, and a model's ledger.

import { get, latest } from "./ask.js";
import { fill, make } from "./dom.js";
import {
  age,
  ageing,
  ago,
  chip,
  coded,
  many,
  meter,
  momentIn,
  number,
  projects,
  renew,
  tokens,
  trouble,
  when,
} from "./parts.js";
import { formats, plot, sized, spark, wide } from "./plots.js";

export const title = "Health";

const DAYS = [7, 30, 90];
const LOOK = 4_000; // milliseconds between two looks
const COUNT = 15_000; // ... and between two counts of everything
const FIRST = 5; // troubles that are seen at once
const WIRED = { yes: ["✓ wired", "good"], partly: ["! partly wired", "warn"], no: ["– not wired", ""] };

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
    const told = await looking((signal) => get("/api/health", {}, { signal }));
    if (!told || page.signal.aborted) return;
    draw(part, told);
    if (said !== told.ok) page.say(told.says); // not whenever a figure changes
    said = told.ok;
  }

  async function count() {
    try {
      const told = await counting((signal) => get("/api/health/figures", chosen, { signal }));
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
    model: "Model",
    settings: "Settings",
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

const opened = new Set(); // folds that somebody opened, while the page is not left for good
function fold(key, summary, ...children) {
  const node = make("details", { open: opened.has(key) }, make("summary", { "data-do": key }, summary), ...children);
  node.addEventListener("toggle", () => (node.open ? opened.add(key) : opened.delete(key)));
  return node;
}

function draw(part, told) {
  renew(part.verdict, [told.ok, told.says, told.findings], () => verdict(told));
  renew(part.hosts, [told.hosts, Math.floor(told.at / 60)], () => hosts(told.hosts));
  renew(part.troubles, [told.troubles, Math.floor(told.at / 60)], () => troubles(told.troubles));
  renew(part.worker, told.worker, worker);
  renew(part.store, told.store, store);
  renew(part.model, told.model, model);
  renew(part.settings, [told.settings, told.switches], () => settings(told));
}

function verdict({ ok, says, findings }) {
  const sign = !ok ? ["✗", "bad"] : findings.length ? ["!", "warn"] : ["✓", "good"];
  const lines = findings.map((each) => {
    const [word, how] = each.state === "wrong" ? ["✗ wrong", "bad"] : ["! note", "warn"];
    return make(
      "li",
      {},
      chip(word, how),
      make(
        "div",
        {},
        make("p", {}, coded(each.says)),
        each.way_out ? make("p", { class: "dim" }, "→ ", coded(each.way_out)) : null,
      ),
    );
  });
  return [
    make(
      "p",
      { class: "verdict-line" },
      make("span", { class: sign[1], "aria-hidden": "true" }, `${sign[0]} `),
      coded(says),
    ),
    lines.length ? make("ul", { class: "findings" }, lines) : null,
  ];
}

function worker(told) {
  const waits = told.spool.bytes ? `${sized(told.spool.bytes)}, for ${lasting(told.spool.since_s)}` : "nothing";
  const sessions =
    told.sessions_waiting === null ? "" : `${number(told.sessions_waiting)}${told.more_sessions_wait ? "+" : ""}`;
  const figures = { up: lasting(told.uptime_s), version: told.version, process: told.pid, "not stored yet": waits };
  return [
    totals({ ...figures, ...(sessions ? { "sessions waiting": sessions } : {}) }),
    make("p", { class: "dim" }, "Its home is ", make("code", {}, told.home)),
  ];
}

function hosts(all) {
  const here = all.filter((each) => each.here);
  const away = all.filter((each) => !each.here).map((each) => each.host);
  const rows = here.map((each) => {
    const [word, how] = each.off ? ["✗ hooks are off", "bad"] : WIRED[each.wired];
    const event = each.last_event;
    const given = each.last_injection;
    const way =
      each.wired !== "no"
        ? ""
        : event
          ? "Heard, though `foreword install` did not wire it, or no longer does."
          : `Found here; \`foreword install ${each.host}\` wires it.`;
    return make(
      "li",
      {},
      make("h3", {}, each.host, " ", chip(word, how)),
      make(
        "p",
        { class: "figures" },
        make("span", {}, "last event ", event ? [ago(event.at), ` (${event.name})`] : "never"),
        make(
          "span",
          {},
          "last given ",
          given ? [ago(given.at), ` (${momentIn("at", given.moment)}, ${tokens(given.tokens)})`] : "never",
        ),
        each.sessions ? make("span", {}, many(each.sessions, "session")) : null,
        each.events ? make("span", {}, many(each.events, "event")) : null,
      ),
      way ? make("p", { class: "figures" }, make("span", {}, coded(way))) : null,
      each.died.length
        ? make(
            "ul",
            { class: "warn" },
            each.died.map((one) =>
              make(
                "li",
                {},
                `! session ${one.session.slice(0, 13)} told nothing after ${when(one.since)}, and went on until ${when(one.until)}`,
              ),
            ),
          )
        : null,
      each.lacks.length
        ? fold(
            `lacks ${each.host}`,
            `${many(each.lacks.length, "thing")} that install wrote ${each.lacks.length === 1 ? "is" : "are"} not there`,
            make(
              "ul",
              {},
              each.lacks.map((one) => make("li", {}, one)),
            ),
          )
        : null,
    );
  });
  return [
    rows.length ? make("ul", { class: "rows" }, rows) : null,
    away.length
      ? make(
          "p",
          { class: "dim" },
          `${rows.length ? "Not found here" : "None was found here. Looked for"}: ${away.join(", ")}.`,
        )
      : null,
  ];
}

function troubles(all) {
  if (!all.length) return make("p", { class: "dim" }, "Nothing is on record.");
  const rows = all.map((each) =>
    make(
      "li",
      {},
      make(
        "p",
        { class: "figures" },
        ago(each.at),
        make("span", {}, each.where),
        each.count > 1 ? make("span", {}, `${number(each.count)} times`) : null,
      ),
      make("p", {}, coded(each.what)),
    ),
  );
  return [
    make(
      "p",
      { class: "dim" },
      "What was swallowed so that no agent was disturbed, the newest first; ",
      make("code", {}, "foreword doctor"),
      " checks whether it is over.",
    ),
    make("ul", { class: "rows" }, rows.slice(0, FIRST)),
    rows.length > FIRST
      ? fold("troubles", `${number(rows.length - FIRST)} more`, make("ul", { class: "rows" }, rows.slice(FIRST)))
      : null,
  ];
}

function store(told) {
  if (!told) return make("p", { class: "bad" }, "✗ It cannot be read: see above.");
  const part = Math.round((100 * told.bytes) / told.limit);
  const share = told.limit
    ? `${sized(told.bytes)} of ${sized(told.limit)}, ${part ? `${part} %` : "under 1 %"}`
    : `${sized(told.bytes)}, without a limit`;
  const counts = Object.entries(told.counts)
    .filter(([, n]) => n)
    .sort((a, b) => b[1] - a[1]);
  return [
    meter(told.bytes, told.limit, share),
    make(
      "p",
      { class: "figures" },
      make("span", {}, `${sized(told.used)} in use`),
      make("span", {}, `${sized(told.free)} free inside`),
      make("span", {}, "limit: ", make("code", {}, "store_max_mb")),
    ),
    make("p", { class: "dim" }, `This counts ${told.counted}.`),
    fold(
      "counts",
      "rows by table",
      wide(
        "Rows by table",
        make(
          "table",
          {},
          make("caption", { class: "unseen" }, "Rows by table"),
          make(
            "thead",
            {},
            make("tr", {}, make("th", { scope: "col" }, "table"), make("th", { scope: "col", class: "n" }, "rows")),
          ),
          make(
            "tbody",
            {},
            counts.map(([name, n]) =>
              make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "n" }, number(n))),
            ),
          ),
        ),
      ),
    ),
  ];
}

function settings({ settings: changed, switches }) {
  const rows = changed.map((each) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("code", {}, each.name)),
      make("td", {}, valued(each.value)),
      make("td", { class: "dim" }, valued(each.default)),
      make("td", { class: "dim" }, each.from),
    ),
  );
  return [
    switches.length
      ? make(
          "ul",
          { class: "rows" },
          switches.map((each) =>
            make(
              "li",
              {},
              chip(each.how, "warn"),
              ` ${each.name || each.project} `,
              make("span", { class: "dim" }, `by ${each.by}`),
            ),
          ),
        )
      : make("p", { class: "dim" }, "No project is switched off, silent or read-only."),
    rows.length
      ? wide(
          "Changed settings",
          make(
            "table",
            {},
            make("caption", { class: "unseen" }, "Settings that differ from the built-in ones"),
            make(
              "thead",
              {},
              make(
                "tr",
                {},
                ["setting", "is", "built in", "said by"].map((name) => make("th", { scope: "col" }, name)),
              ),
            ),
            make("tbody", {}, rows),
          ),
        )
      : make("p", { class: "dim" }, "Every setting has its built-in value."),
  ];
}

const valued = (value) =>
  Array.isArray(value)
    ? value.join(", ") || "none"
    : value === true
      ? "on"
      : value === false
        ? "off"
        : value === ""
          ? "empty"
          : String(value);

function model(told) {
  const calls = told.ledger ?? [];
  const table = calls.length
    ? wide(
        "Ledger",
        make(
          "table",
          {},
          make("caption", { class: "unseen" }, "The last calls of a model"),
          make(
            "thead",
            {},
            make(
              "tr",
              {},
              ["when", "for", "model", "tokens in", "out", "took", "came to"].map((name, place) =>
                make("th", { scope: "col", class: place > 2 && place < 6 ? "n" : null }, name),
              ),
            ),
          ),
          make("tbody", {}, calls.map(call)),
        ),
      )
    : null;
  if (!told.on)
    return [
      make("p", {}, "None is on, and nothing is sent anywhere: summaries are made without one."),
      table ? fold("ledger", "what one was asked before", table) : null,
    ];
  return [
    make(
      "p",
      {},
      `${told.provider} ${told.model}`,
      make("span", { class: "dim" }, told.where ? `, ${told.where}` : ""),
    ),
    told.spent_tokens === undefined
      ? null
      : meter(
          told.spent_tokens,
          told.daily_tokens,
          `${number(told.spent_tokens)} of ${tokens(told.daily_tokens)} in the last 24 hours`,
        ),
    told.waiting
      ? make("p", { class: "dim" }, many(told.waiting, "session waits for it", "sessions wait for it"))
      : null,
    table ?? make("p", { class: "dim" }, "It has not been asked yet."),
  ];
}

function call(each) {
  const [sign, how] = each.outcome === "ok" ? ["✓", "good"] : each.outcome === "asked" ? ["…", ""] : ["✗", "warn"];
  return make(
    "tr",
    {},
    make("td", {}, ago(each.at)),
    make("td", {}, each.purpose),
    make("td", {}, each.model),
    [number(each.tokens_in), number(each.tokens_out), formats.ms.told(each.ms)].map((n) =>
      make("td", { class: "n" }, n),
    ),
    make("td", { class: how }, `${sign} ${each.outcome}`),
  );
}

// -- figures -------------------------------------------------------------------------------------------------------
function choices(page, chosen, change) {
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

function figuresIn(root, { node: choice, choose }) {
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
    sums.told = "";
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
  const moments = Object.keys(told.injections.by_moment);
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
      series: moments.map((name) => ({
        name: momentIn("at", name),
        values: given.map((each) => each.tokens_by_moment[name] ?? 0),
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
  const moment = (name) => momentIn("at", name);
  const silences = Object.entries(called(moment, told.silence));
  const built = Object.entries(called(moment, told.build_ms));
  const took = (each) => ["median", "p95", "max"].map((which) => formats.ms.told(each[which]));
  return [
    grid("Items by kind", ["kind", ...columns], hits(told.items.by_kind)),
    grid("Items by part of the context", ["part", ...columns], hits(called(layer, told.items.by_layer))),
    grid(
      "When nothing was worth saying",
      ["moment", "asked", "silent", "share"],
      silences.map(([name, each]) => [name, number(each.recalls), number(each.silences), share(each.rate)]),
    ),
    grid(
      "Time to build a context",
      ["moment", "times", "median", "p95", "longest"],
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

const totals = (told) =>
  make(
    "dl",
    { class: "totals" },
    Object.entries(told).map(([name, said]) => make("div", {}, make("dt", {}, name), make("dd", {}, said))),
  );

const lasting = (seconds) => age(0, seconds).replace(" ago", "").replace("just now", "a moment");
