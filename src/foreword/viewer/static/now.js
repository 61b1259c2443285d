// Show the page "Now": the running session (or /now/SESSION, one of the past), trigger by trigger, as it happens.

import { get } from "./api.js";
import { fill, make } from "./dom.js";
import { drawCard, inWords, toggle, tried } from "./now/card.js";
import {
  age,
  ageing,
  ago,
  clock,
  day,
  empty,
  leading,
  line,
  many,
  triggerIn,
  number,
  renew,
  reorder,
  shorten,
  sessionState,
  totals,
  trouble,
  walkable,
  when,
} from "./parts.js";

export const title = "Now";

const MORE = 20; // triggers at a time
const MOST = 200; // ... and in all
const QUIET = 120; // seconds after which a page that follows lets go of a session for one that goes on
const FRESH = 20_000; // milliseconds that a new trigger is marked
const BAR = 60; // pixels at the top where the bar hides what lies below it

const NOTHING = "Nothing has been said to this session yet. What it is given appears here at its next prompt.";

const folds = new Map(); // what somebody opened or closed, and the trigger that was chosen last: the way back finds both
let at = "";

export async function show(root, page) {
  const pinned = page.path[1] ?? "";
  const toTop = () => {
    scrollTo({ top: 0, behavior: "instant" });
    cards.choose(parts.feed.firstElementChild);
  };
  const parts = {
    head: make("div", { class: "now-head" }),
    note: make("p", { class: "now-note" }),
    above: make("button", { type: "button", class: "main now-above", hidden: true, on: { click: toTop } }),
    feed: make("ol", { class: "feed", "aria-label": "Newest first" }),
    more: make("div"),
  };
  const fresh = new Map(); // trigger -> until when it is new
  const unseen = new Set(); // triggers that came above what is read
  let limit = MORE;
  let shown = pinned;
  let known = null;
  let last = null;
  let requests = 0;
  let answered = 0;

  async function look() {
    requests += 1;
    const mine = requests;
    const session = shown;
    const data = await get("/api/live", { session, limit }, { signal: page.signal });
    if (mine < answered || session !== shown) return; // a later question was answered already, or is of another session
    answered = mine;
    if (!pinned && follows(data)) {
      shown = data.live;
      known = null;
      return look();
    }
    shown ||= data.session?.id ?? "";
    draw(data);
  }

  // A page without a session's name shows the one that goes on; two that go on at once do not take turns.
  function follows(data) {
    const { session, live } = data;
    return session && live !== session.id && (session.ended || Date.now() / 1000 - session.last > QUIET);
  }

  function draw(data) {
    last = data;
    if (!data.session) {
      fill(root, make("h1", {}, title), welcome());
      return;
    }
    if (!parts.feed.isConnected) fill(root, parts.head, parts.note, parts.above, parts.feed, parts.more);
    const stay = place(parts.feed);
    drawHead(parts.head, data, { pinned, go: page.go });
    if (pinned) page.name(called(data.session));
    drawNote(parts.note, data, { pinned, follow });
    drawFeed(data);
    parts.more.querySelector(".trouble")?.remove();
    renew(parts.more, [data.more, limit >= MOST], () => [data.more ? rest() : null]);
    stay();
  }

  function drawFeed(data) {
    const before = known;
    known = new Set(data.triggers.map((each) => each.id));
    const came = before
      ? data.triggers.filter((each) => known.has(each.id) && !before.has(each.id) && each.at >= newest(parts.feed))
      : [];
    for (const each of came) fresh.set(each.id, performance.now() + FRESH);
    const lastSaid = data.triggers.find((each) => !each.silent);
    const stay = place(parts.feed);
    const cards = new Map([...parts.feed.children].map((each) => [each.dataset.id, each]));
    const rows = data.triggers.map((each) => {
      const card = cards.get(each.id) ?? make("li", { class: "card trigger", "data-id": each.id, tabindex: "-1" });
      const isNew = (fresh.get(each.id) ?? 0) > performance.now();
      renew(card, [each, isNew, each === lastSaid], () =>
        drawCard(each, {
          isNew,
          folds,
          page,
          first: !before && each === lastSaid,
          last: each === lastSaid,
          session: data.session,
        }),
      );
      card.dataset.at = each.at;
      return card;
    });
    if (rows.some((each, at) => parts.feed.children[at] !== each) || parts.feed.children.length !== rows.length)
      reorder(parts.feed, rows);
    if (!rows.length) fill(parts.feed, make("li", {}, empty(NOTHING)));
    stay();
    for (const each of came) unseen.add(each.id);
    tellAbove();
    if (came.length) {
      page.say(`New: ${came.map(inWords).join("; ")}`);
      setTimeout(() => !page.signal.aborted && last && drawFeed(last), FRESH + 100);
    }
  }

  // While somebody reads further down, a note says what came above.
  function tellAbove() {
    for (const id of unseen) {
      const card = [...parts.feed.children].find((each) => each.dataset.id === id);
      if (!card || card.getBoundingClientRect().bottom > BAR) unseen.delete(id);
    }
    parts.above.hidden = !unseen.size;
    fill(parts.above, unseen.size ? `↑ ${many(unseen.size, "new entry", "new entries")}` : null);
  }

  function rest() {
    if (limit >= MOST) return make("p", { class: "dim" }, `These are the newest ${number(MOST)}; no more are shown.`);
    return make("button", { type: "button", on: { click: older } }, "Show older ones");
  }

  async function older() {
    const count = parts.feed.children.length;
    const before = limit;
    parts.more.querySelector(".trouble")?.remove();
    limit = Math.min(MOST, limit + MORE);
    known = null; // what is old is not new
    try {
      await look();
      parts.feed.children[count]?.focus();
    } catch (error) {
      if (error.name === "AbortError") return;
      limit = before;
      parts.more.append(trouble(error));
    }
  }

  async function follow() {
    shown = last.live;
    known = null;
    await refresh();
    parts.feed.querySelector(".trigger")?.focus(); // the button is gone
  }

  // While it is being looked at a page may be left, and the viewer closed: the frame tells of that.
  async function refresh() {
    try {
      await look();
    } catch (error) {
      if (error.name !== "AbortError" && error.status === undefined) throw error; // no answer: what is shown stays
    }
  }

  const switchTo = (by) => {
    const all = last?.sessions ?? [];
    const next = all[all.findIndex((each) => each.id === last.session.id) + by];
    if (next) page.go(`/now/${encodeURIComponent(next.id)}`);
    else page.say(by > 0 ? "This is the oldest of the last sessions" : "This is the newest session");
  };
  const cards = walkable(() => parts.feed.querySelectorAll(".trigger"), { onto: (node) => (at = node.dataset.id) });
  const chosen = () =>
    document.activeElement?.closest?.(".trigger") ??
    parts.feed.querySelector(".chosen") ??
    parts.feed.querySelector(".trigger");
  const open = () => toggle(chosen()?.querySelector("details.text"));
  page.keys({
    j: ["Next entry", cards.next],
    k: ["Previous entry", cards.previous],
    o: ["The text as the agent saw it", open],
    Enter: ["The text as the agent saw it", open],
    i: ["Its items", () => toggle(chosen()?.querySelector("details.of-items"))],
    m: [
      "Open its memory",
      () => (document.activeElement.closest(".item") ?? chosen())?.querySelector(".item-title a, .silence a")?.click(),
    ],
    t: [
      "Try it again",
      () =>
        tried(
          last?.triggers?.find((each) => each.id === chosen()?.dataset.id),
          last?.session,
          page,
        ),
    ],
    "[": ["Newer session", () => switchTo(-1)],
    "]": ["Older session", () => switchTo(1)],
    l: ["The session that goes on", () => page.go("/now")],
  });
  page.live(refresh);
  addEventListener("scroll", () => unseen.size && tellAbove(), { passive: true, signal: page.signal });
  ageing(root, page.signal);
  await look();
  const before = page.back && [...parts.feed.children].find((each) => each.dataset.id === at);
  if (before) cards.choose(before);
}

