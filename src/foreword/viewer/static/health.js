// Show the page "Health": whether all is well, agents, problems, worker, store, and figures of what was injected.

import { get, latestOnly } from "./api.js";
import { button, h, invalidate, fill, renew } from "./dom.js";
import {
  formatBytes,
  formatDuration,
  formatMilliseconds,
  formatNumber,
  formatPercent,
  formatTokens,
  nameTrigger,
  pluralize,
} from "./format.js";
import { age, chip, code, errorBox, meter, projectChoice, share, totals, updateAges } from "./parts.js";

export const title = "Health";

const REST = 4_000; // milliseconds between two checks
const STATS_REST = 15_000; // ... and between two counts of everything
const DAYS = [7, 30, 90];
const FEW = 5; // problems that are listed without a fold
const SECTIONS = {
  verdict: "",
  hosts: "Agents",
  troubles: "Problems",
  worker: "Worker",
  store: "Store",
  figures: "Injected context",
};
const unfolded = new Set(); // while the viewer is open

export async function show(root, page) {
  const parts = Object.fromEntries(Object.keys(SECTIONS).map((name) => [name, h("div.part")]));
  root.append(h("div.head", h("h1", title)), ...Object.entries(parts).map(([name, part]) => section(name, part)));
  const chosen = {
    project: page.query.get("project") ?? "",
    days: DAYS.find((each) => String(each) === page.query.get("days")) ?? 30,
  };
  const figures = { totals: h("div"), tables: h("div.rates") };
  const loadHealth = latestOnly();
  const loadStats = latestOnly();
  const retrier = page.retrier();
  let wasOk = null;

  const dayButtons = DAYS.map((days) =>
    button(`${days} days`, () => choose({ days }), { "aria-pressed": String(days === chosen.days) }),
  );
  const choices = h("div.head", h("div.days", { role: "group", "aria-label": "How many days" }, dayButtons));
  fill(parts.figures, choices, figures.totals, figures.tables);
  projectChoice(page, { chosen: chosen.project, change: (project) => choose({ project }) }).then(
    (each) => choices.prepend(each),
    () => {}, // a broken store has no projects
  );

  function choose(changes) {
    const before = address(chosen);
    Object.assign(chosen, changes);
    for (const [at, each] of dayButtons.entries()) each.setAttribute("aria-pressed", String(DAYS[at] === chosen.days));
    page[address(chosen) === before ? "replace" : "push"](address(chosen));
    return updateFigures();
  }

  async function update() {
    const data = await loadHealth((signal) => get("/api/health", { full: true }, { signal }));
    if (!data || page.signal.aborted) return;
    const minute = Math.floor(data.at / 60);
    renew(parts.verdict, [data.ok, data.says, data.findings], () => verdict(data));
    renew(parts.hosts, [data.hosts, minute], () => agents(data.hosts));
    renew(parts.troubles, [data.troubles, minute], () => problems(data.troubles));
    renew(parts.worker, [data.worker, data.home, data.spool_bytes], () => worker(data));
    renew(parts.store, data.store, store);
    if (wasOk !== data.ok) page.announce(data.says);
    wasOk = data.ok;
  }

  async function updateFigures() {
    try {
      const data = await loadStats((signal) => get("/api/stats", chosen, { signal }));
      if (!data || page.signal.aborted) return;
      retrier.succeeded();
      figures.tables.hidden = false;
      renew(figures.totals, [data.tokens, data.items, data.injections], () => sums(data));
      renew(figures.tables, [data.items, data.no_context, data.build_ms, data.memories], () => tables(data));
    } catch (error) {
      if (page.signal.aborted) return;
      figures.tables.hidden = true;
      invalidate(figures.totals);
      const isBroken = error.status === 503;
      fill(figures.totals, isBroken ? h("p.dim", "No figures while the store cannot be read.") : errorBox(error));
      retrier.failed(error, updateFigures);
    }
  }

  page.keys({
    7: ["The last 7 days", () => choose({ days: 7 })],
    3: ["The last 30 days", () => choose({ days: 30 })],
    9: ["The last 90 days", () => choose({ days: 90 })],
  });
  updateAges(root, page.signal);
  await update(); // first: figures may take a second in a large store
  await updateFigures();
  page.live(update, REST);
  page.live(updateFigures, STATS_REST);
}

const address = ({ project, days }) => `/health?${new URLSearchParams({ days, ...(project ? { project } : {}) })}`;

function section(name, part) {
  const heading = SECTIONS[name];
  const label = heading ? { "aria-labelledby": `health-${name}` } : { "aria-label": "In one sentence" };
  const style = { class: `card of-${name}` };
  return h("section", { ...style, ...label }, heading ? h("h2", { id: `health-${name}` }, heading) : null, part);
}

// -- health -----------------------------------------------------------------------------------------------------------

function verdict({ ok, says, findings }) {
  const [sign, style] = !ok ? ["✗", "bad"] : findings.length ? ["!", "warn"] : ["✓", "good"];
  const finding = (each) =>
    h(
      "li",
      each.state === "wrong" ? chip("✗ wrong", "bad") : chip("! note", "warn"),
      h("div", h("p", code(each.says)), each.way_out ? h("p.dim", "→ ", code(each.way_out)) : null),
    );
  return [
    h("p.verdict-line", h("span", { class: style, "aria-hidden": "true" }, `${sign} `), code(says)),
    findings.length ? h("ul.findings", findings.map(finding)) : null,
  ];
}

