// Figures of some days -> a plot that is seen, walked by keys, told in a sentence and read as a table.

import { fill, make } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 54;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
const HEIGHT = 168; // pixels around and of a plot
const TICKS = 4; // at most; more would be read by nobody
const UNITS = [
  [1024 ** 3, "GB"],
  [1024 ** 2, "MB"],
  [1024, "KB"],
  [1, "bytes"],
];
let made = 0; // patterns are found by their ids, which are of the whole document

const few = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
export const formats = {
  count: { axis: (n) => few.format(n), told: (n) => n.toLocaleString(), step: 1 },
  ms: { axis: (n) => `${few.format(n)} ms`, told: (n) => `${n.toFixed(n < 10 ? 1 : 0)} ms`, step: 0 },
  bytes: { axis: sized, told: sized, step: 1, unit: (most) => UNITS.find(([each]) => most >= each)?.[0] ?? 1 },
};

export function sized(n) {
  const [unit, name] = UNITS.find(([each]) => n >= each) ?? [1, "bytes"];
  return `${(n / unit).toFixed(n >= unit * 10 || unit === 1 ? 0 : 1).replace(".0", "")} ${name}`;
}

// A day by its name, which is local already: 2026-11-16.
const dated = (name, more) =>
  new Date(`${name}T12:00`).toLocaleDateString(undefined, { day: "numeric", month: "short", ...more });

// A figure with one plot; `show({days, series: [{name, values}], format, says})` draws it, now and whenever it changes.
// `stacked` makes bars, one on the other; else each series is a line, the first one over its ground.
export function plot(title, { stacked = false, hint = "" } = {}) {
  const key = `plot-${++made}`;
  const area = make("div", {
    class: "plot-area",
    tabindex: "0",
    role: "group",
    "aria-label": `${title}, day by day: arrow keys`,
  });
  const legend = make("ul", { class: "legend" });
  const told = make("p", { class: "plot-told" });
  const rows = make("table", {});
  const table = make(
    "details",
    {},
    make("summary", { "aria-label": `${title} as a table` }, "as a table"),
    wide(`${title}, as a table`, rows),
  );
  const node = make(
    "figure",
    { class: "plot" },
    make("figcaption", {}, make("h3", {}, title), hint ? make("p", { class: "dim" }, hint) : null, legend),
    area,
    told,
    table,
  );
  let drawn = null;
  let at = -1;
  let mark = null;
  let width = 0;

  function pick(day) {
    at = drawn && day !== null ? Math.min(drawn.days.length - 1, Math.max(0, day)) : -1;
    mark?.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    if (at >= 0) mark?.setAttribute("x", drawn.left(at));
    const figures = at < 0 ? [] : drawn.series.map((each) => `${worded(drawn.format, each.values[at])} ${each.name}`);
    told.ariaLive = at < 0 ? "off" : "polite"; // what was asked for is said, not every plot that is drawn
    told.textContent =
      at < 0 ? (drawn?.says ?? "") : `${dated(drawn.days[at], { weekday: "short" })}: ${figures.join(", ")}`;
  }

  function draw() {
    if (!drawn || !width) return;
    const { days, series, format } = drawn;
    const across = Math.max(1, width - LEFT - RIGHT);
    const step = across / days.length;
    const high = HEIGHT - TOP - BOTTOM;
    const highest = days.map((_, day) =>
      series.map((each) => each.values[day] ?? 0).reduce((a, b) => (stacked ? a + b : Math.max(a, b)), 0),
    );
    const marks = ticks(Math.max(...highest), format);
    const top = marks.at(-1);
    const x = (day) => LEFT + step * day;
    const y = (n) => TOP + high * (1 - n / top);
    Object.assign(drawn, { left: x, step });
    mark = shape("rect", { class: "plot-mark", y: TOP, width: step, height: high, visibility: "hidden" });
    const every = Math.ceil(days.length / Math.max(2, Math.min(6, Math.floor(across / 80)))); // the last day is always named
    area.replaceChildren(
      shape(
        "svg",
        {
          viewBox: `0 0 ${width} ${HEIGHT}`,
          width,
          height: HEIGHT,
          role: "img",
          "aria-label": `${title}. ${drawn.says}`,
        },
        shape(
          "defs",
          {},
          series.map((_, place) => pattern(`${key}-${place}`, place)),
        ),
        marks.map((n) => [
          shape("line", { class: "plot-line", x1: LEFT, x2: width - RIGHT, y1: y(n), y2: y(n) }),
          shape("text", { class: "plot-text", x: LEFT - 6, y: y(n) + 4, "text-anchor": "end" }, format.axis(n)),
        ]),
        days.map((name, day) =>
          (days.length - 1 - day) % every
            ? null
            : shape(
                "text",
                {
                  class: "plot-text",
                  x: Math.min(x(day) + step / 2, width - 22),
                  y: HEIGHT - 6,
                  "text-anchor": "middle",
                },
                dated(name),
              ),
        ),
        mark,
        stacked
          ? bars(drawn, { x, y, step, key })
          : series.map((each, place) =>
              line(each.values, place, { x: (day) => x(day) + step / 2, y, ground: place === 0 }),
            ),
      ),
    );
    pick(at < 0 ? null : at);
  }

  const day = (event) =>
    drawn ? Math.floor((event.clientX - area.getBoundingClientRect().left - LEFT) / drawn.step) : null;
  const steps = {
    ArrowLeft: () => (at < 0 ? Infinity : at - 1),
    ArrowRight: () => at + 1,
    Home: () => 0,
    End: () => Infinity,
    Escape: () => null,
  };
  area.addEventListener("pointermove", (event) => pick(day(event)));
  area.addEventListener("pointerleave", () => pick(null));
  area.addEventListener("blur", () => pick(null));
  area.addEventListener("keydown", (event) => {
    if (!drawn || !steps[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pick(steps[event.key]());
  });
  new ResizeObserver(([seen]) => {
    const now = Math.floor(seen.contentRect.width);
    if (now === width) return;
    width = now;
    draw();
  }).observe(area);
  table.addEventListener("toggle", list);

  function list() {
    if (!drawn || !table.open) return; // most tables are never opened
    const { days, series, format } = drawn;
    const head = ["day", ...series.map((each) => each.name)].map((name, place) =>
      make("th", { scope: "col", class: place ? "n" : null }, name),
    );
    const body = days.map((name, day) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, name),
        series.map((each) => make("td", { class: "n" }, worded(format, each.values[day]))),
      ),
    );
    fill(
      rows,
      make("caption", { class: "unseen" }, title),
      make("thead", {}, make("tr", {}, head)),
      make("tbody", {}, body),
    );
  }

  function show({ days, series, format = formats.count, says }) {
    const none = !series.some((each) => each.values.some((n) => n));
    drawn = none ? null : { days, series, format, says };
    area.hidden = table.hidden = legend.hidden = none;
    fill(
      legend,
      series.length > 1
        ? series.map((each, place) => make("li", {}, swatch(`${key}-${place}`, place, stacked), each.name))
        : null,
    );
    if (none) told.textContent = "Nothing in these days.";
    list();
    draw();
  }
  return { node, show };
}

