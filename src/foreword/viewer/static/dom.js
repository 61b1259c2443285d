// Make elements from a tag, attributes and children. The one place that makes elements: text is only ever text.

const PROPERTIES = new Set(["hidden", "disabled", "checked", "value", "selected", "open", "indeterminate"]);

export function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || (value === false && !PROPERTIES.has(name))) continue;
    if (name === "on") for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    else if (PROPERTIES.has(name)) node[name] = value;
    else put(node, name, value === true ? "" : String(value));
  }
  return add(node, children);
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// A memory may hold any text: an address leads nowhere but to our own pages (a browser passes over tabs and ends of
// lines in one), and no attribute can be a script.
function put(node, name, text) {
  if (/^(on|style$|src|srcdoc$|form)/i.test(name)) throw new Error(`no ${name} here`);
  if (name === "href" && !/^[/#][^/\\\t\r\n]|^[/#]$/.test(text)) throw new Error("links stay in the viewer");
  node.setAttribute(name, text);
}
