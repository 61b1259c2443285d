// One trigger of a session -> its card: when and for what, the text as the agent saw it, item by item, or why nothing was said.

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

export function drawCard(told, { isNew, folds, page, first, last, session }) {
  const about = make(
    "header",
    {},
    make(
      "p",
      { class: "figures" },
      make(
        "time",
        { datetime: new Date(told.at * 1000).toISOString(), title: when(told.at), "data-clock": true },
        clock(told.at),
      ),
      ago(told.at),
      isNew ? chip("new", "good") : null,
      told.away ? chip("by the hook alone, the worker was away") : null,
    ),
    make("h2", {}, sentence(nameOf(told)), told.prompt ? [": ", make("q", {}, shorten(told.prompt, PROMPT))] : null),
  );
  if (told.silent) return [about, silence(told, session, page)];
  return [
    about,
    make(
      "div",
      { class: "trigger-cost" },
      meter(told.tokens, told.budget, `${number(told.tokens)} of ${tokens(told.budget)}`),
      make(
        "p",
        { class: "figures" },
        make("span", {}, many(new Set(told.items.map((each) => each.memory)).size, "memory", "memories")),
        make("span", {}, `built in ${told.build_ms < 10 ? told.build_ms.toFixed(1) : Math.round(told.build_ms)} ms`),
        told.layers.length > 1
          ? told.layers.map((each) => make("span", {}, `${each.name} ${number(each.tokens)}`))
          : null,
      ),
    ),
    text(told, { folds, page, first }),
    fold(
      told,
      "of-items",
      many(told.items.length, "item"),
      folds,
      told.items.length <= (first || isNew ? SOME : FEW),
      make(
        "div",
        { class: "items" },
        last ? make("p", { class: "dim how" }, SCORED) : null,
        told.items.map((each) => one(each, { layer: told.layers.length > 1 })),
      ),
    ),
    asked(told),
  ];
}

// Why nothing was said, what came nearest, and a way to see what would be said now.
function silence(told, session, page) {
  const { nearest } = told;
  const scores =
    nearest && told.why === "below" && nearest.score < nearest.needed
      ? ` ${nearest.score.toFixed(3)}, needed ${nearest.needed.toFixed(3)}`
      : "";
  return make(
    "div",
    { class: "silence" },
    make("p", {}, told.says ? `Nothing was injected: ${told.says}.` : UNKNOWN),
    told.rejected?.length
      ? make(
          "ul",
          { class: "dim rejected" },
          told.rejected.map((each) =>
            make("li", {}, chip(each.kind), " ", memory(each.memory, each.title), `: ${each.why}`),
          ),
        )
      : null,
    nearest && !told.rejected?.length
      ? make(
          "p",
          { class: "dim" },
          told.why === "repeated" ? "Among it: " : "Nearest: ",
          nearest.title ? memory(nearest.memory, nearest.title) : "a memory that is no longer there",
          scores,
        )
      : null,
    told.prompt && told.why !== "off"
      ? make(
          "p",
          {},
          make(
            "button",
            { type: "button", class: "again", on: { click: () => tried(told, session, page) } },
            "Try this prompt",
          ),
        )
      : null,
  );
}

// Try the same prompt, or the same trigger of the session, as it would be answered now.
export async function tried(told, session, page) {
  if (told?.prompt) (await import("../try.js")).bring(told.prompt); // beside the address, which has no prompts
  const which = !told || told.trigger === "prompt" ? {} : { trigger: told.trigger };
  page.go(
    `/try?${new URLSearchParams({ ...(session ? { project: session.project, session: session.id } : {}), ...which })}`,
  );
}

function text(told, { folds, first }) {
  const block = make(
    "pre",
    { class: "block", tabindex: "0", role: "group", "aria-label": "As the agent saw it" },
    told.text || "Its text is no longer kept.",
  );
  return fold(told, "text", "As the agent saw it", folds, first, block);
}

function one(entry, { layer }) {
  const gone = entry.status === "forgotten";
  const told = {
    ...entry,
    title: entry.title || (gone ? "(no longer there)" : entry.memory),
    used: entry.used === null ? null : Number(entry.used),
  };
  const later = !gone && entry.status !== "active";
  return item(told, { layer, more: later ? make("p", { class: "dim how" }, since(entry.status)) : null });
}

// What was looked for, and what was left out and why.
function asked(told) {
  const looked = [...told.terms, ...told.files];
  if (!looked.length && !told.skipped.length) return null;
  return make(
    "div",
    { class: "trigger-rest" },
    looked.length
      ? make(
          "p",
          {},
          make("span", { class: "dim" }, "Looked for "),
          told.terms.map((each) => [chip(each), " "]),
          told.files.map((each) => [chip(each, "mono"), " "]),
        )
      : null,
    told.skipped.length ? make("p", { class: "dim" }, `Left out: ${leftOut(told.skipped).join("; ")}`) : null,
  );
}

// Each reason once, behind all that it is the reason for.
const leftOut = (skipped) =>
  [...Map.groupBy(skipped, (each) => each.why)].map(
    ([why, some]) => `${some.map((each) => each.name).join(", ")} (${why})`,
  );

// A part that can be folded, and stays as somebody left it through every update.
function fold(told, name, label, folds, isOpen, ...within) {
  const key = `${told.id} ${name}`;
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

export function inWords(told) {
  const what = told.silent
    ? `nothing was injected${told.says ? `, ${told.says}` : ""}`
    : `${many(told.items.length, "item")}, ${tokens(told.tokens)}`;
  return `${nameOf(told)}${told.prompt ? ` ${shorten(told.prompt, 60)}` : ""}: ${what}`;
}
