// Format dates, numbers and texts for people.

const DAY = 86_400;
const AGES = [
  [DAY * 365, "y"],
  [DAY * 30, "mo"],
  [DAY * 7, "w"],
  [DAY, "d"],
  [3600, "h"],
  [60, "min"],
];
const SIZES = [
  [1024 ** 3, "GB"],
  [1024 ** 2, "MB"],
  [1024, "KB"],
];

// Created once: creating a formatter costs a hundred times as much as using it, and a list uses it hundreds of times.
const dateFormat = (options) => new Intl.DateTimeFormat(undefined, options);
const DATE = dateFormat({ dateStyle: "medium", timeStyle: "short" });
const CLOCK = dateFormat({ hour: "2-digit", minute: "2-digit" });
const DAY_OF_YEAR = dateFormat({ weekday: "short", day: "numeric", month: "short" });
const DAY_OF_ANY_YEAR = dateFormat({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
const NUMBER = new Intl.NumberFormat();

// Times are in seconds since 1970, as the API has them.
export const formatDate = (seconds) => DATE.format(seconds * 1000);

export const formatClock = (seconds) => CLOCK.format(seconds * 1000);

export const formatSpan = (from, to) =>
  formatClock(from) === formatClock(to) ? formatClock(to) : `${formatClock(from)} – ${formatClock(to)}`;

// The local day: "Today", "Yesterday" or a date.
export function formatDay(seconds) {
  const date = new Date(seconds * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / (DAY * 1000));
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return (date.getFullYear() === new Date().getFullYear() ? DAY_OF_YEAR : DAY_OF_ANY_YEAR).format(date);
}

// As in the text that agents read: "2 h ago".
export function formatAge(seconds, now = Date.now() / 1000) {
  const elapsed = now - seconds;
  return elapsed < 10 ? "just now" : `${formatDuration(elapsed)} ago`;
}

export function formatDuration(seconds) {
  const [unit, name] = AGES.find(([each]) => seconds >= each) ?? [1, "s"];
  return `${Math.floor(Math.max(0, seconds) / unit)} ${name}`;
}

export const formatNumber = (n) => NUMBER.format(n);

export const pluralize = (n, one, more = `${one}s`) => `${formatNumber(n)} ${n === 1 ? one : more}`;

export const formatTokens = (n) => pluralize(n, "token");

export const formatMilliseconds = (n) => `${n.toFixed(n < 10 ? 1 : 0)} ms`;

export const formatPercent = (rate) => `${Math.round(rate * 100)} %`;

export function formatBytes(n) {
  const [unit, name] = SIZES.find(([each]) => n >= each) ?? [1, "bytes"];
  return `${(n / unit).toFixed(n >= unit * 10 || unit === 1 ? 0 : 1).replace(".0", "")} ${name}`;
}

export const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

export const endSentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

// Names of triggers: of one, as a time, and of several.
const TRIGGERS = {
  prompt: { one: "prompt", at: "for a prompt", all: "prompts" },
  session_start: { one: "session start", at: "at session start", all: "session start" },
  compaction: { one: "compaction", at: "for a compaction", all: "compactions" },
  question: { one: "question of the agent", at: "for a question", all: "questions" },
  tool: { one: "tool use", at: "around a tool use", all: "hints" },
};
export const nameTrigger = (form, trigger) => TRIGGERS[trigger]?.[form] ?? trigger;

const STATUSES = {
  superseded: "It was superseded since.",
  discarded: "It was discarded since.",
  stale: "It has gone stale since.",
  active: "It is active again.",
};
export const describeStatus = (status) => STATUSES[status] ?? `It is ${status} now.`;

const EVIDENCE = {
  fetched: "it was fetched",
  file: "its file was touched",
  function: "its function was touched",
  command: "its command was run",
  words: "its words came back",
};

// Whether an injected memory was used: a class and its words.
export function describeUsage(used, how) {
  if (used) return ["used", `✓ used${how ? `: ${EVIDENCE[how] ?? how}` : ""}`];
  if (used === 0 || used === false) return ["ignored", "– not used"];
  return ["unjudged", how ? "· cannot be told" : "· not judged yet"];
}

// Links to pages.
export const storyPath = (session) => `/timeline/${encodeURIComponent(session)}`;
export const livePath = (session) => `/now/${encodeURIComponent(session)}`;
export const memoryPath = (id) => `/memories/${encodeURIComponent(id)}`;
export const projectPath = (project) => `/timeline?project=${encodeURIComponent(project)}`;
