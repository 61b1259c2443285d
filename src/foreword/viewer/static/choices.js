// What somebody chose for good, as cookies: those know no ports, and each viewer has another. Not a module, but first of all:
// the theme stands before the first paint, for a flash of white at night wakes people.
const YEAR = 365 * 24 * 3600; // seconds

window.choices = {
  get: (name) =>
    document.cookie
      .split("; ")
      .find((each) => each.startsWith(`foreword-${name}=`))
      ?.split("=")[1] ?? "",
  keep(name, text) {
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store comes too late, it answers after the first paint
    document.cookie = `foreword-${name}=${text}; path=/; max-age=${YEAR}; samesite=strict`;
  },
};

if (["light", "dark"].includes(choices.get("theme"))) document.documentElement.dataset.theme = choices.get("theme");