function agents(hosts) {
  return hosts.length ? h("ul.rows", hosts.map(agent)) : h("p.dim", "No agent was found on this machine.");
}

function agent({ host, connected, last_event: event, last_injection: injection, sessions }) {
  const how = injection && `${nameTrigger("at", injection.trigger)}, ${formatTokens(injection.tokens)}`;
  return h(
    "li",
    h("h3", host, " ", connected ? chip("✓ connected", "good") : chip("– not connected")),
    h(
      "p.figures",
      h("span", "last event ", event ? [age(event.at), ` (${event.name})`] : "never"),
      h("span", "last injection ", injection ? [age(injection.at), ` (${how})`] : "never"),
      sessions ? h("span", pluralize(sessions, "session")) : null,
    ),
    connected || event ? null : h("p.figures", h("span", code(`\`foreword install ${host}\` connects it.`))),
  );
}

function problems(all) {
  if (!all.length) return h("p.dim", "None on record.");
  const rows = all.map((each) =>
    h(
      "li",
      h(
        "p.figures",
        age(each.at),
        h("span", each.where),
        each.count > 1 ? h("span", `${formatNumber(each.count)} times`) : null,
      ),
      h("p", code(each.what)),
    ),
  );
  return [
    h(
      "p.dim",
      code("Errors that no agent was disturbed with, newest first; `foreword doctor` checks whether they persist."),
    ),
    h("ul.rows", rows.slice(0, FEW)),
    rows.length > FEW
      ? fold("problems", `${formatNumber(rows.length - FEW)} more`, h("ul.rows", rows.slice(FEW)))
      : null,
  ];
}

function fold(key, summary, ...children) {
  const node = h("details", { open: unfolded.has(key) }, h("summary", { "data-do": key }, summary), ...children);
  node.addEventListener("toggle", () => (node.open ? unfolded.add(key) : unfolded.delete(key)));
  return node;
}

const worker = ({ worker: { uptime_s, version, pid }, home, spool_bytes }) => [
  totals({
    up: formatDuration(uptime_s),
    version,
    process: pid,
    "not stored yet": spool_bytes ? formatBytes(spool_bytes) : "nothing",
  }),
  h("p.dim", "Its home is ", h("code", home)),
];

function store(data) {
  if (!data.bytes) return h("p.bad", "✗ It cannot be read: see above.");
  const percent = Math.round((100 * data.bytes) / data.limit);
  const size = data.limit
    ? `${formatBytes(data.bytes)} of ${formatBytes(data.limit)}, ${percent ? `${percent} %` : "under 1 %"}`
    : `${formatBytes(data.bytes)}, without a limit`;
  const counts = ["memories", "sessions", "events", "injections"].filter((name) => name in data.counts);
  return [
    meter(data.bytes, data.limit, size),
    h(
      "p.figures",
      counts.map((name) => h("span", `${formatNumber(data.counts[name])} ${name}`)),
      h("span", "limit: ", h("code", "store_max_mb")),
    ),
    h("p.dim", `This counts ${data.counted}.`),
  ];
}

// -- figures ----------------------------------------------------------------------------------------------------------

function sums({ tokens, items, injections }) {
  return [
    totals({
      "tokens injected": formatNumber(tokens.given),
      injections: formatNumber(injections.total),
      "items shown": formatNumber(items.shown),
      "used, of those judged": items.hit_rate === null ? "–" : formatPercent(items.hit_rate),
      "tokens for each used item": tokens.per_used_item === null ? "–" : formatNumber(Math.round(tokens.per_used_item)),
    }),
    injections.away
      ? h("p.dim", `Hooks injected ${formatNumber(injections.away)} of these by themselves, without the worker.`)
      : null,
  ];
}

function tables({ items, no_context, build_ms, memories }) {
  const usage = ([name, { shown, used, ignored, hit_rate: rate }]) => [
    name,
    ...[shown, used, ignored].map(formatNumber),
    rate === null ? "–" : [formatPercent(rate), h("span.share", { "aria-hidden": "true" }, share(rate))],
  ];
  const reasons = ([trigger, each]) =>
    Object.entries(each).map(([why, n]) => [nameTrigger("at", trigger), why, formatNumber(n)]);
  const duration = ([trigger, each]) => [
    nameTrigger("at", trigger),
    formatNumber(each.count),
    ...["median", "p95", "max"].map((which) => formatMilliseconds(each[which])),
  ];
  return [
    table(
      "Items by kind",
      ["kind", "shown", "used", "not used", "used of judged"],
      Object.entries(items.by_kind).map(usage),
    ),
    table("No context injected", ["trigger", "reason", "times"], Object.entries(no_context).flatMap(reasons)),
    table(
      "Time to build a context",
      ["trigger", "times", "median", "p95", "longest"],
      Object.entries(build_ms).map(duration),
    ),
    table(
      "Memories by kind",
      ["kind", "active"],
      Object.entries(memories.by_kind).map(([name, n]) => [name, formatNumber(n)]),
    ),
  ];
}

function table(caption, head, rows) {
  if (!rows.length) return null;
  const row = ([name, ...cells]) =>
    h(
      "tr",
      h("th", { scope: "row" }, name),
      cells.map((cell) => h("td.n", cell)),
    );
  return h(
    "div",
    h(
      "table",
      h("caption", caption),
      h(
        "thead",
        h(
          "tr",
          head.map((name, at) => h("th", { scope: "col", class: at ? "n" : null }, name)),
        ),
      ),
      h("tbody", rows.map(row)),
    ),
  );
}
