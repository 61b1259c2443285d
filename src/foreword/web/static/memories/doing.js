// What a person wants done with a memory -> asked of the worker, shown in the list and beside it, and told with a way back.

import { latest, post } from "../ask.js";
import * as asking from "./asking.js";
import { clear } from "./choice.js";
import { make } from "../dom.js";
import { editor, successor } from "./forms.js";
import { wouldGo } from "./going.js";
import { stands } from "./memory.js";
import { ask, number, toast } from "../parts.js";

export function doing(here) {
  const { page, choice } = here;
  const pick = latest();
  let agreeing = false; // whether it is being asked if something shall be forgotten
  let done = []; // entries and runs of what was done here, the last one last

  const all = {
    becomes: () => here.becomes,
    edit: () => act(async (one, told) => here.opened.write(editor(one, { version: told.version, save: (changes) => attempt(() => saved(one, changes)), cancel: here.opened.leave }))),
    supersede: () =>
      act(async (one) =>
        here.opened.write(
          successor(one, {
            find: (q) => pick((signal) => asking.successors(one, q, { signal: AbortSignal.any([signal, page.signal]) })).then((got) => got && got.memories),
            save: (given) => attempt(async () => {
              const got = await post("/api/supersede", { old: one.id, ...given });
              here.opened.written();
              await after(`Superseded by “${got.by.title}”.`, { entry: got.entry.number });
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
          await after(off ? "No longer pinned." : "Pinned: it ranks higher.", { entry: got.entry.number });
        } catch (error) {
          await here.opened.reveal(one.id, { push: false });
          throw error;
        }
      }),
    aside: () =>
      act(async (one) => {
        const off = one.status === "discarded";
        const got = await post("/api/aside", { ids: [one.id], off });
        if (got.refused[one.id]) return toast(`It stays as it is: ${got.refused[one.id]}`);
        await after(off ? "Brought back: it may be shown again." : "Set aside: it is kept, and no longer shown.", { run: got.run });
      }),
    forget: () => act((one) => forgetAll([one.id])),
    undo: (entry) => takeBack({ entry }),
    undoLast: () => {
      const last = here.opened.told()?.history.find(stands);
      const what = done.at(-1) ?? (last && { entry: last.number });
      if (what) takeBack(what);
      else toast("There is nothing to take back.");
    },
    decide: (one, what, more = {}) =>
      attempt(async () => {
        const got = await post("/api/review", { do: what, id: one.id, ...more });
        const words = { accept: "Accepted: it is a rule now.", refuse: "Refused.", promote: `Promoted: it is a ${got.memory.kind} now.`, discard: "Discarded." };
        await after(words[what], { entry: got.entry });
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
    const id = document.activeElement?.closest?.(".mem-row")?.dataset.of ?? choice.id;
    if (!id) return toast("Choose a memory first.");
    here.opened.stay();
    if (here.opened.told()?.memory.id !== id) await here.opened.reveal(id);
    const told = here.opened.told();
    if (told?.memory.id === id) await attempt(() => fn(told.memory, told));
  }

  async function attempt(fn) {
    try {
      await fn();
    } catch (error) {
      here.tellTrouble(error);
    }
  }

  // What was done is true in the list and in the detail before anybody is told.
  async function after(words, what, { again = false } = {}) {
    if (!again) done.push(what);
    await Promise.all([here.results.refresh({ quiet: true }), choice.id ? here.opened.again() : null]);
    if (!choice.view) here.askWaiting();
    page.say(words);
    toast(words, { undo: () => takeBack(what) });
  }

  // An entry of the log, or a run, as it was before; what that came to can be done again in the same way.
  const takeBack = (what) =>
    attempt(async () => {
      const got = await post("/api/undo", what);
      const stays = Object.values(got.refused);
      done = done.filter((each) => each.run !== what.run || each.entry !== what.entry);
      if (!got.undone.length) return toast(`It stays as it is: ${stays[0]}`);
      const [first] = got.undone;
      await after(stays.length ? `Taken back, but for ${number(stays.length)}: ${stays[0]}` : "Taken back.", what.run ? { run: first.run } : { entry: first.number }, { again: true });
    });

  // Of one or of several: what will go is shown for all of them together, and asked for once.
  async function forgetAll(ids) {
    if (agreeing) return; // the key was pressed again before anything was asked
    agreeing = true;
    const yes = await agreed(ids).finally(() => (agreeing = false));
    if (!yes) return;
    const open = choice.id;
    here.opened.going();
    const got = await post("/api/forget", { ids, why: yes.why }).catch(async (error) => {
      await here.opened.reveal(open, { push: false });
      throw error;
    });
    done = [];
    here.opened.gone(got);
    here.selected.leave(ids);
    page.say(got.left.length ? "Forgotten; something is left" : "Forgotten for good; 0 left");
    await here.results.refresh({ quiet: true });
    here.askWaiting();
  }

  async function agreed(ids) {
    const would = await post("/api/forget", { ids, dry_run: true });
    const why = make("input", { name: "why", placeholder: "Why, for the log (may stay empty)", "aria-label": "Why, for the log", autofocus: true, on: { keydown: (event) => event.key === "Enter" && event.preventDefault() } });
    const title = ids.length > 1 ? `Forget these ${number(ids.length)} for good?` : "Forget this for good?";
    return ask({ title, body: [wouldGo(would), why], yes: ids.length > 1 ? `Forget ${number(ids.length)} for good` : "Forget for good", danger: true, read: () => ({ why: why.value }) });
  }

  async function saved(one, changes) {
    if (Object.keys(changes).every((name) => name === "as_of")) return here.opened.leave();
    const got = await post(`/api/memories/${encodeURIComponent(one.id)}`, changes).catch(async (error) => {
      if (error.status !== 409) throw error;
      await here.opened.again(); // the form tells what somebody else changed
    });
    if (!got) return;
    here.opened.written();
    here.opened.tell(null);
    await after(`Revised: ${got.entry.why}.`, { entry: got.entry.number });
    here.opened.node.querySelector("[data-do=edit]")?.focus();
  }

  return Object.assign(all, { attempt, after, forgetAll });
}
