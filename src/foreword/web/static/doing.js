// What a person wants done with a memory -> asked of the worker, shown in the list and beside it, and told with a way back.

import { latest, post } from "./ask.js";
import * as asking from "./asking.js";
import { clear } from "./choice.js";
import { make } from "./dom.js";
import { editor, successor } from "./forms.js";
import { wouldGo } from "./going.js";
import { stands } from "./memory.js";
import { ask, toast } from "./parts.js";

export function doing(here) {
  const { page, choice } = here;
  const pick = latest();
  let done = []; // entries of what was done here, the last one last

  const all = {
    becomes: () => here.becomes,
    edit: () => act(async (one) => here.opened.write(editor(one, { save: (changes) => attempt(() => saved(one, changes)), cancel: here.opened.leave }))),
    supersede: () =>
      act(async (one) =>
        here.opened.write(
          successor(one, {
            find: (q) => pick((signal) => asking.successors(one, q, { signal: AbortSignal.any([signal, page.signal]) })).then((got) => got && got.memories),
            save: (given) => attempt(async () => {
              const got = await post("/api/supersede", { old: one.id, ...given });
              here.opened.written();
              await after(`Superseded by “${got.by.title}”.`, got.entry.number);
            }),
            cancel: here.opened.leave,
          }),
        ),
      ),
    pin: () =>
      act(async (one) => {
        const off = one.pinned;
        here.opened.tell({ ...here.opened.told(), memory: { ...one, pinned: !off } }); // it can be taken back at once, so it is shown at once
        here.opened.draw({ quiet: true });
        try {
          const got = await post("/api/pin", { id: one.id, off });
          await after(off ? "No longer pinned." : "Pinned: it ranks higher.", got.entry.number);
        } catch (error) {
          await here.opened.reveal(one.id, { push: false });
          throw error;
        }
      }),
    forget: () =>
      act(async (one) => {
        const would = await post("/api/forget", { ids: [one.id], dry_run: true });
        const why = make("input", { name: "why", placeholder: "Why, for the log (may stay empty)", "aria-label": "Why, for the log", autofocus: true, on: { keydown: (event) => event.key === "Enter" && event.preventDefault() } });
        const yes = await ask({ title: "Forget this for good?", body: [wouldGo(would), why], yes: "Forget for good", danger: true, read: () => ({ why: why.value }) });
        if (!yes) return;
        here.opened.going();
        const got = await post("/api/forget", { ids: [one.id], why: yes.why }).catch(async (error) => {
          await here.opened.reveal(one.id, { push: false });
          throw error;
        });
        done = [];
        here.opened.gone(got);
        page.say(got.left.length ? "Forgotten; something is left" : "Forgotten for good; 0 left");
        await here.results.refresh({ quiet: true });
        here.askWaiting();
      }),
    undo: (number) =>
      attempt(async () => {
        const got = await post("/api/undo", { entry: number });
        const why = got.refused[number];
        done = done.filter((each) => each !== number);
        if (why) return toast(`It stays as it is: ${why}`);
        await after("Taken back.", got.undone[0].number, { again: true });
      }),
    undoLast: () => {
      const last = done.at(-1) ?? here.opened.told()?.history.find(stands)?.number;
      if (last) all.undo(last);
      else toast("There is nothing to take back.");
    },
    decide: (one, what, more = {}) =>
      attempt(async () => {
        const got = await post("/api/review", { do: what, id: one.id, ...more });
        const words = { accept: "Accepted: it is a rule now.", refuse: "Refused.", promote: `Promoted: it is a ${got.memory.kind} now.`, discard: "Discarded." };
        await after(words[what], got.entry);
      }),
    facet: (name, text) => {
      choice.q = here.search.value = "";
      clear(choice);
      choice[name] = text;
      choice.view = "";
      if (here.narrow()) here.opened.reveal("", { push: true });
      here.results.refresh();
    },
  };

  // Do something with the memory that is open, or with the row that is chosen.
  async function act(fn) {
    if (here.opened.form()) return;
    const id = document.activeElement?.closest?.(".row")?.dataset.id ?? choice.id;
    if (!id) return toast("Choose a memory first.");
    here.opened.stay();
    if (here.opened.told()?.memory.id !== id) await here.opened.reveal(id);
    const told = here.opened.told();
    if (told?.memory.id === id) await attempt(() => fn(told.memory));
  }

  async function attempt(fn) {
    try {
      await fn();
    } catch (error) {
      here.tellTrouble(error);
    }
  }

  // What was done is true in the list and in the detail before anybody is told.
  async function after(words, entry, { again = false } = {}) {
    if (!again) done.push(entry);
    await Promise.all([here.results.refresh({ quiet: true }), choice.id ? here.opened.reveal(choice.id, { push: false, quiet: true }) : null]);
    if (!choice.view) here.askWaiting();
    page.say(words);
    toast(words, { undo: () => all.undo(entry) });
  }

  async function saved(one, changes) {
    if (!Object.keys(changes).length) return here.opened.leave();
    const got = await post(`/api/memories/${encodeURIComponent(one.id)}`, changes);
    here.opened.written();
    here.opened.tell(null);
    await after(`Revised: ${got.entry.why}.`, got.entry.number);
    here.opened.node.querySelector("[data-do=edit]")?.focus();
  }

  return all;
}
