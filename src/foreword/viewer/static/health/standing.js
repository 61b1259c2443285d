// How everything stands -> in one sentence, and part by part: agents, troubles, worker, store.

import { make } from "../dom.js";
import { age, ago, chip, coded, many, meter, triggerIn, number, renew, tokens, totals } from "../parts.js";
import { sized } from "../plots.js";

const FIRST = 5; // troubles that are seen at once

const opened = new Set(); // folds that somebody opened, while the page is not left for good
function fold(key, summary, ...children) {
  const node = make("details", { open: opened.has(key) }, make("summary", { "data-do": key }, summary), ...children);
  node.addEventListener("toggle", () => (node.open ? opened.add(key) : opened.delete(key)));
  return node;
}

export function draw(part, told) {
  renew(part.verdict, [told.ok, told.says, told.findings], () => verdict(told));
  renew(part.hosts, [told.hosts, Math.floor(told.at / 60)], () => hosts(told.hosts));
  renew(part.troubles, [told.troubles, Math.floor(told.at / 60)], () => troubles(told.troubles));
  renew(part.worker, [told.worker, told.home, told.spool_bytes], () => worker(told));
  renew(part.store, told.store, store);
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

function worker({ worker: told, home, spool_bytes: waiting }) {
  const waits = waiting ? sized(waiting) : "nothing";
  return [
    totals({ up: lasting(told.uptime_s), version: told.version, process: told.pid, "not stored yet": waits }),
    make("p", { class: "dim" }, "Its home is ", make("code", {}, home)),
  ];
}

function hosts(all) {
  if (!all.length) return make("p", { class: "dim" }, "No agent was found on this machine.");
  const rows = all.map((each) => {
    const event = each.last_event;
    const given = each.last_injection;
    const way = `Found here; \`foreword install ${each.host}\` connects it.`;
    return make(
      "li",
      {},
      make("h3", {}, each.host, " ", each.connected ? chip("✓ connected", "good") : chip("– not connected")),
      make(
        "p",
        { class: "figures" },
        make("span", {}, "last event ", event ? [ago(event.at), ` (${event.name})`] : "never"),
        make(
          "span",
          {},
          "last given ",
          given ? [ago(given.at), ` (${triggerIn("at", given.trigger)}, ${tokens(given.tokens)})`] : "never",
        ),
        each.sessions ? make("span", {}, many(each.sessions, "session")) : null,
      ),
      each.connected || event ? null : make("p", { class: "figures" }, make("span", {}, coded(way))),
    );
  });
  return make("ul", { class: "rows" }, rows);
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
  if (!told.bytes) return make("p", { class: "bad" }, "✗ It cannot be read: see above.");
  const part = Math.round((100 * told.bytes) / told.limit);
  const share = told.limit
    ? `${sized(told.bytes)} of ${sized(told.limit)}, ${part ? `${part} %` : "under 1 %"}`
    : `${sized(told.bytes)}, without a limit`;
  const counts = ["memories", "sessions", "events", "injections"].filter((name) => name in told.counts);
  return [
    meter(told.bytes, told.limit, share),
    make(
      "p",
      { class: "figures" },
      counts.map((name) => make("span", {}, `${number(told.counts[name])} ${name}`)),
      make("span", {}, "limit: ", make("code", {}, "store_max_mb")),
    ),
    make("p", { class: "dim" }, `This counts ${told.counted}.`),
  ];
}

const lasting = (seconds) => age(0, seconds).replace(" ago", "").replace("just now", "a moment");
