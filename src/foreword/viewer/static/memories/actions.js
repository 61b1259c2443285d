// Run the actions on a memory: edit, pin, forget, undo, decide; each offers to undo it.

import { post } from "../api.js";
import { h } from "../dom.js";
import { endSentence, memoryPath } from "../format.js";
import { code, confirm, showToast } from "../parts.js";
import { clear } from "./choice.js";
import { describeReceipt, forgetPreview } from "./forget.js";
import { createForm } from "./forms.js";
import { canUndo } from "./memory.js";

let done = []; // what was done while the viewer is open, the last one last

export function createActions(here) {
  const { page, choice } = here;
  let isAsking = false;

  const actions = {
    becomes: () => here.becomes,
    edit: () =>
      withMemory((one) => {
        const save = (changes) => attempt(() => saveChanges(one, changes));
        here.detail.showForm(createForm(one, { save, cancel: here.detail.leaveForm }));
      }),
    pin: () =>
      withMemory(async (one) => {
        const off = one.pinned;
        here.detail.setData({ ...here.detail.data(), memory: { ...one, pinned: !off } }); // shown at once
        here.detail.draw({ quiet: true });
        try {
          const { entry } = await post("/api/pin", { id: one.id, off });
          const name = `${off ? "unpinned" : "pinned"} ${quote(one)}`;
          await finish(off ? "Unpinned." : "Pinned: it ranks higher.", { entry: entry.number, name });
        } catch (error) {
          await here.detail.open(one.id, { push: false });
          throw error;
        }
      }),
    forget: () => withMemory(forget),
    undo: (entry) => undo(describeEntry(entry)),
    undoLast: () => {
      const entry = here.detail.data()?.history.find(canUndo);
      const last = done.at(-1) ?? (entry && describeEntry(entry));
      if (last) undo(last);
      else showToast("There is nothing to undo.");
    },
    decide: (one, decision, options = {}) =>
      attempt(async () => {
        const { entry, memory } = await post("/api/review", { do: decision, id: one.id, ...options });
        const [verb, text] = {
          promote: ["promoted", `Promoted: it is a ${memory.kind} now.`],
          discard: ["discarded", "Discarded."],
        }[decision];
        await finish(text, { entry: entry.number, name: `${verb} ${quote(one)}` });
      }),
    filter: (name, value) => {
      if (here.isNarrow()) here.detail.open("", { push: true }); // first: the address that is left is written
      choice.q = here.search.value = "";
      clear(choice);
      choice[name] = value;
      choice.view = "";
      here.results.refresh();
    },
  };

  const quote = (one) => `“${one.title}”`;

  // An entry of the history of the open memory; undoing an undo does it again.
  function describeEntry(entry) {
    const { memory, history } = here.detail.data();
    const redo = entry.what === "undo";
    const original = redo ? history.find((other) => other.undone === entry.number) : entry;
    return { entry: entry.number, name: `${original?.done ?? "it"} ${quote(memory)}`, redo };
  }

  // Run an action on the chosen row's memory, or on the open one.
  async function withMemory(action) {
    if (here.detail.form()) return;
    const id = document.activeElement?.closest?.(".mem-row")?.dataset.of ?? choice.id;
    if (!id) return showToast("Choose a memory first.");
    here.detail.cancelPreview();
    if (here.detail.data()?.memory.id !== id) await here.detail.open(id);
    const data = here.detail.data();
    if (data?.memory.id === id) await attempt(() => action(data.memory));
  }

  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      here.reportError(error);
    }
  }

  // Update the page, then show a toast, on another page too.
  async function finish(text, change) {
    if (!("redo" in change)) done.push(change);
    if (!page.signal.aborted) {
      await Promise.all([here.results.refresh({ quiet: true }), choice.id ? here.detail.reload() : null]);
      if (!choice.view) here.loadWaiting();
    }
    showToast(text, { undo: () => undo(change) });
  }

  const undo = ({ entry, name, redo = false }) =>
    attempt(async () => {
      const mine = done.find((each) => each.entry === entry);
      done = done.filter((each) => each !== mine); // at once: the same key again means the one before
      const answer = await post("/api/undo", { entry }).catch((error) => {
        if (mine) done = [...done, mine];
        throw error;
      });
      const [undone] = answer.undone;
      if (!undone) return showToast(["Not changed: ", code(endSentence(Object.values(answer.refused)[0]))]);
      await finish(`${redo ? "Done again" : "Undone"}: ${name}.`, { entry: undone.number, name, redo: !redo });
    });

  async function forget(one) {
    if (isAsking) return;
    isAsking = true;
    const answer = await confirmForget(one.id).finally(() => (isAsking = false));
    if (!answer || page.signal.aborted) return;
    const { id } = choice;
    here.detail.showForgetting();
    const result = await post("/api/forget", { ids: [one.id], why: answer.why }).catch(async (error) => {
      if (!page.signal.aborted) await here.detail.open(id, { push: false });
      throw error;
    });
    done = [];
    if (page.signal.aborted) return showToast(describeReceipt(result));
    here.detail.showReceipt(result);
    page.say(describeReceipt(result));
    await here.results.refresh({ quiet: true });
    here.loadWaiting();
  }

  async function confirmForget(id) {
    if (here.detail.form() && !(await here.detail.leaveForm())) return null;
    const preview = await post("/api/forget", { ids: [id], dry_run: true }, { changes: false });
    if (page.signal.aborted) return null;
    const why = h("input", {
      name: "why",
      dir: "auto",
      placeholder: "Reason for the log (optional)",
      "aria-label": "Reason for the log",
      autofocus: true,
      on: { keydown: (event) => event.key === "Enter" && event.preventDefault() },
    });
    return confirm({
      title: "Forget this for good?",
      body: [forgetPreview(preview), why],
      yes: "Forget for good",
      danger: true,
      read: () => ({ why: why.value }),
    });
  }

  async function saveChanges(one, changes) {
    if (!Object.keys(changes).length) return here.detail.leaveForm();
    const { entry } = await post(`/api${memoryPath(one.id)}`, changes);
    here.detail.dropForm();
    here.detail.setData(null);
    await finish(`Revised: ${entry.why}.`, { entry: entry.number, name: `revised ${quote(one)}` });
    here.detail.node.querySelector("[data-do=edit]")?.focus();
  }

  return actions;
}
