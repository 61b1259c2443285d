// Draw the form that changes a memory, or that puts another one in its place, and read what is to be saved.

import { fill, make } from "../dom.js";
import { chip, since } from "../parts.js";
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

// What changes the words of a memory: resolves to what is different, or null.
export function editor(one, { version, save, cancel }) {
  let was = texts(one);
  let tags = one.tags; // that are known
  let asOf = version;
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
    return Object.fromEntries(changed.map((name) => [name, meant(name, inputs[name].value, tags)]));
  };
  const notice = make("div", { class: "trouble", role: "alert", hidden: true });

  // What somebody else changed meanwhile: shown where nothing is written yet; else whoever writes decides.
  function changed(now, other) {
    if (other === asOf) return;
    const fresh = texts(now);
    tags = [...new Set([...tags, ...now.tags])];
    const theirs = Object.keys(inputs).filter((name) => String(fresh[name]) !== String(was[name]));
    const both = theirs.filter(
      (name) => inputs[name].value !== began[name] && inputs[name].value !== String(fresh[name]),
    );
    const take = (names) => {
      for (const name of names) {
        inputs[name].value = fresh[name];
        began[name] = inputs[name].value;
      }
      unhide();
    };
    const settle = () => {
      [was, asOf] = [fresh, other];
      notice.hidden = true;
      inputs.title.focus();
    };
    take(theirs.filter((name) => !both.includes(name)));
    const named = (names) => names.map((name) => labels[name].split(/[,:]/)[0]).join(", ");
    const text = (name) => make("dd", { class: "mem-text" }, String(fresh[name]) || "nothing");
    const reads = (name) => make("div", {}, make("dt", {}, named([name])), text(name));
    const decides = (words, click) => make("button", { type: "button", on: { click } }, words);
    fill(
      notice,
      make("p", {}, make("strong", {}, "Somebody changed this while you were writing.")),
      now.status === one.status ? null : make("p", {}, since(now.status)),
      theirs.length > both.length
        ? make("p", {}, `Shown here as it is now: ${named(theirs.filter((name) => !both.includes(name)))}.`)
        : null,
      !both.length
        ? null
        : [
            make("p", {}, "You both changed these. Theirs reads:"),
            make("dl", { class: "mem-dl" }, both.map(reads)),
            make(
              "p",
              { class: "actions" },
              decides("Take theirs", () => {
                take(both);
                settle();
              }),
              decides("Keep mine", settle),
            ),
          ],
    );
    notice.hidden = false;
    notice.scrollIntoView({ block: "nearest" });
    if (!both.length) [was, asOf] = [fresh, other];
  }

  function gone() {
    fill(
      notice,
      make("p", {}, make("strong", {}, "It was forgotten while you were writing.")),
      make("p", {}, "There is nothing left to change: copy what you want to keep."),
    );
    notice.hidden = false;
  }

  // What changed meanwhile and is not decided yet comes first.
  const go = () => {
    const decide = notice.hidden ? null : notice.querySelector("button");
    return decide ? decide.focus() : save({ ...different(), as_of: asOf });
  };
  const made = form(
    "Edit",
    [
      notice,
      Object.entries(inputs).map(([name, input]) => labelled(labels[name], input)),
      make(
        "datalist",
        { id: "mem-scopes" },
        ["project", "universal", "language:python", "language:typescript", "language:go", "language:rust"].map((each) =>
          make("option", { value: each }),
        ),
      ),
    ],
    { yes: "Save", go, cancel, dirty: () => Object.keys(different()).length > 0, first: inputs.title },
  );
  unhide();
  return { ...made, id: one.id, changed, gone };
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

// What takes its place: a memory that is known, found as one types, or new words.
export function successor(one, { find, save, cancel }) {
  const title = make("input", {
    name: "title",
    dir: "auto",
    maxlength: 1000,
    placeholder: "What is true now, in one line",
  });
  const body = make("textarea", { name: "body", dir: "auto", rows: 3 });
  const why = make("textarea", { name: "why", dir: "auto", rows: 2 });
  const query = make("input", {
    type: "search",
    name: "find",
    dir: "auto",
    autocomplete: "off",
    placeholder: "Words of the memory that takes its place",
  });
  const found = make("ul", { class: "mem-rows mem-pick", "aria-label": "Memories that may take its place" });
  let chosen = null; // the memory that takes its place; where there is none, the new words do
  const takes = make("p", { class: "mem-takes", role: "status" });
  const words = () => [title, body, why].some((each) => each.value.trim());

  function choose(each) {
    chosen = each;
    for (const box of found.querySelectorAll("input")) box.checked = box.value === chosen?.id;
    takes.textContent = chosen
      ? `“${chosen.title}” takes its place.${words() ? " The new words are not used." : ""}`
      : "";
    lacks.hidden = true;
  }

  function option(each) {
    const about = {
      type: "radio",
      name: "new",
      value: each.id,
      checked: each.id === chosen?.id,
      on: { change: () => choose(each) },
    };
    return make(
      "li",
      {},
      make("label", {}, make("input", about), " ", chip(each.kind), " ", make("bdi", {}, each.title)),
    );
  }

  const look = async () => {
    const all = (await find(query.value))?.filter((each) => each.id !== one.id);
    if (!all) return;
    fill(found, all.map(option));
    if (!all.length) fill(found, make("li", { class: "dim" }, "Nothing like that."));
    if (chosen && !all.some((each) => each.id === chosen.id)) choose(null); // nobody sees any more that it is chosen
  };
  query.addEventListener("input", look);
  for (const each of [title, body, why]) each.addEventListener("input", () => choose(null)); // who writes means what is written
  const written = () => (title.value.trim() ? { title: title.value.trim(), body: body.value, why: why.value } : null);
  const data = () => (chosen ? { new: chosen.id } : written());
  const lacks = make("p", { class: "bad", role: "alert", hidden: true }, "Say what is true now, or choose a memory.");
  const go = () => {
    lacks.hidden = Boolean(data());
    if (data()) save(data());
  };
  const made = form(
    "Supersede",
    [
      make("p", { class: "dim" }, "The old one is kept, linked, and no longer shown."),
      make(
        "fieldset",
        {},
        make("legend", {}, "With new words"),
        labelled("Title", title),
        labelled("Body", body),
        labelled("Why", why),
      ),
      make("fieldset", {}, make("legend", {}, "Or by a memory that is known"), labelled("Find", query), found),
      takes,
      lacks,
    ],
    { yes: "Supersede", go, cancel, dirty: () => Boolean(chosen) || words(), first: title },
  );
  return { ...made, id: one.id, changed: () => {}, gone: () => {} };
}

const labelled = (name, input) => make("label", {}, make("span", { class: "dim" }, name), input);

function form(name, children, { yes, go, cancel, dirty, first }) {
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
      make("button", { type: "submit", class: "main" }, `${yes} `, make("kbd", {}, "Ctrl+Enter")),
    ),
  );
  return { node, dirty, submit: () => node.requestSubmit(), focus: () => first.focus() };
}
