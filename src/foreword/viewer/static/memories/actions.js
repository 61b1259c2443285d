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

export function createActions(shared) {
  const { page, choice } = shared;
  let isAsking = false;

  const actions = {
    becomes: () => shared.becomes,
    edit: () =>
      withMemory((target) => {
        const save = (changes) => attempt(() => saveChanges(target, changes));
        shared.detail.showForm(createForm(target, { save, cancel: shared.detail.leaveForm }));
      }),
    pin: () =>
      withMemory(async (target) => {
        const off = target.pinned;
        shared.detail.setData({ ...shared.detail.data(), memory: { ...target, pinned: !off } }); // shown at once
        shared.detail.draw({ quiet: true });
        try {
          const { entry } = await post("/api/pin", { id: target.id, off });
          const name = `${off ? "unpinned" : "pinned"} ${quote(target)}`;
          await finish(off ? "Unpinned." : "Pinned: it ranks higher.", { entry: entry.number, name });
        } catch (error) {
          await shared.detail.open(target.id, { push: false });
          throw error;
        }
      }),
    forget: () => withMemory(forget),
    undo: (entry) => undo(describeEntry(entry)),
    undoLast: () => {
      const entry = shared.detail.data()?.history.find(canUndo);
      const last = done.at(-1) ?? (entry && describeEntry(entry));
      if (last) undo(last);
      else showToast("There is nothing to undo.");
    },
    decide: (target, decision, options = {}) =>
      attempt(async () => {
        const { entry, memory } = await post("/api/review", { do: decision, id: target.id, ...options });
        const [verb, text] = {
          promote: ["promoted", `Promoted: it is a ${memory.kind} now.`],
          discard: ["discarded", "Discarded."],
        }[decision];
        await finish(text, { entry: entry.number, name: `${verb} ${quote(target)}` });
      }),
    filter: (name, value) => {
      if (shared.isNarrow()) shared.detail.open("", { push: true }); // first: the address that is left is written
      choice.q = shared.search.value = "";
      clear(choice);
      choice[name] = value;
      choice.view = "";
      shared.results.refresh();
    },
  };

  const quote = (target) => `“${target.title}”`;

  // An entry of the history of the open memory; undoing an undo does it again.
  function describeEntry(entry) {
    const { memory, history } = shared.detail.data();
    const redo = entry.what === "undo";
    const original = redo ? history.find((other) => other.undone === entry.number) : entry;
    return { entry: entry.number, name: `${original?.done ?? "it"} ${quote(memory)}`, redo };
  }

  // Run an action on the chosen row's memory, or on the open one.
  async function withMemory(action) {
    if (shared.detail.form()) return;
    const id = document.activeElement?.closest?.(".mem-row")?.dataset.of ?? choice.id;
    if (!id) return showToast("Choose a memory first.");
    shared.detail.cancelPreview();
    if (shared.detail.data()?.memory.id !== id) await shared.detail.open(id);
    const data = shared.detail.data();
    if (data?.memory.id === id) await attempt(() => action(data.memory));
  }

  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      shared.reportError(error);
    }
  }

  // Update the page, then show a toast, on another page too.
  async function finish(text, change) {
    if (!("redo" in change)) done.push(change);
    if (!page.signal.aborted) {
      await Promise.all([shared.results.refresh({ quiet: true }), choice.id ? shared.detail.reload() : null]);
      if (!choice.view) shared.loadWaiting();
    }
    showToast(text, { undo: () => undo(change) });
  }

  const undo = ({ entry, name, redo = false }) =>
    attempt(async () => {
      const recorded = done.find((each) => each.entry === entry);
      done = done.filter((each) => each !== recorded); // at once: the same key again means the one before
      const answer = await post("/api/undo", { entry }).catch((error) => {
        if (recorded) done = [...done, recorded];
        throw error;
      });
      const [undone] = answer.undone;
      if (!undone) return showToast(["Not changed: ", code(endSentence(Object.values(answer.refused)[0]))]);
      await finish(`${redo ? "Done again" : "Undone"}: ${name}.`, { entry: undone.number, name, redo: !redo });
    });

  async function forget(target) {
    if (isAsking) return;
    isAsking = true;
    const answer = await confirmForget(target.id).finally(() => (isAsking = false));
    if (!answer || page.signal.aborted) return;
    const { id } = choice;
    shared.detail.showForgetting();
    const result = await post("/api/forget", { ids: [target.id], why: answer.why }).catch(async (error) => {
      if (!page.signal.aborted) await shared.detail.open(id, { push: false });
      throw error;
    });
    done = [];
    if (page.signal.aborted) return showToast(describeReceipt(result));
    shared.detail.showReceipt(result);
    page.announce(describeReceipt(result));
    await shared.results.refresh({ quiet: true });
    shared.loadWaiting();
  }

  async function confirmForget(id) {
    if (shared.detail.form() && !(await shared.detail.leaveForm())) return null;
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

  async function saveChanges(target, changes) {
    if (!Object.keys(changes).length) return shared.detail.leaveForm();
    const { entry } = await post(`/api${memoryPath(target.id)}`, changes);
    shared.detail.dropForm();
    shared.detail.setData(null);
    await finish(`Revised: ${entry.why}.`, { entry: entry.number, name: `revised ${quote(target)}` });
    shared.detail.node.querySelector("[data-do=edit]")?.focus();
  }

  return actions;
}
