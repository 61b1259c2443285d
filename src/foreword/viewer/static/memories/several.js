// The memories that are selected -> what can be done with all of them, and asked of the worker as one run.

import { post } from "../ask.js";
import { make } from "../dom.js";
import { ask, coded, full, many, sentence, toast } from "../parts.js";

export function several(here) {
  const { attempt, after, forgetAll } = here.doing;

  // What makes sense for some of these, and for how many of them.
  function of(all) {
    const proposals = all.filter((each) => each.status === "proposed");
    const notes = all.filter((each) => each.kind === "note" && each.status === "active");
    const shown = all.filter((each) => ["active", "stale"].includes(each.status));
    const aside = all.filter((each) => each.status === "discarded");
    const pinned = all.filter((each) => each.pinned);
    const off = pinned.length === all.length;
    return [
      proposals.length ? { name: "Accept", count: proposals.length, fn: () => decide("accept", proposals) } : null,
      proposals.length ? { name: "Refuse", count: proposals.length, fn: () => decide("refuse", proposals) } : null,
      notes.length ? { name: "Promote", count: notes.length, fn: () => promote(notes) } : null,
      { name: off ? "Unpin" : "Pin", key: "p", count: off ? pinned.length : all.length - pinned.length, fn: pin },
      shown.length ? { name: "Set aside", key: "a", count: shown.length, fn: putAside } : null,
      aside.length && !shown.length ? { name: "Bring back", key: "a", count: aside.length, fn: putAside } : null,
      { name: "Forget", key: "f", count: all.length, fn: forget, danger: true },
    ].filter(Boolean);
  }

  function pin() {
    const all = here.selected.all();
    const off = all.every((each) => each.pinned);
    return done(
      "/api/pin",
      all.filter((each) => each.pinned === off),
      { off },
      (some) => `${some} ${off ? "no longer pinned" : "pinned"}`,
    );
  }

  function putAside() {
    const all = here.selected.all();
    const shown = all.filter((each) => ["active", "stale"].includes(each.status));
    if (shown.length)
      return done("/api/discard", shown, {}, (some) => `${some} set aside`, ": kept, and no longer shown");
    return done("/api/discard", all, { off: true }, (some) => `${some} brought back`);
  }

  async function promote(notes) {
    const kinds = here.becomes.map((each) => make("option", { value: each }, each));
    const select = make("select", { name: "as", autofocus: true, "aria-label": "What they become" }, kinds);
    const yes = await ask({
      title: `Promote ${many(notes.length, "note")}`,
      body: [make("p", {}, "A memory of this kind takes the place of each."), select],
      yes: "Promote",
      read: () => ({ as: select.value }),
    });
    if (yes)
      return done(
        "/api/review",
        notes,
        { do: "promote", ...yes },
        (some) => `${some} promoted`,
        `: each is a ${yes.as} now`,
      );
  }

  const decide = (what, proposals) =>
    done("/api/review", proposals, { do: what }, (some) => `${some} ${what === "accept" ? "accepted" : "refused"}`);

  const forget = () => attempt(() => forgetAll(here.selected.ids()));

  // What was done is one run: one way back for all of it. What stays as it is, is told with the reason.
  const done = (path, all, body, named, more = "") =>
    attempt(async () => {
      const got = await post(path, { ids: all.map((each) => each.id), ...body });
      const stays = Object.values(got.refused);
      const others = stays.length > 1 ? ", and others" : "";
      const but = stays.length
        ? [` ${many(stays.length, "stays as it is", "stay as they are")}: `, coded(full(stays[0] + others))]
        : "";
      if (!got.changed.length) return toast(["Nothing was changed.", but]);
      const name = named(many(got.changed.length, "memory", "memories"));
      await after([sentence(name), more, ".", but], { run: got.run, name });
      const listed = new Set(here.results.memories().map((each) => each.id));
      here.selected.leave(got.changed.filter((id) => !listed.has(id)));
    });

  return { of, pin, putAside, forget };
}
