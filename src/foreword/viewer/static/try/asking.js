// A project, a prompt, a trigger and a budget -> the form that asks, and what it says of the answer.

import { fill, make } from "../dom.js";
import { age, chip, many, meter, triggerIn, number, tokens } from "../parts.js";

const STEP = 10; // tokens that the slider moves by
const WORDED = ["prompt", "question"];

export const summary = (told) => `${many(told.items.length, "item")}, ${number(told.tokens)} of ${tokens(told.budget)}`;

export function controls(asked, project) {
  let choices = { triggers: [], sessions: [] };
  const prompt = make("textarea", {
    id: "prompt",
    dir: "auto",
    rows: "3",
    value: asked.prompt,
    spellcheck: "false",
    placeholder: "Why does the login test fail again?",
  });
  const trigger = make("select", { id: "trigger" });
  const session = make("select", { id: "session" });
  const slider = make("input", { type: "range", id: "budget", step: STEP });
  const output = make("output", { for: "budget" });
  const usual = make("button", { type: "button", class: "quiet", title: "As the settings have it" });
  const spent = make("div", { class: "try-spent" });
  const note = make("p", { class: "dim try-note" });
  let set = Boolean(asked.budget); // somebody moved it
  let offered = false; // what the project has to choose from

  // Sessions of one project are none of another's.
  function otherProject() {
    offered = false;
    session.value = asked.session = "";
  }

  const range = () =>
    choices.triggers.find((each) => each.name === trigger.value) ?? { least: 40, usual: 500, most: 2000 };
  const options = (select, all, given) =>
    fill(
      select,
      all.map(([key, words]) => make("option", { value: key, selected: key === given }, words)),
    );
  const field = (words, control) => make("label", { class: "field" }, make("span", {}, words), control);

  function tell() {
    const value = Number(slider.value);
    output.textContent = tokens(value);
    usual.hidden = value === range().usual;
    usual.textContent = `Back to ${number(range().usual)}`;
    slider.setAttribute("aria-valuetext", tokens(value));
  }

  function reach(value) {
    const { least, usual, most } = range();
    Object.assign(slider, { min: least, max: most });
    slider.value = value ?? usual;
    tell();
  }

  function offer(told) {
    choices = told;
    offered = true;
    const named = (each) => `${each.title || each.id.slice(0, 8)} (${each.host}, ${age(each.last)})`;
    options(
      trigger,
      told.triggers.map((each) => [each.name, triggerIn("one", each.name)]),
      trigger.value || asked.trigger || "prompt",
    );
    options(
      session,
      [["", "a new one"], ...told.sessions.map((each) => [each.id, named(each)])],
      session.value || asked.session,
    );
    reach(set ? Number(asked.budget ?? slider.value) : null);
    for (const each of ["budget", "trigger", "session"]) delete asked[each]; // from now on they are chosen here
  }

  function on({ ask, later }) {
    prompt.addEventListener("input", later);
    trigger.addEventListener("change", () => {
      unset();
      ask();
    });
    session.addEventListener("change", ask);
    slider.addEventListener("input", () => {
      moved();
      ask();
    });
    usual.addEventListener("click", () => {
      unset();
      slider.focus(); // the button hides itself
      ask();
    });
  }

  const moved = () => {
    set = true;
    tell();
  };
  const unset = () => {
    set = false;
    reach(null);
  };
  const card = make(
    "form",
    { class: "card", on: { submit: (event) => event.preventDefault() } },
    make("label", { class: "field", for: "prompt" }, make("span", {}, "Prompt")),
    prompt,
    make("div", { class: "try-choices" }, project, field("Trigger", trigger), field("In session", session)),
    note,
  );
  const budget = make(
    "div",
    { class: "try-budget" },
    make("label", { for: "budget" }, "Budget"),
    slider,
    output,
    usual,
    spent,
  );

  return {
    card,
    budget,
    prompt,
    slider,
    offer,
    otherProject,
    isOffered: () => offered,
    on,
    moved,
    range,
    get choices() {
      return choices;
    },
    said: () => ({
      trigger: trigger.value,
      budget: Number(slider.value),
      session: session.value,
    }),
    meter: (told) =>
      fill(
        spent,
        told
          ? meter(
              told.tokens,
              told.budget,
              [summary(told), told.budget < Number(slider.value) ? " (what this window has left)" : ""].join(""),
            )
          : null,
      ),
    note: (told) => fill(note, told ? lookedFor(told) : null),
  };
}

function lookedFor({ trigger, terms, build_ms }) {
  if (!WORDED.includes(trigger)) return "There are no words to match here: what is recent, near and trusted comes.";
  return terms.length ? ["Looked for: ", terms.map((each) => [chip(each), " "]), `in ${build_ms.toFixed(1)} ms`] : null;
}
