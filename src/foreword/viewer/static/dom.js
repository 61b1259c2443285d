// Create elements, and draw them again without losing focus, folds or scroll. No other module creates elements: text stays text.

const PROPERTIES = new Set(["hidden", "disabled", "checked", "value", "selected", "open", "indeterminate"]);

// `h("p.dim#note", { title: "…" }, "text", node, [more])`; attributes may be left out.
export function h(selector, ...rest) {
  const [tag, ...names] = selector.split(/(?=[.#])/);
  const node = document.createElement(tag);
  for (const name of names) {
    if (name[0] === "#") node.id = name.slice(1);
    else node.classList.add(name.slice(1));
  }
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || (value === false && !PROPERTIES.has(name))) continue;
    if (name === "on") for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    else if (PROPERTIES.has(name)) node[name] = value;
    else setAttribute(node, name, value === true ? "" : String(value));
  }
  return append(node, rest);
}

export const button = (text, click, attributes = {}) =>
  h("button", { type: "button", ...attributes, on: { click } }, text);

export function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// A memory may hold any text: refuse links to other sites (browsers ignore tabs and newlines in them) and attributes that
// are scripts.
function setAttribute(node, name, text) {
  if (/^(on|style$|src|srcdoc$|form)/i.test(name)) throw new Error(`no ${name} here`);
  if (name === "href" && !/^[/#][^/\\\t\r\n]|^[/#]$/.test(text)) throw new Error("links stay in the viewer");
  node.setAttribute(name, text);
}

export function setCurrent(node, value) {
  if (value) node.setAttribute("aria-current", value);
  else node.removeAttribute("aria-current");
}

// The link that a click opens in this tab, or null.
export function clickedLink(event) {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const link = isPlain && !event.defaultPrevented ? event.target.closest("a[href]") : null;
  return link?.origin === location.origin && link.getAttribute("href")[0] !== "#" ? link : null;
}

// -- drawing again ----------------------------------------------------------------------------------------------------

// Draw one child for each entry. An entry with a known key keeps its element; `draw` fills it again when its data changed.
export function drawList(list, entries, { key, create, draw, data = (entry) => entry }) {
  const known = new Map([...list.children].map((node) => [node.dataset.key, node]));
  const nodes = entries.map((entry) => {
    const id = String(key(entry));
    const node = known.get(id) ?? create(entry);
    node.dataset.key = id;
    if (draw) renew(node, data(entry), () => draw(entry, node));
    return node;
  });
  reorder(list, nodes);
  return nodes;
}

// Move children only where they must: moving a node takes the focus from it, and loses a click between press and release.
export function reorder(list, nodes) {
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const wanted = new Set(nodes);
  for (const child of [...list.children]) if (!wanted.has(child)) child.remove();
  let next = list.firstElementChild;
  for (const child of nodes) {
    if (child === next) next = next.nextElementSibling;
    else list.insertBefore(child, next);
  }
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

// Draw a node again where its data changed.
export function renew(node, data, draw) {
  const drawn = JSON.stringify(data);
  if (node.drawn === drawn) return;
  node.drawn = drawn;
  if (!redraw(node, () => fill(node, draw(data)))) node.focus({ preventScroll: true });
}

// Make `renew` draw a node the next time, whatever its data.
export function invalidate(node) {
  node.drawn = "";
}

// Draw a node again and keep focus, folds and choices in it; return whether the focus could be kept.
export function redraw(node, draw) {
  const active = document.activeElement;
  const before = controlKeys(node);
  const focused = active !== node && node.contains(active) ? before.get(active) : "";
  const old = new Map([...before].map(([control, key]) => [key, control]));
  draw();
  for (const [control, key] of controlKeys(node)) {
    const previous = old.get(key);
    if (previous && previous !== control && control.tagName === "SUMMARY")
      control.parentElement.open = previous.parentElement.open;
    if (previous && previous !== control && control.tagName === "SELECT") control.value = previous.value;
    if (focused && key === focused) control.focus({ preventScroll: true });
  }
  return !focused || node.contains(document.activeElement);
}

// Controls with a key that they have in the next drawing too.
function controlKeys(node) {
  const counts = new Map();
  const controls = [...node.querySelectorAll("a, button, summary, select, input, textarea, [tabindex]")];
  return new Map(
    controls.map((control) => {
      const { of, memory } = control.closest("[data-of], [data-memory]")?.dataset ?? {};
      const name =
        control.getAttribute("aria-keyshortcuts") ??
        control.dataset.do ??
        control.getAttribute("href") ??
        (control.name || control.className);
      const key = [control.tagName, of ?? memory ?? "", name].join(" ");
      counts.set(key, (counts.get(key) ?? 0) + 1);
      return [control, `${key} ${counts.get(key)}`];
    }),
  );
}

const BAR = 60; // pixels that the bar hides at the top

// Return a function that scrolls the node that is read back to where it is now, whatever is inserted above it.
export function holdScroll(nodes, held = null) {
  const node = scrollY > 0 ? (held ?? nodes.find((each) => each.getBoundingClientRect().bottom > BAR)) : null;
  const top = node?.getBoundingClientRect().top;
  return () => node?.isConnected && scrollBy({ top: node.getBoundingClientRect().top - top, behavior: "instant" });
}

// Move through a list of nodes by keys; the chosen one has the focus.
export function walkable(find, { onChoose = () => {} } = {}) {
  const step = (distance) => {
    const nodes = [...find()];
    if (!nodes.length) return;
    const index = nodes.findIndex((each) => each.contains(document.activeElement) || each.classList.contains("chosen"));
    choose(nodes[Math.min(nodes.length - 1, Math.max(0, index < 0 ? 0 : index + distance))]);
  };
  const choose = (node) => {
    for (const each of find()) each.classList.toggle("chosen", each === node);
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "nearest" });
    onChoose(node);
  };
  return { next: () => step(1), previous: () => step(-1), choose };
}
