// How everything stands -> in one sentence, and part by part: worker, hosts, troubles, store, settings, a model's ledger.

import { make } from "../dom.js";
import { age, ago, chip, coded, many, meter, triggerIn, number, renew, tokens, totals } from "../parts.js";
import { formats, sized, wide } from "../plots.js";

const FIRST = 5; // troubles that are seen at once
const WIRED = { yes: ["✓ wired", "good"], partly: ["! partly wired", "warn"], no: ["– not wired", ""] };

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
          given ? [ago(given.at), ` (${triggerIn("at", given.trigger)}, ${tokens(given.tokens)})`] : "never",
        ),
        each.sessions ? make("span", {}, many(each.sessions, "session")) : null,
        each.events ? make("span", {}, many(each.events, "event")) : null,
      ),
      way ? make("p", { class: "figures" }, make("span", {}, coded(way))) : null,
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

const lasting = (seconds) => age(0, seconds).replace(" ago", "").replace("just now", "a moment");
