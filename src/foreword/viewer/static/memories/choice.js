// Convert between the address of the page and the choice: words, filters, view, open memory.

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
const SINGLE = new Set(["project", "tag", "file", "scope", "pinned"]); // one value each, which may hold a comma

export function readChoice(page) {
  const choice = { id: page.path[1] ?? "" };
  for (const name of ["q", "view", ...NAMES]) choice[name] = page.query.get(name) ?? "";
  return choice;
}

export function address(choice, changes = {}) {
  const now = { ...choice, ...changes };
  const params = new URLSearchParams();
  for (const name of ["q", ...NAMES, "view"]) if (now[name]) params.set(name, now[name]);
  return `/memories${now.id ? `/${encodeURIComponent(now.id)}` : ""}${params.size ? `?${params}` : ""}`;
}

// The words and filters, as the API takes them.
export const searchOf = (choice) => Object.fromEntries(["q", ...NAMES].map((name) => [name, choice[name]]));

export const hasFilters = (choice) => Object.values(searchOf(choice)).some(Boolean);

// Choices with the same key list the same memories.
export const listKey = (choice) => JSON.stringify([choice.view, searchOf(choice)]);

export const valuesOf = (choice, name) =>
  choice[name] ? (SINGLE.has(name) ? [choice[name]] : choice[name].split(",")) : [];

export function toggle(choice, name, value) {
  const before = valuesOf(choice, name);
  const without = before.filter((each) => each !== value);
  const added = SINGLE.has(name) ? [value] : [...before, value];
  choice[name] = (before.includes(value) ? without : added).join(",");
  choice.view = "";
}

export function clear(choice) {
  for (const name of NAMES) choice[name] = "";
}