// -- the head -------------------------------------------------------------------------------------------------------

function drawHead(head, data, { pinned, go }) {
  const { session } = data;
  if (!head.hasChildNodes()) fill(head, make("div", { class: "head" }), make("div", { class: "now-about" }));
  const [top, about] = head.children;
  const name = called(session);
  const choosing = top.querySelector("select") === document.activeElement && top.session === session.id; // it may be unfolded
  if (!choosing)
    renew(top, [session.id, name, data.sessions.map((each) => [each.id, each.title])], () => [
      make("h1", {}, name),
      switcher(data, go),
    ]);
  top.session = session.id;
  renew(about, [session, data.live], () => [
    make(
      "p",
      { class: "figures" },
      sessionState(session.running, session.ended),
      make(
        "span",
        {},
        make("a", { href: `/timeline?project=${encodeURIComponent(session.project)}` }, session.project_name),
      ),
      make("span", {}, session.host || "no host"),
      make("span", { title: when(session.started) }, `began ${near(session.started)} at ${clock(session.started)}`),
      make("span", {}, "last heard ", ago(session.last)),
      make("span", {}, many(session.events, "event")),
      make("a", { href: `/timeline/${encodeURIComponent(session.id)}` }, "the whole story"),
      pinned && data.live !== session.id ? make("a", { href: "/now" }, "the session that goes on") : null,
    ),
    session.off ? make("p", { class: "warn" }, `Injection is switched off in this project (${session.off}).`) : null,
    session.totals.shown
      ? make("div", { class: "now-sums" }, sums(session.totals), contextWindow(session.window))
      : null,
  ]);
}

