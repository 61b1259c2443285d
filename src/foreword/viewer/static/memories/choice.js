// Convert between the address of the page and what is chosen there: words, filters, the view, the open memory.

export const FACETS = {
  kind: "Kind",
  status: "Status",
  trust: "Trust",
  scope: "Scope",
  project: "Project",
  tag: "Tag",
  file: "File",
  pinned: "Pinned",
};
export const NAMES = Object.keys(FACETS);
const ONE = new Set(["project", "tag", "file", "scope", "pinned"]); // their values may hold a comma

export function read(page) {
  const choice = { id: page.path[1] ?? "", q: page.query.get("q") ?? "", view: page.query.get("view") ?? "" };
  for (const name of NAMES) choice[name] = page.query.get(name) ?? "";
  return choice;
}

export function address(choice, other = {}) {
  const now = { ...choice, ...other };
  const params = new URLSearchParams();
  for (const name of ["q", ...NAMES, "view"]) if (now[name]) params.set(name, now[name]);
  return `/memories${now.id ? `/${encodeURIComponent(now.id)}` : ""}${params.size ? `?${params}` : ""}`;
}

// The words and filters alone, as a worker is asked for them.
export const words = (choice) => Object.fromEntries(["q", ...NAMES].map((name) => [name, choice[name]]));

export const filtered = (choice) => Object.values(words(choice)).some(Boolean);

// Two choices with the same name list the same memories.
export const named = (choice) => JSON.stringify([choice.view, words(choice)]);

export const chosenOf = (choice, name) =>
  choice[name] ? (ONE.has(name) ? [choice[name]] : choice[name].split(",")) : [];

export function toggle(choice, name, text) {
  const before = chosenOf(choice, name);
  const after = before.includes(text)
    ? before.filter((each) => each !== text)
    : ONE.has(name)
      ? [text]
      : [...before, text];
  choice[name] = after.join(",");
  choice.view = "";
}

export function clear(choice) {
  for (const name of NAMES) choice[name] = "";
}
