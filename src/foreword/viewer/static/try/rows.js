// What is answered -> a row for each memory, which stays itself while it crosses the line.

import { fill, make } from "../dom.js";
import { anew, item, many, number, reorder, SCORED, tokens } from "../parts.js";

const NO_ROOM = ["room", "cap", "group", "limit", "off", "host"];

export class Rows {
  constructor(root) {
    this.root = root;
    this.rows = new Map();
  }

  clear(...instead) {
    this.rows.clear();
    fill(this.root, ...instead);
  }

  draw(told) {
    const before = new Map(
      [...this.rows].map(([id, row]) => [id, { top: row.node.getBoundingClientRect().top, is: row.is }]),
    );
    const wanted = this.nodes(told);
    const held = this.root.contains(document.activeElement) ? document.activeElement : null;
    reorder(this.root, wanted);
    if (held && held !== document.activeElement) (held.isConnected ? held : this.root).focus({ preventScroll: true }); // a row that moves loses it
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.glide(before);
  }

  nodes(told) {
    const known = this.rows;
    this.rows = new Map();
    const row = (entry, is) => {
      const found = known.get(entry.memory) ?? {
        node: make("div", { class: "tried", tabindex: "-1", "data-memory": entry.memory }),
        as: "",
      };
      const as = JSON.stringify([entry, is]);
      if (found.as !== as) kept(found.node, () => fill(found.node, drawn(entry, is)));
      found.node.classList.toggle("left", is === "left");
      this.rows.set(entry.memory, { node: found.node, as, is });
      return found.node;
    };
    const silent = told.text ? null : silence(told);
    const several = told.layers.length > 1;
    const parts = told.layers.map((layer) => {
      const items = told.items.filter((each) => each.layer === layer.name);
      const left = told.rejected.filter((each) => each.layer === layer.name);
      const had = layer.skipped || `${number(layer.spent)} of ${tokens(layer.cap)}`;
      return [
        several
          ? make(
              "div",
              { class: "try-layer" },
              make("h2", {}, layer.name),
              make("p", { class: "figures" }, make("span", {}, had), make("span", {}, `at most ${layer.limit}`)),
            )
          : null,
        items.map((each) => row(each, "in")),
        groups(left, told, layer).map(([words, some]) => [line(words), some.map((each) => row(each, "left"))]),
      ];
    });
    const problems = told.problems.map((each) => make("p", { class: "warn" }, each));
    const whole =
      told.text && !told.rejected.some((each) => NO_ROOM.includes(each.reason)) && !several
        ? line(`The budget holds all of it: ${tokens(told.budget - told.tokens)} to spare`)
        : null;
    const scored = told.items.length ? make("p", { class: "dim how" }, SCORED) : null;
    return [
      problems,
      silent,
      scored,
      parts.map((each, at) => (at || several ? each : [each[0], each[1], whole, each[2]])),
    ]
      .flat(Infinity)
      .filter(Boolean);
  }

  // From where it stood to where it stands; what crossed the line is lit for a moment.
  glide(before) {
    for (const [id, row] of this.rows) {
      const was = before.get(id);
      if (!was) {
        row.node.animate([{ opacity: 0 }, { opacity: 1 }], 160);
        continue;
      }
      const by = was.top - row.node.getBoundingClientRect().top;
      if (by)
        row.node.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], {
          duration: 180,
          easing: "ease-out",
        });
      if (was.is !== row.is)
        row.node.animate(
          [
            { backgroundColor: getComputedStyle(row.node).getPropertyValue("--mark") },
            { backgroundColor: "transparent" },
          ],
          900,
        );
    }
  }
}

// A link that somebody stands on is still stood on when its row is drawn anew: ages, and so scores, change all the time.
const kept = (node, draw) => anew(node, draw) || node.focus({ preventScroll: true });

function drawn(entry, is) {
  const says =
    is === "left"
      ? make("p", { class: "try-why" }, make("strong", {}, "Left out: "), entry.says)
      : entry.says
        ? make("p", { class: "try-why" }, entry.says)
        : null;
  return item(entry, { more: [says, is === "left" ? make("pre", { class: "try-said" }, entry.line) : null] });
}

function groups(left, told, layer) {
  const kind = (each) => (NO_ROOM.includes(each.reason) ? 0 : each.reason === "threshold" ? 2 : 1);
  const words = [
    left.some((each) => !["limit", "off"].includes(each.reason))
      ? `The budget ends here: ${number(told.tokens)} of ${tokens(told.budget)}`
      : `Here it ends: at most ${many(layer.limit, "item")}`,
    "Not said again, or not by itself",
    `Below the threshold: ${layer.least.toFixed(3)} is needed`,
  ];
  return words.map((each, at) => [each, left.filter((one) => kind(one) === at)]).filter(([, some]) => some.length);
}

const line = (words) => make("p", { class: "try-line" }, make("span", {}, words));

function silence({ why }) {
  return make("div", { class: "empty" }, make("p", {}, make("strong", {}, "Nothing would be said"), `: ${why}.`));
}
