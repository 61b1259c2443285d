// A prompt, a project and a budget -> what an agent would be given, and what was left out just below the line, and why.

import { get, latest, post } from "./ask.js";
import { fill, make } from "./dom.js";
import { anew, coded, empty, known, projects, trouble, walkable } from "./parts.js";
import { controls, summary } from "./try/asking.js";
import { Rows } from "./try/rows.js";

export const title = "Try it";

const PAUSE = 220; // milliseconds without a key before a prompt is asked
const QUIET = 500; // ... without a new answer before one is said aloud
const LEAP = 50; // tokens that [ and ] move the budget by
const NOTHING = "Nothing is remembered yet: no project has been seen. Work with an agent, or run `foreword init`.";
let draft = ""; // the prompt stays out of the address and off the disk; here it lasts while the viewer is open

// The prompt that the page begins with when it is shown next.
export function bring(prompt) {
  draft = prompt;
}

export async function show(root, page) {
  const asked = { ...Object.fromEntries(page.query), prompt: draft };
  const other = () => {
    form.otherProject();
    choose();
  };
  const choice = await projects(page, { all: "", change: other });
  const chosen = choice.querySelector("select");
  if (!chosen.options.length) {
    root.append(make("h1", {}, title), empty(coded(NOTHING)));
    return page.live(async () => {
      const some = await known(page).catch(() => []); // whoever does not answer is asked again
      if (some.length) page.go(location.pathname + location.search);
    });
  }
  const form = controls(asked, choice);
  const result = make("section", { class: "try-result", "aria-label": "What would be injected" });
  const text = make("section", { class: "try-text", "aria-label": "As the agent would see it" });
  const rows = new Rows(result);
  const head = make(
    "div",
    { class: "head" },
    make("h1", {}, title),
    make("p", { class: "dim" }, "Nothing that you try is kept or counted."),
  );
  root.append(head, form.card, form.budget, make("div", { class: "try-halves" }, result, text));

  let wanted = null; // the question that comes next
  let busy = false;
  let pause = 0;
  let quiet = 0;
  const offering = latest();
  const [choosing, asking] = [page.patient(), page.patient()];

  // One question at a time, then the latest: what is drawn follows the slider, and never an older place of it.
  async function ask() {
    clearTimeout(pause);
    draft = form.prompt.value;
    if (!form.isOffered()) return; // it is asked when there is something to choose from
    wanted = { ...form.said(), prompt: draft, project: chosen.value };
    address();
    if (busy) return;
    busy = true;
    while (wanted) {
      const now = wanted;
      wanted = null;
      try {
        if (!now.prompt.trim() && now.trigger === "prompt") draw(null);
        else draw(await post("/api/preview", now, { signal: page.signal, changes: false }));
        asking.answered();
      } catch (error) {
        if (error.name === "AbortError") break;
        fail(error);
        asking.failed(error, ask);
      }
    }
    busy = false;
  }

  function fail(error) {
    form.meter();
    rows.clear(trouble(error));
    fill(text);
  }

  function draw(told) {
    form.meter(told);
    form.note(told);
    if (!told) {
      rows.clear(begin());
      return void fill(text);
    }
    rows.draw(told);
    const block = () => [
      make("h2", {}, "As the agent would see it"),
      make("pre", { class: "block", tabindex: "0" }, spoken(told)),
    ];
    anew(text, () => fill(text, told.text ? block() : null));
    point(null); // where the item stands that was chosen
    clearTimeout(quiet);
    const said = told.text ? summary(told) : `Nothing would be said: ${told.why}`;
    quiet = setTimeout(() => !page.signal.aborted && page.say(said), QUIET);
  }

  function begin() {
    const titles = form.choices.sessions
      .map((each) => each.title)
      .filter(Boolean)
      .slice(0, 3);
    const use = (words) => {
      form.prompt.value = words;
      form.prompt.focus();
      ask();
    };
    const examples = titles.map((each) =>
      make(
        "button",
        { type: "button", on: { click: () => use(each) } },
        each.length > 70 ? `${each.slice(0, 69)}…` : each,
      ),
    );
    return empty(
      make("p", {}, "Type what you would ask your agent, and see what it would be told first."),
      examples.length ? make("p", { class: "try-examples" }, "For example: ", examples) : null,
    );
  }

  // Everything but the prompt is in the address.
  function address() {
    const { trigger, budget, session } = form.said();
    const usual = form.range().usual;
    const said = {
      project: chosen.value,
      trigger: trigger === "prompt" ? "" : trigger,
      budget: budget === usual ? "" : budget,
      session,
    };
    page.replace(
      `/try?${new URLSearchParams(
        Object.entries(said)
          .filter(([, given]) => given !== "")
          .map(([name, given]) => [name, String(given)]),
      )}`,
    );
  }

  // What can be chosen in the project; of two that were chosen in a row the latter counts.
  async function choose() {
    try {
      const told = await offering((signal) => get("/api/preview", { project: chosen.value }, { signal }));
      if (!told || page.signal.aborted) return;
      choosing.answered();
      form.offer(told);
      ask();
    } catch (error) {
      if (page.signal.aborted) return;
      fail(error);
      choosing.failed(error, choose);
    }
  }

  const move = (by) => {
    form.slider.value = Number(form.slider.value) + by;
    form.moved();
    ask();
  };
  const point = (node) => {
    const row = node?.closest?.(".tried") ?? here();
    for (const each of text.querySelectorAll("[data-memory]"))
      each.classList.toggle("pointed", each.dataset.memory === row?.dataset.memory);
  };
  const walk = walkable(() => result.querySelectorAll(".tried"), { onto: point });
  result.addEventListener("pointerover", (event) => point(event.target));
  result.addEventListener("pointerleave", () => point(null));
  const here = () => result.querySelector(".tried:focus-within, .tried.chosen");
  const later = () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE);
  };
  form.on({ ask, later });
  page.keys({
    "Ctrl+Enter": ["Ask now", ask],
    p: ["Write the prompt", () => form.prompt.focus()],
    Escape: ["Leave the prompt", () => result.focus()],
    "[": ["Smaller budget", () => move(-LEAP)],
    "]": ["Larger budget", () => move(LEAP)],
    j: ["Next item", walk.next],
    k: ["Previous item", walk.previous],
    o: ["Open the memory", () => here() && page.go(`/memories/${encodeURIComponent(here().dataset.memory)}`)],
  });
  page.signal.addEventListener("abort", () => {
    clearTimeout(pause);
    clearTimeout(quiet);
  });
  result.tabIndex = -1;
  await choose();
  page.live(() => {
    if (!form.isOffered()) choose();
    else if (form.prompt.value.trim() || form.said().trigger !== "prompt") ask();
  });
}

// The text, each item's line in a span of its own: who looks at an item sees where it stands.
function spoken(told) {
  const parts = [];
  let from = 0;
  for (const { memory, line } of told.items) {
    const at = told.text.indexOf(line, from);
    if (at < 0) continue; // changed code stands under its file, in another order
    parts.push(told.text.slice(from, at), make("span", { "data-memory": memory }, line));
    from = at + line.length;
  }
  return [...parts, told.text.slice(from)];
}
