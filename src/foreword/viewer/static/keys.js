// Run what a key does on this page. Two letters in a row (`g n`) go to a page; `?` lists them all.

import { add, make } from "./dom.js";

const PAUSE = 1200; // milliseconds that the second letter may take
const WALKS = /^([jkJK[\]]|(Shift\+)?Arrow\w+)$/;
let everywhere = {};
let here = {};
let first = "";
let timer = 0;

export const on = () => choices.get("keys") !== "off";

export function begin(all) {
  everywhere = all;
  document.addEventListener("keydown", pressed);
}

export function ofPage(some) {
  here = some;
}

export function alsoOfPage(some) {
  here = { ...here, ...some };
}

function pressed(event) {
  if (!event.key || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const name = named(event);
  const whole = first ? `${first} ${name}` : name;
  const found = here[whole] ?? everywhere[whole] ?? (first ? (here[name] ?? everywhere[name]) : undefined);
  clearTimeout(timer);
  first = "";
  if (found) {
    if (typing(event.target) ? !(name === "Escape" || /^(Ctrl|Alt)\+./.test(name)) : !on() && name.length === 1) return;
    if (/(Arrow|Home$|End$)/.test(name) && event.target.matches("input[type=radio], input[type=range]")) return; // its own
    if (name === "Enter" && event.target.closest("a, button, summary, select, input, textarea")) return;
    event.preventDefault();
    if (!event.repeat || WALKS.test(name)) found[1](event); // a key that is held goes on along a list, and does nothing twice
  } else if (!typing(event.target) && on() && begins(name)) {
    first = name;
    timer = setTimeout(() => (first = ""), PAUSE);
  }
}

const begins = (name) => [...Object.keys(everywhere), ...Object.keys(here)].some((each) => each.startsWith(`${name} `));

function named(event) {
  const { key, shiftKey } = event;
  const letter = /^\p{L}$/u.test(key);
  const sign = [...key].length === 1 && !/[\p{L}\p{N}\s]/u.test(key);
  // Many keyboards write [ with Option or AltGr, which some systems tell as Ctrl and Alt together.
  const written = sign && (event.altKey || event.getModifierState("AltGraph"));
  const mods = [
    (event.ctrlKey || event.metaKey) && !written ? "Ctrl+" : "",
    event.altKey && !written ? "Alt+" : "",
    shiftKey && key.startsWith("Arrow") ? "Shift+" : "",
  ];
  return mods.join("") + (letter ? (shiftKey ? key.toUpperCase() : key.toLowerCase()) : key); // whatever Caps Lock says
}

function typing(node) {
  if (node.isContentEditable || node.tagName === "TEXTAREA" || node.tagName === "SELECT") return true;
  return node.tagName === "INPUT" && !["checkbox", "radio", "range", "button", "submit"].includes(node.type);
}

export function help() {
  const dialog = make("dialog", { class: "dialog", "aria-labelledby": "keys-title" });
  const choice = make("input", { type: "checkbox", checked: on(), id: "keys-on" });
  choice.addEventListener("change", () => choices.keep("keys", choice.checked ? "on" : "off"));
  add(dialog, [
    make("h2", { id: "keys-title", tabindex: "-1", autofocus: true }, "Keys"), // so that one reads from the top
    table("On this page", here),
    table("Everywhere", Object.fromEntries(Object.entries(everywhere).filter(([name]) => !here[name]))),
    make("p", {}, choice, " ", make("label", { for: "keys-on" }, "Single-letter shortcuts")),
    make("p", { class: "actions" }, make("button", { type: "button", on: { click: () => dialog.close() } }, "Close")),
  ]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function table(title, keys) {
  const labels = Map.groupBy(Object.entries(keys), ([, [label]]) => label);
  const rows = [...labels].map(([label, some]) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        some.map(([name], at) => [
          at ? " or " : "",
          make(
            "span",
            {},
            name.split(" ").map((each) => make("kbd", {}, shown(each))),
          ),
        ]),
      ),
      make("td", {}, label),
    ),
  );
  return rows.length ? make("table", { class: "keys" }, make("caption", {}, title), make("tbody", {}, rows)) : null;
}

const SIGNS = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const shown = (name) =>
  /^[A-Z]$/.test(name)
    ? `Shift+${name.toLowerCase()}`
    : name
        .split("+")
        .map((each) => SIGNS[each] ?? each)
        .join("+");
