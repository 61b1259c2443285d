// Draw the form of "Try it": project, prompt, trigger, session, budget, and what the budget was spent on.

import { button, fill, h } from "../dom.js";
import { formatAge, formatMilliseconds, formatNumber, formatTokens, nameTrigger, pluralize } from "../format.js";
import { chip, meter } from "../parts.js";

const STEP = 10; // tokens that the slider moves by
const WITH_WORDS = ["prompt", "question"]; // triggers that search for words

export const summarize = (data) =>
  `${pluralize(data.items.length, "item")}, ${formatNumber(data.tokens)} of ${formatTokens(data.budget)}`;

export function createForm(initial, project, { update, updateSoon }) {
  let choices = { triggers: [], sessions: [] };
  let isBudgetSet = Boolean(initial.budget);
  let isReady = false; // whether the choices of the project are loaded
  const prompt = h("textarea#prompt", {
    dir: "auto",
    rows: "3",
    value: initial.prompt,
    spellcheck: "false",
    placeholder: "Why does the login test fail again?",
    on: { input: updateSoon },
  });
  const trigger = h("select#trigger", { on: { change: resetBudget } });
  const session = h("select#session", { on: { change: update } });
  const slider = h("input#budget", { type: "range", step: STEP });
  const output = h("output", { for: "budget" });
  const reset = button("", resetBudget, { class: "quiet", title: "As in the settings" });
  const spent = h("div.try-spent");
  const note = h("p.dim.try-note");
  slider.addEventListener("input", () => {
    setBudget(slider.value);
    update();
  });
  reset.addEventListener("click", () => slider.focus()); // the button hides itself

  function changeProject() {
    isReady = false;
    session.value = initial.session = "";
  }

  const range = () =>
    choices.triggers.find((each) => each.name === trigger.value) ?? { least: 40, usual: 500, most: 2000 };

  function showBudget(value) {
    const { least, usual, most } = range();
    Object.assign(slider, { min: least, max: most });
    slider.value = value;
    const budget = Number(slider.value);
    output.textContent = formatTokens(budget);
    reset.hidden = budget === usual;
    reset.textContent = `Back to ${formatNumber(usual)}`;
    slider.setAttribute("aria-valuetext", formatTokens(budget));
  }

  function setBudget(value) {
    isBudgetSet = true;
    showBudget(value);
  }

  function resetBudget() {
    isBudgetSet = false;
    showBudget(range().usual);
    update();
  }

  function fillOptions(select, options, chosen) {
    fill(
      select,
      options.map(([key, text]) => h("option", { value: key, selected: key === chosen }, text)),
    );
  }

  function showChoices(data) {
    choices = data;
    isReady = true;
    const triggers = data.triggers.map(({ name }) => [name, nameTrigger("one", name)]);
    fillOptions(trigger, triggers, trigger.value || initial.trigger || "prompt");
    const label = (each) => `${each.title || each.id.slice(0, 8)} (${each.host}, ${formatAge(each.last)})`;
    const sessions = data.sessions.map((each) => [each.id, label(each)]);
    fillOptions(session, [["", "a new one"], ...sessions], session.value || initial.session);
    showBudget(isBudgetSet ? Number(initial.budget ?? slider.value) : range().usual);
    for (const each of ["budget", "trigger", "session"]) delete initial[each]; // the form has them now
  }

  // Show what an answer spent and searched for.
  function showAnswer(data) {
    const isCut = data && data.budget < Number(slider.value);
    const label = data && `${summarize(data)}${isCut ? " (what this window has left)" : ""}`;
    fill(spent, data ? meter(data.tokens, data.budget, label) : null);
    fill(note, data ? searched(data) : null);
  }

  const field = (text, control) => h("label.field", h("span", text), control);
  const card = h(
    "form.card",
    { on: { submit: (event) => event.preventDefault() } },
    h("label.field", { for: "prompt" }, h("span", "Prompt")),
    prompt,
    h("div.try-choices", project, field("Trigger", trigger), field("In session", session)),
    note,
  );
  return {
    card,
    budget: h("div.try-budget", h("label", { for: "budget" }, "Budget"), slider, output, reset, spent),
    prompt,
    changeProject,
    showChoices,
    showAnswer,
    setBudget,
    range,
    isReady: () => isReady,
    sessionTitles: () => choices.sessions.map((each) => each.title).filter(Boolean),
    values: () => ({ trigger: trigger.value, budget: Number(slider.value), session: session.value }),
  };
}

function searched({ trigger, terms, build_ms }) {
  if (!WITH_WORDS.includes(trigger))
    return "Without words to search for: what is recent, near and trusted comes first.";
  return terms.length
    ? ["Searched for: ", terms.map((each) => [chip(each), " "]), `in ${formatMilliseconds(build_ms)}`]
    : null;
}
