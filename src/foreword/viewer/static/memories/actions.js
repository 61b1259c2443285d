// Run the actions on a memory: edit, pin, forget, undo; each is shown with a way back.

import { post } from "../api.js";
import { clear } from "./choice.js";
import { make } from "../dom.js";
import { editor } from "./forms.js";
import { shortly, wouldGo } from "./forget.js";
import { canUndo } from "./memory.js";
import { ask, coded, full, number, toast } from "../parts.js";

let done = []; // entries and runs of what was done here, the last one last; the way back leads to them too

export function actions(here) {
  const { page, choice } = here;
  let agreeing = false; // whether it is being asked if something shall be forgotten

  const all = {
    becomes: () => here.becomes,
    edit: () =>
      act(async (one) => {
        const save = (changes) => attempt(() => saved(one, changes));
        here.opened.write(editor(one, { save, cancel: here.opened.leave }));
      }),
    pin: () =>
      act(async (one) => {
        const off = one.pinned;
        // It can be taken back at once, so it is shown at once.
        here.opened.setData({ ...here.opened.data(), memory: { ...one, pinned: !off } });
        here.opened.draw({ quiet: true });
        try {
          const got = await post("/api/pin", { id: one.id, off });
          const name = `${off ? "unpinned" : "pinned"} ${quoted(one)}`;
          await after(off ? "No longer pinned." : "Pinned: it ranks higher.", { entry: got.entry.number, name });
        } catch (error) {
          await here.opened.reveal(one.id, { push: false });
          throw error;
        }
      }),
    forget: () => act((one) => forget(one)),
    undo: (each) => takeBack(entryOf(each)),
    undoLast: () => {
      const last = here.opened.data()?.history.find(canUndo);
      const what = done.at(-1) ?? (last && entryOf(last));
      if (what) takeBack(what);
      else toast("There is nothing to take back.");
    },
    decide: (one, what, more = {}) =>
      attempt(async () => {
        const got = await post("/api/review", { do: what, id: one.id, ...more });
        const [name, words] = {
          accept: ["accepted", acceptedAs(got.memory)],
          refuse: ["refused", "Refused."],
          promote: ["promoted", `Promoted: it is a ${got.memory.kind} now.`],
          discard: ["discarded", "Discarded."],
        }[what];
        await after(words, { entry: got.entry.number, name: `${name} ${quoted(one)}` });
      }),
    facet: (name, text) => {
      if (here.narrow()) here.opened.reveal("", { push: true }); // first: what is left is noted as it was
      choice.q = here.search.value = "";
      clear(choice);
      choice[name] = text;
      choice.view = "";
      here.results.refresh();
    },
  };

  // What a proposal is after the user's yes.
  function acceptedAs(became) {
    const rule = ["preference", "correction"].includes(became.kind);
    return rule ? "Accepted: it is a rule now." : "Accepted: it may be shown now.";
  }

  const quoted = (one) => `“${one.title}”`;

  // An entry of the history of the memory that is open, as what is taken back, or done again where it is a taking back itself.
  function entryOf(each) {
    const { memory, history } = here.opened.data();
    const again = each.what === "undo";
    const of = again ? history.find((other) => other.undone === each.number) : each;
    return { entry: each.number, name: `${of?.done ?? "it"} ${quoted(memory)}`, again };
  }

  const stays = (why) => toast(["It stays as it is: ", coded(full(why))]);

  // Do something with the memory that is open, or with the row that is chosen.
  async function act(fn) {
    if (here.opened.form()) return;
    const id = document.activeElement?.closest?.(".mem-row")?.dataset.of ?? choice.id;
    if (!id) return toast("Choose a memory first.");
    here.opened.stay();
    if (here.opened.data()?.memory.id !== id) await here.opened.reveal(id);
    const data = here.opened.data();
    if (data?.memory.id === id) await attempt(() => fn(data.memory));
  }

  async function attempt(fn) {
    try {
      await fn();
    } catch (error) {
      here.reportError(error);
    }
  }

  // Update the list and the detail before the toast; it is also shown to somebody who left the page meanwhile.
  async function after(words, what, { keep = true } = {}) {
    if (keep) done.push(what);
    if (!page.signal.aborted) {
      await Promise.all([here.results.refresh({ quiet: true }), choice.id ? here.opened.again() : null]);
      if (!choice.view) here.loadWaiting();
    }
    toast(words, { undo: () => takeBack(what) });
  }

  // An entry of the log, or a run, as it was before; what that came to can be done again in the same way.
  const takeBack = ({ entry, run, name, again = false }) =>
    attempt(async () => {
      const mine = done.find((each) => each.run === run && each.entry === entry);
      done = done.filter((each) => each !== mine); // at once: the same key again means the one before
      const got = await post("/api/undo", run ? { run } : { entry }).catch((error) => {
        if (mine) done = [...done, mine];
        throw error;
      });
      const refused = Object.values(got.refused);
      if (!got.undone.length) return stays(refused[0]);
      const [first] = got.undone;
      const words = [again ? "Done again" : "Taken back", `: ${name}.`];
      const but = refused.length ? [` Not for ${number(refused.length)} of them: `, coded(full(refused[0]))] : "";
      const back = run ? { run: first.run } : { entry: first.number };
      await after([words, but], { ...back, name, again: !again }, { keep: false });
    });

  // What will go is shown, and asked for once.
  async function forget(one) {
    const ids = [one.id];
    if (agreeing) return; // the key was pressed again before anything was asked
    agreeing = true;
    const yes = await agreed(ids).finally(() => (agreeing = false));
    if (!yes || page.signal.aborted) return;
    const open = choice.id;
    here.opened.showForgetting();
    const got = await post("/api/forget", { ids, why: yes.why }).catch(async (error) => {
      if (!page.signal.aborted) await here.opened.reveal(open, { push: false });
      throw error;
    });
    done = [];
    if (page.signal.aborted) return toast(shortly(got)); // another page is shown: its receipt is in the log
    here.opened.gone(got);
    page.say(shortly(got));
    await here.results.refresh({ quiet: true });
    here.loadWaiting();
  }

  // What is half written beside it would be lost by the receipt: that is asked first.
  async function agreed(ids) {
    if (here.opened.form() && !(await here.opened.leave())) return null;
    const would = await post("/api/forget", { ids, dry_run: true }, { changes: false });
    if (page.signal.aborted) return null; // nobody is asked on a page that has nothing to do with it
    const why = make("input", {
      name: "why",
      dir: "auto",
      placeholder: "Why, for the log (may stay empty)",
      "aria-label": "Why, for the log",
      autofocus: true,
      on: { keydown: (event) => event.key === "Enter" && event.preventDefault() },
    });
    const [title, yes] = ["Forget this for good?", "Forget for good"];
    return ask({ title, body: [wouldGo(would), why], yes, danger: true, read: () => ({ why: why.value }) });
  }

  async function saved(one, changes) {
    if (!Object.keys(changes).length) return here.opened.leave();
    const got = await post(`/api/memories/${encodeURIComponent(one.id)}`, changes);
    here.opened.written();
    here.opened.setData(null);
    await after(`Revised: ${got.entry.why}.`, { entry: got.entry.number, name: `revised ${quoted(one)}` });
    here.opened.node.querySelector("[data-do=edit]")?.focus();
  }

  return all;
}
