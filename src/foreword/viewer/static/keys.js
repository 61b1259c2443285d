// Run what a key does on this page. Two letters in a row (`g n`) go to a page; `?` lists them all.

import { append, button, h } from "./dom.js";

const PAUSE = 1200; // milliseconds that the second letter may take
const REPEATABLE = /^([jkJK[\]]|(Shift\+)?Arrow\w+)$/; // keys that may be held
let globalKeys = {};
let pageKeys = {};
let prefix = "";
let timer = 0;

const areLettersOn = () => choices.get("keys") !== "off";

export function start(all) {
  globalKeys = all;
  document.addEventListener("keydown", handle);
}

export function setPageKeys(keys) {
  pageKeys = keys;
}

export function addPageKeys(keys) {
  pageKeys = { ...pageKeys, ...keys };
}

function handle(event) {
  if (!event.key || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
  const name = nameOf(event);
  const sequence = prefix ? `${prefix} ${name}` : name;
  const action = find(sequence) ?? (prefix ? find(name) : undefined);
  clearTimeout(timer);
  prefix = "";
  if (action) {
    if (
      isTyping(event.target)
        ? !(name === "Escape" || /^(Ctrl|Alt)\+./.test(name))
        : !areLettersOn() && name.length === 1
    )
      return;
    if (/(Arrow|Home$|End$)/.test(name) && event.target.matches("input[type=radio], input[type=range]")) return; // its own
    if (name === "Enter" && event.target.closest("a, button, summary, select, input, textarea")) return;
    event.preventDefault();
    if (!event.repeat || REPEATABLE.test(name)) action[1](event);
  } else if (!isTyping(event.target) && areLettersOn() && isPrefix(name)) {
    prefix = name;
    timer = setTimeout(() => (prefix = ""), PAUSE);
  }
}

const find = (name) => pageKeys[name] ?? globalKeys[name];

const isPrefix = (name) => Object.keys({ ...globalKeys, ...pageKeys }).some((each) => each.startsWith(`${name} `));

function nameOf(event) {
  const { key, shiftKey } = event;
  const isLetter = /^\p{L}$/u.test(key);
  const isSign = [...key].length === 1 && !/[\p{L}\p{N}\s]/u.test(key);
  // Many keyboards write [ with Option or AltGr, which some systems report as Ctrl and Alt together.
  const isWritten = isSign && (event.altKey || event.getModifierState("AltGraph"));
  const modifiers = [
    (event.ctrlKey || event.metaKey) && !isWritten ? "Ctrl+" : "",
    event.altKey && !isWritten ? "Alt+" : "",
    shiftKey && key.startsWith("Arrow") ? "Shift+" : "",
  ];
  const lettered = shiftKey ? key.toUpperCase() : key.toLowerCase(); // whatever Caps Lock says
  return modifiers.join("") + (isLetter ? lettered : key);
}

function isTyping(node) {
  if (node.isContentEditable || node.tagName === "TEXTAREA" || node.tagName === "SELECT") return true;
  return node.tagName === "INPUT" && !["checkbox", "radio", "range", "button", "submit"].includes(node.type);
}

export function showHelp() {
  const dialog = h("dialog.dialog", { "aria-labelledby": "keys-title" });
  const choice = h("input#keys-on", { type: "checkbox", checked: areLettersOn() });
  choice.addEventListener("change", () => choices.keep("keys", choice.checked ? "on" : "off"));
  append(dialog, [
    h("h2#keys-title", { tabindex: "-1", autofocus: true }, "Keys"), // so that one reads from the top
    table("On this page", pageKeys),
    table("Everywhere", Object.fromEntries(Object.entries(globalKeys).filter(([name]) => !pageKeys[name]))),
    h("p", choice, " ", h("label", { for: "keys-on" }, "Single-letter shortcuts")),
    h(
      "p.actions",
      button("Close", () => dialog.close()),
    ),
  ]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function table(title, keys) {
  const labels = Map.groupBy(Object.entries(keys), ([, [label]]) => label);
  const sequence = ([name], index) => [
    index ? " or " : "",
    h(
      "span",
      name.split(" ").map((key) => h("kbd", print(key))),
    ),
  ];
  const rows = [...labels].map(([label, names]) =>
    h("tr", h("th", { scope: "row" }, names.map(sequence)), h("td", label)),
  );
  return rows.length ? h("table.keys", h("caption", title), h("tbody", rows)) : null;
}

const SIGNS = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const print = (name) =>
  /^[A-Z]$/.test(name)
    ? `Shift+${name.toLowerCase()}`
    : name
        .split("+")
        .map((each) => SIGNS[each] ?? each)
        .join("+");
