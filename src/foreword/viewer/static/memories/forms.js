// Draw the form that edits a memory, and read what changed.

import { button, h } from "../dom.js";

const KINDS = [
  "summary",
  "handoff",
  "decision",
  "pattern",
  "failure",
  "observation",
  "change",
  "learning",
  "preference",
  "correction",
  "goal",
  "note",
  "project",
];
const SCOPES = ["project", "universal", "language:python", "language:typescript", "language:go", "language:rust"];
const KIND_OF = { why: "decision", fixed_by: "failure" }; // fields that are shown for one kind, or where they have a text
const LABELS = {
  title: "Title",
  body: "Body",
  kind: "Kind",
  why: "Why",
  fixed_by: "Fixed by",
  scope: "Counts for: project, universal or language:NAME",
  confidence: "Confidence, from 0 to 1",
  tags: "Tags, with commas between",
  files: "Files, one a line",
  functions: "Functions, one a line",
};

// `save` gets the changed fields.
export function createForm(memory, { save, cancel }) {
  const line = (name, value, attributes) => h("input", { name, dir: "auto", value, ...attributes });
  const area = (name, value, rows = 2) => h("textarea", { name, dir: "auto", value, rows });
  const scope = memory.scope.startsWith("project:") ? "project" : memory.scope;
  const inputs = {
    title: line("title", memory.title, { required: true }),
    body: area("body", memory.body, 6),
    kind: h(
      "select",
      { name: "kind" },
      KINDS.map((each) => h("option", { value: each, selected: each === memory.kind }, each)),
    ),
    why: area("why", memory.detail.why ?? ""),
    fixed_by: area("fixed_by", memory.detail.fixed_by ?? ""),
    scope: line("scope", scope, { required: true, list: "mem-scopes" }),
    confidence: line("confidence", memory.confidence, { required: true, type: "number", min: 0, max: 1, step: "any" }),
    tags: line("tags", memory.tags.join(", ")),
    files: area("files", memory.files.join("\n")),
    functions: area("functions", memory.functions.join("\n")),
  };
  // As the browser normalises them.
  const initial = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
  const changes = () => {
    const changed = Object.keys(inputs).filter((name) => inputs[name].value !== initial[name]);
    return Object.fromEntries(changed.map((name) => [name, parse(name, inputs[name].value, memory.tags)]));
  };
  const showFields = () => {
    for (const [name, kind] of Object.entries(KIND_OF))
      inputs[name].closest("label").hidden = !initial[name] && !inputs[name].value && inputs.kind.value !== kind;
  };
  const submit = (event) => {
    event.preventDefault();
    save(changes());
  };
  const node = h(
    "form.mem-form.fields",
    { "aria-label": "Edit", on: { submit } },
    h("h2", "Edit"),
    Object.entries(inputs).map(([name, input]) => h("label", h("span.dim", LABELS[name]), input)),
    h(
      "datalist#mem-scopes",
      SCOPES.map((each) => h("option", { value: each })),
    ),
    h(
      "p.actions",
      button(["Cancel ", h("kbd", "Esc")], cancel, { class: "quiet" }),
      h("button.main", { type: "submit" }, "Save ", h("kbd", "Ctrl+Enter")),
    ),
  );
  inputs.kind.addEventListener("change", showFields);
  showFields();
  return {
    node,
    isDirty: () => Object.keys(changes()).length > 0,
    submit: () => node.requestSubmit(),
    focus: () => inputs.title.focus(),
  };
}

function parse(name, text, tags) {
  if (name === "confidence") return Number(text);
  if (name === "tags") return parseTags(text, tags);
  if (name !== "files" && name !== "functions") return text;
  return split(text, "\n").filter(Boolean);
}

const split = (text, separator) => text.split(separator).map((each) => each.trim());

// Split at commas; a known tag that has a comma stays whole.
function parseTags(text, known) {
  const parts = split(text, ",");
  const withComma = known
    .filter((each) => each.includes(","))
    .map((tag) => ({ tag, words: split(tag, ",") }))
    .sort((one, other) => other.words.length - one.words.length);
  const matched = [];
  for (let index = 0; index < parts.length; ) {
    const matches = ({ tag, words }) =>
      !matched.includes(tag) && words.every((each, offset) => each === parts[index + offset]);
    const { tag, words } = withComma.find(matches) ?? { tag: parts[index], words: [parts[index]] };
    matched.push(tag);
    index += words.length;
  }
  return matched.filter(Boolean);
}