const called = (session) => session.title || "A session without words yet";

function switcher(data, go) {
  const all = data.sessions.some((each) => each.id === data.session.id)
    ? data.sessions
    : [data.session, ...data.sessions];
  const name = (each) => `${each.project_name} · ${shorten(each.title || each.host, 60)} · ${age(each.last)}`;
  const select = leading(
    make("select", { id: "session", on: { change: () => go(`/now/${encodeURIComponent(select.value)}`) } }),
  );
  fill(
    select,
    all.map((each) => make("option", { value: each.id, selected: each.id === data.session.id }, name(each))),
  );
  return make("label", { class: "field now-switch", "data-of": data.session.id }, make("span", {}, "Session"), select);
}

const sums = ({ tokens, shown, memories, used, ignored, unjudged }) =>
  totals({
    "tokens given": number(tokens),
    "items given": number(shown),
    "different memories": number(memories),
    used: number(used),
    "not used": number(ignored),
    "not judged yet": number(unjudged),
  });

function contextWindow(rows) {
  const meters = rows.filter((each) => each.spent || !["question", "tool"].includes(each.trigger));
  const figures = (each) => make("span", { class: "n" }, `${number(each.spent)} of ${number(each.of)}`);
  const row = (each) =>
    make("p", {}, make("span", {}, triggerIn("all", each.trigger)), line(each.spent, each.of), figures(each));
  const heading = make("p", { id: "now-window" }, "Tokens in its context window");
  return make("div", { class: "ledger", role: "group", "aria-labelledby": "now-window" }, heading, meters.map(row));
}

function drawNote(note, data, { pinned, follow }) {
  const other = !pinned && data.live !== data.session.id ? data.sessions.find((each) => each.id === data.live) : null;
  renew(note, other && [other.id, other.title], () =>
    other
      ? [
          `Another session goes on: ${other.project_name}, ${shorten(other.title || other.host, 80)} `,
          make("button", { type: "button", on: { click: follow } }, "Follow it"),
        ]
      : null,
  );
}

// -- keeping still --------------------------------------------------------------------------------------------------

// New rows come above: what somebody reads stays where it is.
function place(feed) {
  const held = scrollY > 0 ? [...feed.children].find((each) => each.getBoundingClientRect().bottom > BAR) : null;
  const top = held?.getBoundingClientRect().top;
  return () => held?.isConnected && scrollBy({ top: held.getBoundingClientRect().top - top, behavior: "instant" });
}

const near = (seconds) => day(seconds).replace(/^(Today|Yesterday)$/, (word) => word.toLowerCase());

const newest = (feed) => Math.max(0, ...[...feed.children].map((each) => Number(each.dataset.at) || 0));

// -- before anything happened ---------------------------------------------------------------------------------------

function welcome() {
  const step = (...words) => make("li", {}, ...words);
  return empty(
    make("h2", {}, "No agent has reported anything yet"),
    make(
      "ol",
      { class: "steps" },
      step(
        "Wire an agent: ",
        make("code", {}, "foreword install claude-code"),
        " (or opencode, codex, gemini, copilot, cursor)",
      ),
      step("Fill the memory from what is there: ", make("code", {}, "foreword init"), " in a project"),
      step("Start the agent there, and ask it something"),
    ),
    make(
      "p",
      {},
      "What it is given then appears here by itself: at the start of its session and for each prompt, word for word, with what it cost, why it was chosen and whether it was used.",
    ),
  );
}
