// Draw the form that changes a memory, and read what is to be saved.

import { make } from "../dom.js";
import { tagsIn } from "./tags.js";

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
const LISTS = ["tags", "files", "functions"];
const OF_KIND = { why: "decision", fixed_by: "failure" }; // fields that one kind has, shown with it or where something stands in them

// The form that changes a memory; `save` gets what is different.
export function editor(one, { save, cancel }) {
  const was = texts(one);
  const inputs = {
    title: make("input", { name: "title", dir: "auto", value: was.title, required: true }),
    body: make("textarea", { name: "body", dir: "auto", value: was.body, rows: 6 }),
    kind: make(
      "select",
      { name: "kind" },
      KINDS.map((each) => make("option", { value: each, selected: each === was.kind }, each)),
    ),
    why: make("textarea", { name: "why", dir: "auto", value: was.why, rows: 2 }),
    fixed_by: make("textarea", { name: "fixed_by", dir: "auto", value: was.fixed_by, rows: 2 }),
    scope: make("input", { name: "scope", value: was.scope, required: true, list: "mem-scopes" }),
    confidence: make("input", {
      name: "confidence",
      type: "number",
      required: true,
      min: 0,
      max: 1,
      step: "any",
      value: was.confidence,
    }),
    tags: make("input", { name: "tags", dir: "auto", value: was.tags }),
    files: make("textarea", { name: "files", dir: "auto", value: was.files, rows: 2 }),
    functions: make("textarea", { name: "functions", dir: "auto", value: was.functions, rows: 2 }),
  };
  const labels = {
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
  const hidden = (name) =>
    name in OF_KIND && !began[name] && !inputs[name].value && inputs.kind.value !== OF_KIND[name];
  const unhide = () => {
    for (const name of Object.keys(OF_KIND)) inputs[name].closest("label").hidden = hidden(name);
  };
  inputs.kind.addEventListener("change", unhide);
  const began = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value])); // as a browser normalises it
  const different = () => {
    const changed = Object.keys(inputs).filter((name) => inputs[name].value !== began[name]);
    return Object.fromEntries(changed.map((name) => [name, meant(name, inputs[name].value, one.tags)]));
  };
  const made = form(
    "Edit",
    [
      Object.entries(inputs).map(([name, input]) => labelled(labels[name], input)),
      make(
        "datalist",
        { id: "mem-scopes" },
        ["project", "universal", "language:python", "language:typescript", "language:go", "language:rust"].map((each) =>
          make("option", { value: each }),
        ),
      ),
    ],
    { go: () => save(different()), cancel, dirty: () => Object.keys(different()).length > 0, first: inputs.title },
  );
  unhide();
  return made;
}

// A memory's fields, each as one text that can be written in.
function texts(one) {
  const scope = one.scope.startsWith("project:") ? "project" : one.scope;
  const data = {
    title: one.title,
    body: one.body,
    kind: one.kind,
    why: one.detail.why ?? "",
    fixed_by: one.detail.fixed_by ?? "",
    scope,
    confidence: one.confidence,
  };
  for (const name of LISTS) data[name] = one[name].join(name === "tags" ? ", " : "\n");
  return data;
}

function meant(name, text, tags) {
  if (name === "confidence") return Number(text);
  if (name === "tags") return tagsIn(text, tags);
  if (!LISTS.includes(name)) return text;
  return text
    .split("\n")
    .map((each) => each.trim())
    .filter(Boolean);
}

const labelled = (name, input) => make("label", {}, make("span", { class: "dim" }, name), input);

function form(name, children, { go, cancel, dirty, first }) {
  const node = make(
    "form",
    {
      class: "mem-form fields",
      "aria-label": name,
      on: {
        submit: (event) => {
          event.preventDefault();
          go();
        },
      },
    },
    make("h2", {}, name),
    children,
    make(
      "p",
      { class: "actions" },
      make("button", { type: "button", class: "quiet", on: { click: cancel } }, "Cancel ", make("kbd", {}, "Esc")),
      make("button", { type: "submit", class: "main" }, "Save ", make("kbd", {}, "Ctrl+Enter")),
    ),
  );
  return { node, dirty, submit: () => node.requestSubmit(), focus: () => first.focus() };
}
