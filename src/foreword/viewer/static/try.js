// Show the page "Try it": the context that an agent would get for a prompt, and what is left out, and why.

import { get, latestOnly, post } from "./api.js";
import { button, fill, h, redraw, walkable } from "./dom.js";
import { memoryPath, shorten } from "./format.js";
import { code, empty, errorBox, loadProjects, projectChoice } from "./parts.js";
import { createForm, summarize } from "./try/form.js";
import { Rows } from "./try/rows.js";

export const title = "Try it";

const PAUSE = 220; // milliseconds without a key before a request
const ANNOUNCE_PAUSE = 500; // ... without a new answer before a screen reader reads one
const LEAP = 50; // tokens that [ and ] move the budget by
const NOTHING = "No project yet. Work with an agent, or run `foreword init`.";
let draft = ""; // prompts stay out of addresses and off the disk; this one lasts while the viewer is open

export function setDraft(prompt) {
  draft = prompt;
}

export async function show(root, page) {
  const initial = { ...Object.fromEntries(page.query), prompt: draft };
  const changeProject = () => {
    form.changeProject();
    loadChoices();
  };
  const choice = await projectChoice(page, { all: "", change: changeProject });
  const project = choice.querySelector("select");
  if (!project.options.length) {
    root.append(h("h1", title), empty(code(NOTHING)));
    return page.live(async () => {
      if ((await loadProjects(page)).length) page.go(location.pathname + location.search);
    });
  }
  let pauseTimer = 0;
  const updateSoon = () => {
    clearTimeout(pauseTimer);
    pauseTimer = setTimeout(update, PAUSE);
  };
  const form = createForm(initial, choice, { update, updateSoon });
  const result = h("section.try-result", { "aria-label": "What would be injected", tabindex: "-1" });
  const text = h("section.try-text", { "aria-label": "As the agent would see it" });
  const rows = new Rows(result);
  root.append(
    h("div.head", h("h1", title), h("p.dim", "What you try is neither stored nor counted.")),
    form.card,
    form.budget,
    h("div.try-halves", result, text),
  );
  let wanted = null; // the next request
  let isBusy = false;
  let announceTimer = 0;
  const load = latestOnly();
  const [choicesRetrier, previewRetrier] = [page.retrier(), page.retrier()];

  // One request at a time, then the latest: the answers follow the slider in order.
  async function update() {
    clearTimeout(pauseTimer);
    draft = form.prompt.value;
    if (!form.isReady()) return;
    wanted = { ...form.values(), prompt: draft, project: project.value };
    writeAddress();
    if (isBusy) return;
    isBusy = true;
    while (wanted) {
      const request = wanted;
      wanted = null;
      try {
        const isBlank = !request.prompt.trim() && request.trigger === "prompt";
        draw(isBlank ? null : await post("/api/preview", request, { signal: page.signal, changes: false }));
        previewRetrier.succeeded();
      } catch (error) {
        if (error.name === "AbortError") break;
        fail(error);
        previewRetrier.failed(error, update);
      }
    }
    isBusy = false;
  }

  function fail(error) {
    form.showAnswer(null);
    rows.replace(errorBox(error));
    fill(text);
  }

  function draw(data) {
    form.showAnswer(data);
    if (!data) {
      rows.replace(examples());
      return void fill(text);
    }
    rows.draw(data);
    const block = () => [h("h2", "As the agent would see it"), h("pre.block", { tabindex: "0" }, markItems(data))];
    redraw(text, () => fill(text, data.text ? block() : null));
    pointAt(null);
    clearTimeout(announceTimer);
    const summary = data.text ? summarize(data) : `Nothing would be injected: ${data.why}`;
    announceTimer = setTimeout(() => !page.signal.aborted && page.announce(summary), ANNOUNCE_PAUSE);
  }

  function examples() {
    const use = (prompt) => {
      form.prompt.value = prompt;
      form.prompt.focus();
      update();
    };
    const titles = form.sessionTitles().slice(0, 3);
    return empty(
      h("p", "Type a prompt, and see the context that your agent would get with it."),
      titles.length
        ? h(
            "p.try-examples",
            "For example: ",
            titles.map((each) => button(shorten(each, 70), () => use(each))),
          )
        : null,
    );
  }

  // The address has everything but the prompt.
  function writeAddress() {
    const { trigger, budget, session } = form.values();
    const values = {
      project: project.value,
      trigger: trigger === "prompt" ? "" : trigger,
      budget: budget === form.range().usual ? "" : String(budget),
      session,
    };
    page.replace(`/try?${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""))}`);
  }

  // Load the triggers and sessions of the project.
  async function loadChoices() {
    try {
      const data = await load((signal) => get("/api/preview", { project: project.value }, { signal }));
      if (!data || page.signal.aborted) return;
      choicesRetrier.succeeded();
      form.showChoices(data);
      update();
    } catch (error) {
      if (page.signal.aborted) return;
      fail(error);
      choicesRetrier.failed(error, loadChoices);
    }
  }

  const moveBudget = (by) => {
    form.setBudget(form.values().budget + by);
    update();
  };
  // Mark the line of an item in the text.
  const pointAt = (node) => {
    const row = node?.closest?.(".tried") ?? chosen();
    for (const each of text.querySelectorAll("[data-memory]"))
      each.classList.toggle("pointed", each.dataset.memory === row?.dataset.memory);
  };
  const chosen = () => result.querySelector(".tried:focus-within, .tried.chosen");
  const walk = walkable(() => result.querySelectorAll(".tried"), { onChoose: pointAt });
  result.addEventListener("pointerover", (event) => pointAt(event.target));
  result.addEventListener("pointerleave", () => pointAt(null));
  page.keys({
    "Ctrl+Enter": ["Update now", update],
    p: ["Write the prompt", () => form.prompt.focus()],
    Escape: ["Leave the prompt", () => result.focus()],
    "[": ["Smaller budget", () => moveBudget(-LEAP)],
    "]": ["Larger budget", () => moveBudget(LEAP)],
    j: ["Next item", walk.next],
    k: ["Previous item", walk.previous],
    o: ["Open the memory", () => chosen() && page.go(memoryPath(chosen().dataset.memory))],
  });
  page.signal.addEventListener("abort", () => {
    clearTimeout(pauseTimer);
    clearTimeout(announceTimer);
  });
  await loadChoices();
  page.live(() => {
    if (!form.isReady()) loadChoices();
    else if (form.prompt.value.trim() || form.values().trigger !== "prompt") update();
  });
}

// The text, with the line of each item in a span.
function markItems(data) {
  const parts = [];
  let from = 0;
  for (const { memory, line } of data.items) {
    const at = data.text.indexOf(line, from);
    if (at < 0) continue; // changed code stands under its file, in another order
    parts.push(data.text.slice(from, at), h("span", { "data-memory": memory }, line));
    from = at + line.length;
  }
  return [...parts, data.text.slice(from)];
}