// What may be broader than a phone moves by itself.
export const wide = (label, child) =>
  make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, child);

// A line as high as a word, for the eye alone: what it says stands beside it.
export function spark(values, { width = 96, height = 22 } = {}) {
  const top = Math.max(...values, 1);
  const step = width / Math.max(1, values.length - 1);
  return shape(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    line(values, 0, {
      x: (day) => day * step,
      y: (n) => height - 1 - (height - 2) * (n / top),
      ground: true,
      foot: height,
    }),
  );
}

// From 0 to what is the least above all of them, in steps of 1, 2 or 5.
function ticks(most, format = formats.count) {
  const unit = format.unit?.(most) ?? 1;
  const rough = Math.max(most, 1e-9) / unit / (TICKS - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(format.step, [1, 2, 5, 10].find((each) => each * power >= rough) * power) * unit;
  return Array.from({ length: Math.max(1, Math.ceil(most / step - 1e-9)) + 1 }, (_, n) => n * step);
}

const worded = (format, n) => (n === null || n === undefined ? "–" : format.told(n));

function bars({ days, series }, { x, y, step, key }) {
  const gap = Math.min(3, step * 0.2);
  return days.map((_, day) => {
    let below = 0;
    return series.map((each, place) => {
      const n = each.values[day] ?? 0;
      const from = below;
      below += n;
      return n
        ? shape("rect", {
            class: `plot-${place}`,
            fill: `url(#${key}-${place})`,
            x: x(day) + gap / 2,
            width: step - gap,
            y: y(below),
            height: y(from) - y(below),
          })
        : null;
    });
  });
}

// A day without a figure is a gap; a day alone is a dot.
function line(values, place, { x, y, ground, foot = y(0) }) {
  const runs = [];
  values.forEach((n, day) => {
    if (n === null || n === undefined) return;
    if (!day || (values[day - 1] ?? null) === null) runs.push([]);
    runs.at(-1).push([x(day), y(n)]);
  });
  return runs.map((run) => {
    const path = run.map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" L");
    return [
      ground && run.length > 1
        ? shape("path", {
            class: "plot-ground",
            d: `M${run[0][0].toFixed(1)},${foot} L${path} L${run.at(-1)[0].toFixed(1)},${foot}Z`,
          })
        : null,
      run.length > 1
        ? stroke(`M${path}`, place)
        : shape("circle", { class: `plot-dot plot-${place}`, cx: run[0][0], cy: run[0][1], r: 2.5 }),
    ];
  });
}

const stroke = (d, place) =>
  shape("path", { class: `plot-path plot-${place}`, d, "stroke-dasharray": place ? "5 3" : "none" });

// Full, slanted, hollow, dotted: told apart without their colours.
function pattern(id, place) {
  const ground = shape("rect", { width: 6, height: 6, class: place ? "fill-paper" : "fill-one" });
  const slanted = shape("path", { d: "M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5", class: "stroke-two" });
  const dot = shape("circle", { cx: 3, cy: 3, r: 1.4, class: "fill-four" });
  return shape(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    ground,
    [null, slanted, null, dot][place],
  );
}

function swatch(id, place, stacked) {
  const full = { x: 1, y: 1, width: 12, height: 10, fill: `url(#${id})`, class: `plot-${place}` };
  return shape(
    "svg",
    { width: stacked ? 14 : 20, height: 12, "aria-hidden": "true" },
    stacked ? shape("rect", full) : stroke("M0,6 L20,6", place),
  );
}

function shape(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, given] of Object.entries(attributes)) node.setAttribute(name, given);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
  return node;
}
