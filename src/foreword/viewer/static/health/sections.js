// Draw the health in one sentence, and part by part: agents, problems, worker, store.

import { make } from "../dom.js";
import { age, ago, chip, coded, many, meter, triggerIn, number, renew, tokens, totals } from "../parts.js";
import { sized } from "../format.js";

const FIRST = 5; // troubles that are seen at once

const opened = new Set(); // folds that somebody opened, while the page is not left for good
function fold(key, summary, ...children) {
  const node = make("details", { open: opened.has(key) }, make("summary", { "data-do": key }, summary), ...children);
  node.addEventListener("toggle", () => (node.open ? opened.add(key) : opened.delete(key)));
  return node;
}

export function draw(part, data) {
  renew(part.verdict, [data.ok, data.says, data.findings], () => verdict(data));
  renew(part.hosts, [data.hosts, Math.floor(data.at / 60)], () => hosts(data.hosts));
  renew(part.troubles, [data.troubles, Math.floor(data.at / 60)], () => troubles(data.troubles));
  renew(part.worker, [data.worker, data.home, data.spool_bytes], () => worker(data));
  renew(part.store, data.store, store);
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

function worker({ worker: data, home, spool_bytes: waiting }) {
  const waits = waiting ? sized(waiting) : "nothing";
  return [
    totals({ up: lasting(data.uptime_s), version: data.version, process: data.pid, "not stored yet": waits }),
    make("p", { class: "dim" }, "Its home is ", make("code", {}, home)),
  ];
}

function hosts(all) {
  if (!all.length) return make("p", { class: "dim" }, "No agent was found on this machine.");
  const rows = all.map((each) => {
    const event = each.last_event;
    const injection = each.last_injection;
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
          injection
            ? [ago(injection.at), ` (${triggerIn("at", injection.trigger)}, ${tokens(injection.tokens)})`]
            : "never",
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

function store(data) {
  if (!data.bytes) return make("p", { class: "bad" }, "✗ It cannot be read: see above.");
  const part = Math.round((100 * data.bytes) / data.limit);
  const share = data.limit
    ? `${sized(data.bytes)} of ${sized(data.limit)}, ${part ? `${part} %` : "under 1 %"}`
    : `${sized(data.bytes)}, without a limit`;
  const counts = ["memories", "sessions", "events", "injections"].filter((name) => name in data.counts);
  return [
    meter(data.bytes, data.limit, share),
    make(
      "p",
      { class: "figures" },
      counts.map((name) => make("span", {}, `${number(data.counts[name])} ${name}`)),
      make("span", {}, "limit: ", make("code", {}, "store_max_mb")),
    ),
    make("p", { class: "dim" }, `This counts ${data.counted}.`),
  ];
}

const lasting = (seconds) => age(0, seconds).replace(" ago", "").replace("just now", "a moment");
