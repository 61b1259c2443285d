// Draw the card of one trigger: when and for what, the text as the agent saw it, item by item, or why nothing was given.

import { make } from "../dom.js";
import {
  ago,
  chip,
  clock,
  item,
  many,
  memory,
  meter,
  triggerIn,
  number,
  SCORED,
  sentence,
  shorten,
  since,
  tokens,
  when,
} from "../parts.js";

const FEW = 4; // items that are shown without being asked for, and of the newest or one that comes while one looks
const SOME = 12;
const PROMPT = 600; // characters that a card shows
const UNKNOWN = "Nothing was injected. The reason was not kept: no worker was running, or it was too long ago.";
const SOURCES = {
  resume: "when the session was resumed",
  clear: "after a clear",
  compact: "after a compaction",
  fork: "when the session was forked",
  question: "for an agent that asked how things stand",
};
const AROUND = { before: "before a tool use", after: "after a failure" };

export function drawCard(data, { isNew, folds, page, first, last, session }) {
  const about = make(
    "header",
    {},
    make(
      "p",
      { class: "figures" },
      make(
        "time",
        { datetime: new Date(data.at * 1000).toISOString(), title: when(data.at), "data-clock": true },
        clock(data.at),
      ),
      ago(data.at),
      isNew ? chip("new", "good") : null,
      data.away ? chip("by the hook alone, the worker was away") : null,
    ),
    make("h2", {}, sentence(nameOf(data)), data.prompt ? [": ", make("q", {}, shorten(data.prompt, PROMPT))] : null),
  );
  if (data.silent) return [about, silence(data, session, page)];
  return [
    about,
    make(
      "div",
      { class: "trigger-cost" },
      meter(data.tokens, data.budget, `${number(data.tokens)} of ${tokens(data.budget)}`),
      make(
        "p",
        { class: "figures" },
        make("span", {}, many(new Set(data.items.map((each) => each.memory)).size, "memory", "memories")),
        make("span", {}, `built in ${data.build_ms < 10 ? data.build_ms.toFixed(1) : Math.round(data.build_ms)} ms`),
        data.layers.length > 1
          ? data.layers.map((each) => make("span", {}, `${each.name} ${number(each.tokens)}`))
          : null,
      ),
    ),
    text(data, { folds, page, first }),
    fold(
      data,
      "of-items",
      many(data.items.length, "item"),
      folds,
      data.items.length <= (first || isNew ? SOME : FEW),
      make(
        "div",
        { class: "items" },
        last ? make("p", { class: "dim how" }, SCORED) : null,
        data.items.map((each) => one(each, { layer: data.layers.length > 1 })),
      ),
    ),
    searchedFor(data),
  ];
}

// Draw why nothing was given, what came nearest, and a way to see what would be given now.
function silence(data, session, page) {
  const { nearest } = data;
  const scores =
    nearest && data.why === "below" && nearest.score < nearest.needed
      ? ` ${nearest.score.toFixed(3)}, needed ${nearest.needed.toFixed(3)}`
      : "";
  return make(
    "div",
    { class: "silence" },
    make("p", {}, data.says ? `Nothing was injected: ${data.says}.` : UNKNOWN),
    data.rejected?.length
      ? make(
          "ul",
          { class: "dim rejected" },
          data.rejected.map((each) =>
            make("li", {}, chip(each.kind), " ", memory(each.memory, each.title), `: ${each.why}`),
          ),
        )
      : null,
    nearest && !data.rejected?.length
      ? make(
          "p",
          { class: "dim" },
          data.why === "repeated" ? "Among it: " : "Nearest: ",
          nearest.title ? memory(nearest.memory, nearest.title) : "a memory that is no longer there",
          scores,
        )
      : null,
    data.prompt && data.why !== "off"
      ? make(
          "p",
          {},
          make(
            "button",
            { type: "button", class: "again", on: { click: () => tried(data, session, page) } },
            "Try this prompt",
          ),
        )
      : null,
  );
}

// Try the same prompt, or the same trigger of the session, as it would be answered now.
export async function tried(data, session, page) {
  if (data?.prompt) (await import("../try.js")).bring(data.prompt); // beside the address, which has no prompts
  const which = !data || data.trigger === "prompt" ? {} : { trigger: data.trigger };
  page.go(
    `/try?${new URLSearchParams({ ...(session ? { project: session.project, session: session.id } : {}), ...which })}`,
  );
}

function text(data, { folds, first }) {
  const block = make(
    "pre",
    { class: "block", tabindex: "0", role: "group", "aria-label": "As the agent saw it" },
    data.text || "Its text is no longer kept.",
  );
  return fold(data, "text", "As the agent saw it", folds, first, block);
}

function one(entry, { layer }) {
  const gone = entry.status === "forgotten";
  const data = {
    ...entry,
    title: entry.title || (gone ? "(no longer there)" : entry.memory),
    used: entry.used === null ? null : Number(entry.used),
  };
  const later = !gone && entry.status !== "active";
  return item(data, { layer, more: later ? make("p", { class: "dim how" }, since(entry.status)) : null });
}

// What was looked for, and what was left out and why.
function searchedFor(data) {
  const looked = [...data.terms, ...data.files];
  if (!looked.length && !data.skipped.length) return null;
  return make(
    "div",
    { class: "trigger-rest" },
    looked.length
      ? make(
          "p",
          {},
          make("span", { class: "dim" }, "Looked for "),
          data.terms.map((each) => [chip(each), " "]),
          data.files.map((each) => [chip(each, "mono"), " "]),
        )
      : null,
    data.skipped.length ? make("p", { class: "dim" }, `Left out: ${leftOut(data.skipped).join("; ")}`) : null,
  );
}

// Each reason once, behind all that it is the reason for.
const leftOut = (skipped) =>
  [...Map.groupBy(skipped, (each) => each.why)].map(
    ([why, some]) => `${some.map((each) => each.name).join(", ")} (${why})`,
  );

// A part that can be folded, and stays as somebody left it through every update.
function fold(data, name, label, folds, isOpen, ...within) {
  const key = `${data.id} ${name}`;
  if (!folds.has(key)) folds.set(key, isOpen);
  const made = make("details", { class: name, open: folds.get(key) }, make("summary", {}, label), ...within);
  made.addEventListener("toggle", () => folds.set(key, made.open));
  return made;
}

export function toggle(details) {
  if (details) details.open = !details.open;
}

// When it was given, and at a start how the session came to it.
const nameOf = ({ trigger, source }) =>
  (trigger === "session_start" && SOURCES[source]) ||
  (trigger === "tool" && AROUND[source]) ||
  triggerIn("at", trigger);

export function inWords(data) {
  const what = data.silent
    ? `nothing was injected${data.says ? `, ${data.says}` : ""}`
    : `${many(data.items.length, "item")}, ${tokens(data.tokens)}`;
  return `${nameOf(data)}${data.prompt ? ` ${shorten(data.prompt, 60)}` : ""}: ${what}`;
}
