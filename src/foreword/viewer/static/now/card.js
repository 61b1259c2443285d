// Draw the card of one trigger: its text as the agent saw it, item by item, or why nothing was injected.

import { button, h } from "../dom.js";
import {
  capitalize,
  describeStatus,
  formatMilliseconds,
  formatNumber,
  formatTokens,
  nameTrigger,
  pluralize,
  shorten,
} from "../format.js";
import { age, chip, clock, item, memoryLink, meter, SCORE_HELP } from "../parts.js";

const FEW = 4; // items that are unfolded at first ...
const SOME = 12; // ... in the newest card and new ones
const PROMPT = 600; // characters of a prompt
const UNKNOWN = "Nothing was injected. The reason was not kept: no worker was running, or it was too long ago.";
const STARTS = {
  resume: "when the session was resumed",
  clear: "after a clear",
  compact: "after a compaction",
  fork: "when the session was forked",
  question: "for a question about the state of the work",
};
const HINTS = { before: "before a tool use", after: "after a failure" };

export function drawCard(data, { folds, page, session, isNew, isFirst, isLatest }) {
  const header = h(
    "header",
    h(
      "p.figures",
      clock(data.at),
      age(data.at),
      isNew ? chip("new", "good") : null,
      data.away ? chip("by the hook, without the worker") : null,
    ),
    h("h2", capitalize(nameOf(data)), data.prompt ? [": ", h("q", shorten(data.prompt, PROMPT))] : null),
  );
  if (!data.tokens) return [header, noContext(data, session, page)];
  const { items } = data;
  const layers = Object.entries(data.layers);
  const block = h(
    "pre.block",
    { tabindex: "0", role: "group", "aria-label": "As the agent saw it" },
    data.text || "Its text is no longer stored.",
  );
  return [
    header,
    h(
      "div.trigger-cost",
      meter(data.tokens, data.budget, `${formatNumber(data.tokens)} of ${formatTokens(data.budget)}`),
      h(
        "p.figures",
        h("span", pluralize(new Set(items.map((each) => each.memory)).size, "memory", "memories")),
        h("span", `built in ${formatMilliseconds(data.build_ms)}`),
        layers.length > 1 ? layers.map(([name, tokens]) => h("span", `${name} ${formatNumber(tokens)}`)) : null,
      ),
    ),
    fold("text", "As the agent saw it", isFirst, block),
    fold(
      "of-items",
      pluralize(items.length, "item"),
      items.length <= (isFirst || isNew ? SOME : FEW),
      h(
        "div.items",
        isLatest ? h("p.dim.how", SCORE_HELP) : null,
        items.map((each) => injectedItem(each, layers.length > 1)),
      ),
    ),
    searched(data),
  ];

  // A fold keeps its state through every update.
  function fold(name, label, isOpen, content) {
    const key = `${data.id} ${name}`;
    if (!folds.has(key)) folds.set(key, isOpen);
    const details = h("details", { class: name, open: folds.get(key) }, h("summary", label), content);
    details.addEventListener("toggle", () => folds.set(key, details.open));
    return details;
  }
}

// Why nothing was injected, and what came nearest.
function noContext(data, session, page) {
  const { nearest, rejected } = data;
  const isBelow = nearest && data.why === "below" && data.score < data.needed;
  const scores = isBelow ? ` ${data.score.toFixed(3)}, needed ${data.needed.toFixed(3)}` : "";
  return h(
    "div.silence",
    h("p", data.says ? `Nothing was injected: ${data.says}.` : UNKNOWN),
    rejected.length
      ? h(
          "ul.dim.rejected",
          rejected.map((each) => h("li", chip(each.kind), " ", memoryLink(each.memory, each.title), `: ${each.why}`)),
        )
      : null,
    nearest && !rejected.length
      ? h(
          "p.dim",
          data.why === "repeated" ? "Among it: " : "Nearest: ",
          data.title ? memoryLink(nearest, data.title) : "a memory that was forgotten",
          scores,
        )
      : null,
    data.prompt && data.why !== "off"
      ? h(
          "p",
          button("Try this prompt", () => tryAgain(data, session, page), { class: "again" }),
        )
      : null,
  );
}

// Open "Try it" with the prompt or the trigger of a card.
export async function tryAgain(data, session, page) {
  if (data?.prompt) (await import("../try.js")).setDraft(data.prompt); // addresses have no prompts
  const place = session ? { project: session.project, session: session.id } : {};
  const trigger = !data || data.trigger === "prompt" ? {} : { trigger: data.trigger };
  page.go(`/try?${new URLSearchParams({ ...place, ...trigger })}`);
}

function injectedItem(entry, hasLayers) {
  const isForgotten = entry.status === "forgotten";
  const data = {
    ...entry,
    title: entry.title || (isForgotten ? "(forgotten)" : entry.memory),
    used: entry.used === null ? null : Number(entry.used),
  };
  const isChanged = !isForgotten && entry.status !== "active";
  return item(data, { layer: hasLayers, more: isChanged ? h("p.dim.how", describeStatus(entry.status)) : null });
}

// What was searched for, and what was left out and why.
function searched({ terms, files, ...data }) {
  const skipped = Object.entries(data.skipped);
  if (!terms.length && !files.length && !skipped.length) return null;
  const leftOut = [...Map.groupBy(skipped, ([, why]) => why)].map(
    ([why, some]) => `${some.map(([name]) => name).join(", ")} (${why})`,
  );
  const chips = [...terms.map((each) => chip(each)), ...files.map((each) => chip(each, "mono"))];
  return h(
    "div.trigger-rest",
    chips.length
      ? h(
          "p",
          h("span.dim", "Searched for "),
          chips.map((each) => [each, " "]),
        )
      : null,
    leftOut.length ? h("p.dim", `Left out: ${leftOut.join("; ")}`) : null,
  );
}

export function toggle(details) {
  if (details) details.open = !details.open;
}

const nameOf = ({ trigger, source }) =>
  (trigger === "session_start" && STARTS[source]) ||
  (trigger === "tool" && HINTS[source]) ||
  nameTrigger("at", trigger);

export function describeTrigger(data) {
  const what = !data.tokens
    ? `nothing was injected${data.says ? `, ${data.says}` : ""}`
    : `${pluralize(data.items.length, "item")}, ${formatTokens(data.tokens)}`;
  return `${nameOf(data)}${data.prompt ? ` ${shorten(data.prompt, 60)}` : ""}: ${what}`;
}
