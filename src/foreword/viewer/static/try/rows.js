// Draw a row for each memory of an answer, injected or left out. A row keeps its element while it crosses the line.

import { drawList, fill, h } from "../dom.js";
import { formatNumber, formatTokens, pluralize } from "../format.js";
import { empty, item, SCORE_HELP } from "../parts.js";

const NO_ROOM = ["room", "limit"]; // reasons that a larger budget or limit removes

export class Rows {
  constructor(root) {
    this.root = root;
  }

  replace(...children) {
    fill(this.root, ...children);
  }

  draw(data) {
    const rows = () => [...this.root.querySelectorAll(".tried")];
    const places = new Map(rows().map((node) => [node, [node.getBoundingClientRect().top, isLeft(node)]]));
    drawList(this.root, entriesOf(data), {
      key: ({ key }) => key,
      data: ({ item: entry, left }) => [entry, left],
      create: ({ item: entry, node }) => node ?? h("div.tried", { tabindex: "-1", "data-memory": entry.memory }),
      draw: ({ item: entry, left }, node) => {
        if (!entry) return [...node.childNodes];
        node.classList.toggle("left", left);
        return row(entry, left);
      },
    });
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const node of rows()) animate(node, places.get(node));
  }
}

const isLeft = (node) => node.classList.contains("left");

// Move a row from its old place; light up one that crossed the line.
function animate(node, [top, wasLeft] = []) {
  if (top === undefined) return node.animate([{ opacity: 0 }, { opacity: 1 }], 160);
  const by = top - node.getBoundingClientRect().top;
  const options = { duration: 180, easing: "ease-out" };
  if (by) node.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], options);
  const mark = getComputedStyle(node).getPropertyValue("--mark");
  if (wasLeft !== isLeft(node)) node.animate([{ backgroundColor: mark }, { backgroundColor: "transparent" }], 900);
}

// The rows and the lines between them, in order.
function entriesOf(data) {
  const { layers, items, rejected, problems, text, budget, tokens } = data;
  const hasLayers = layers.length > 1;
  const rowsOf = (list, left) => list.map((each) => ({ key: each.memory, item: each, left }));
  const isWhole = text && !hasLayers && !rejected.some((each) => NO_ROOM.includes(each.reason));
  const entries = problems.map((each) => note(h("p.warn", each)));
  if (!text) entries.push(note(empty(h("p", h("strong", "Nothing would be injected"), `: ${data.why}.`))));
  if (items.length) entries.push(note(h("p.dim.how", SCORE_HELP)));
  for (const layer of layers) {
    const inLayer = (list) => list.filter((each) => each.layer === layer.name);
    if (hasLayers) entries.push(note(layerHead(layer)));
    entries.push(...rowsOf(inLayer(items), false));
    if (isWhole) entries.push(line(`The budget holds all of it: ${formatTokens(budget - tokens)} to spare`));
    for (const [label, list] of groups(inLayer(rejected), data, layer)) {
      entries.push(line(label), ...rowsOf(list, true));
    }
  }
  return entries;
}

const note = (node) => ({ key: node.textContent, node });
const line = (text) => note(h("p.try-line", h("span", text)));

function layerHead({ name, skipped, spent, cap, limit }) {
  const cost = skipped || `${formatNumber(spent)} of ${formatTokens(cap)}`;
  return h("div.try-layer", h("h2", name), h("p.figures", h("span", cost), h("span", `at most ${limit}`)));
}

// What was left out of a layer, by reason.
function groups(rejected, { tokens, budget, layers }, layer) {
  const room =
    layers.length > 1
      ? `No more room here: ${formatNumber(layer.spent)} of ${formatTokens(layer.cap)}, at most ${pluralize(layer.limit, "item")}`
      : `The budget ends here: ${formatNumber(tokens)} of ${formatTokens(budget)}`;
  const labels = [
    rejected.some((each) => each.reason === "room") ? room : `At most ${pluralize(layer.limit, "item")}`,
    "Not repeated, or not about this prompt",
    `Below the threshold: ${layer.least.toFixed(3)} is needed`,
  ];
  const groupOf = ({ reason }) => (NO_ROOM.includes(reason) ? 0 : reason === "threshold" ? 2 : 1);
  return labels
    .map((label, index) => [label, rejected.filter((each) => groupOf(each) === index)])
    .filter(([, list]) => list.length);
}

function row(entry, left) {
  const why = entry.says ? h("p.try-why", left ? h("strong", "Left out: ") : null, entry.says) : null;
  return item(entry, { more: [why, left ? h("pre.try-text-line", entry.line) : null] });
}
