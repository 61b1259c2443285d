// The theme that was chosen, before the first paint: a flash of white at night wakes people.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
