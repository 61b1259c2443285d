// Show the page "Now": the running session, trigger by trigger, as it happens; /now/SESSION shows a past one.

import { get } from "./api.js";
import { button, drawList, fill, h, holdScroll, renew, walkable } from "./dom.js";
import {
  formatAge,
  formatClock,
  formatDate,
  formatDay,
  formatNumber,
  livePath,
  nameTrigger,
  pluralize,
  projectPath,
  shorten,
  storyPath,
} from "./format.js";
import { age, code, empty, errorBox, keepFocus, meterLine, sessionState, totals, updateAges } from "./parts.js";
import { describeTrigger, drawCard, toggle, tryAgain } from "./now/card.js";

export const title = "Now";

const MORE = 20; // triggers at a time
const MOST = 200; // ... and in all
const QUIET = 120; // seconds after which the page leaves a session for a running one
const FRESH = 20_000; // milliseconds that a new trigger is marked
const BAR = 60; // pixels at the top where the bar hides what lies below it

const folds = new Map(); // folds by trigger, and the trigger chosen last: the way back finds both
let lastChosen = "";

export async function show(root, page) {
  const pinned = page.path[1] ?? "";
  const head = h("div.now-head");
  const note = h("p.now-note");
  const above = button("", scrollToTop, { class: "main now-above", hidden: true });
  const feed = h("ol.feed", { "aria-label": "Newest first" });
  const footer = h("div");
  const freshUntil = new Map(); // trigger -> time
  const unseen = new Set(); // new triggers above what is read
  let limit = MORE;
  let session = pinned;
  let known = null; // ids of the triggers that are shown
  let shown = null; // the answer that is shown
  let sent = 0;
  let answered = 0;

  async function load() {
    sent += 1;
    const request = sent;
    const wanted = session;
    const data = await get("/api/live", { session, limit }, { signal: page.signal });
    if (request < answered || wanted !== session) return; // a later answer is shown already
    answered = request;
    if (!pinned && isOver(data)) {
      session = data.live;
      known = null;
      return load();
    }
    session ||= data.session?.id ?? "";
    draw(data);
  }

  // Whether to show the running session instead; two running sessions do not take turns.
  const isOver = ({ session: shownSession, live }) =>
    shownSession && live !== shownSession.id && (shownSession.ended || Date.now() / 1000 - shownSession.last > QUIET);

  function draw(data) {
    shown = data;
    if (!data.session) return fill(root, h("h1", title), welcome());
    if (!feed.isConnected) fill(root, head, note, above, feed, footer);
    const restore = holdScroll([...feed.children]);
    drawHead(head, data, { pinned, go: page.go });
    if (pinned) page.name(titleOf(data.session));
    drawNote(note, data, { pinned, follow });
    drawFeed(data);
    footer.querySelector(".trouble")?.remove();
    renew(footer, [data.more, limit >= MOST], () => (data.more ? [older()] : []));
    restore();
  }

  function drawFeed(data) {
    const before = known;
    known = new Set(data.triggers.map((each) => each.id));
    const newest = Math.max(0, ...[...feed.children].map((each) => Number(each.dataset.at) || 0));
    const added = before ? data.triggers.filter((each) => !before.has(each.id) && each.at >= newest) : [];
    for (const each of added) freshUntil.set(each.id, performance.now() + FRESH);
    const latest = data.triggers.find((each) => each.tokens);
    const restore = holdScroll([...feed.children]);
    feed.querySelector(".empty")?.parentElement.remove();
    const isNew = (each) => (freshUntil.get(each.id) ?? 0) > performance.now();
    drawList(feed, data.triggers, {
      key: (each) => each.id,
      data: (each) => [each, isNew(each), each === latest],
      create: (each) => h("li.card.trigger", { "data-at": each.at, tabindex: "-1" }),
      draw: (each) =>
        drawCard(each, {
          folds,
          page,
          session: data.session,
          isNew: isNew(each),
          isFirst: !before && each === latest,
          isLatest: each === latest,
        }),
    });
    if (!data.triggers.length)
      fill(
        feed,
        h("li", empty("No context has been injected into this session yet: it appears here at the next prompt.")),
      );
    restore();
    for (const each of added) unseen.add(each.id);
    countAbove();
    if (!added.length) return;
    page.announce(`New: ${added.map(describeTrigger).join("; ")}`);
    setTimeout(() => !page.signal.aborted && shown && drawFeed(shown), FRESH + 100);
  }

  // Count the new triggers above what is read.
  function countAbove() {
    for (const id of unseen) {
      const card = cardOf(id);
      if (!card || card.getBoundingClientRect().bottom > BAR) unseen.delete(id);
    }
    above.hidden = !unseen.size;
    fill(above, unseen.size ? `↑ ${pluralize(unseen.size, "new entry", "new entries")}` : null);
  }

  function scrollToTop() {
    scrollTo({ top: 0, behavior: "instant" });
    walk.choose(feed.firstElementChild);
  }

  const cardOf = (id) => [...feed.children].find((each) => each.dataset.key === id);

  function older() {
    if (limit >= MOST) return h("p.dim", `The newest ${formatNumber(MOST)} are shown.`);
    return button("Show older ones", loadOlder);
  }

  async function loadOlder() {
    const count = feed.children.length;
    const before = limit;
    footer.querySelector(".trouble")?.remove();
    limit = Math.min(MOST, limit + MORE);
    known = null; // older triggers are not new
    try {
      await load();
      feed.children[count]?.focus();
    } catch (error) {
      if (error.name === "AbortError") return;
      limit = before;
      footer.append(errorBox(error));
    }
  }

  async function follow() {
    session = shown.live;
    known = null;
    await load().catch(() => {});
    feed.querySelector(".trigger")?.focus(); // the button is gone
  }

  const switchTo = (by) => {
    const all = shown?.sessions ?? [];
    const next = all[all.findIndex((each) => each.id === shown.session.id) + by];
    if (next) page.go(livePath(next.id));
    else page.announce(by > 0 ? "This is the oldest of the last sessions" : "This is the newest session");
  };
  const walk = walkable(() => feed.querySelectorAll(".trigger"), {
    onChoose: (node) => (lastChosen = node.dataset.key),
  });
  const chosen = () =>
    document.activeElement?.closest?.(".trigger") ?? feed.querySelector(".chosen") ?? feed.querySelector(".trigger");
  const openText = () => toggle(chosen()?.querySelector("details.text"));
  const openMemory = () =>
    (document.activeElement.closest(".item") ?? chosen())?.querySelector(".item-title a, .silence a")?.click();
  const tryChosen = () => {
    const trigger = shown?.triggers?.find((each) => each.id === chosen()?.dataset.key);
    tryAgain(trigger, shown?.session, page);
  };
  page.keys({
    j: ["Next entry", walk.next],
    k: ["Previous entry", walk.previous],
    o: ["The text as the agent saw it", openText],
    Enter: ["The text as the agent saw it", openText],
    i: ["Its items", () => toggle(chosen()?.querySelector("details.of-items"))],
    m: ["Open its memory", openMemory],
    t: ["Try it again", tryChosen],
    "[": ["Newer session", () => switchTo(-1)],
    "]": ["Older session", () => switchTo(1)],
    l: ["The running session", () => page.go("/now")],
  });
  page.live(load);
  addEventListener("scroll", () => unseen.size && countAbove(), { passive: true, signal: page.signal });
  updateAges(root, page.signal);
  await load();
  const lastCard = page.back && cardOf(lastChosen);
  if (lastCard) walk.choose(lastCard);
}

// -- head -------------------------------------------------------------------------------------------------------------

const titleOf = (session) => session.title || "A session without a prompt";

function drawHead(head, data, { pinned, go }) {
  const { session } = data;
  if (!head.hasChildNodes()) fill(head, h("div.head"), h("div.now-about"));
  const [top, about] = head.children;
  const isChoosing = top.querySelector("select") === document.activeElement && top.session === session.id;
  const titles = data.sessions.map((each) => [each.id, each.title]);
  if (!isChoosing)
    renew(top, [session.id, session.title, titles], () => [h("h1", titleOf(session)), sessionChoice(data, go)]);
  top.session = session.id;
  renew(about, [session, data.live], () => [
    h(
      "p.figures",
      sessionState(session),
      h("a", { href: projectPath(session.project) }, session.project_name),
      h("span", session.host || "unknown agent"),
      h(
        "span",
        { title: formatDate(session.started) },
        `began ${dayWithinText(session.started)} at ${formatClock(session.started)}`,
      ),
      h("span", "last event ", age(session.last)),
      h("span", pluralize(session.events, "event")),
      h("a", { href: storyPath(session.id) }, "the whole story"),
      pinned && data.live !== session.id ? h("a", { href: "/now" }, "the running session") : null,
    ),
    session.off ? h("p.warn", `Injection is switched off in this project (${session.off}).`) : null,
    session.totals.shown ? h("div.now-sums", sums(session.totals), windowBudget(session.window)) : null,
  ]);
}

const dayWithinText = (seconds) => formatDay(seconds).replace(/^(Today|Yesterday)$/, (word) => word.toLowerCase());

function sessionChoice({ session, sessions }, go) {
  const all = sessions.some((each) => each.id === session.id) ? sessions : [session, ...sessions];
  const label = (each) => `${each.project_name} · ${shorten(each.title || each.host, 60)} · ${formatAge(each.last)}`;
  const select = keepFocus(h("select#session", { on: { change: () => go(livePath(select.value)) } }));
  fill(
    select,
    all.map((each) => h("option", { value: each.id, selected: each.id === session.id }, label(each))),
  );
  return h("label.field.now-switch", { "data-of": session.id }, h("span", "Session"), select);
}

const sums = ({ tokens, shown, memories, used, ignored, unjudged }) =>
  totals({
    "tokens injected": formatNumber(tokens),
    "items injected": formatNumber(shown),
    "different memories": formatNumber(memories),
    used: formatNumber(used),
    "not used": formatNumber(ignored),
    "not judged yet": formatNumber(unjudged),
  });

function windowBudget(rows) {
  const some = rows.filter((each) => each.spent || !["question", "tool"].includes(each.trigger));
  const row = ({ trigger, spent, of }) =>
    h(
      "p",
      h("span", nameTrigger("all", trigger)),
      meterLine(spent, of),
      h("span.n", `${formatNumber(spent)} of ${formatNumber(of)}`),
    );
  const heading = h("p#now-window", "Tokens in its context window");
  return h("div.budget", { role: "group", "aria-labelledby": "now-window" }, heading, some.map(row));
}

function drawNote(note, data, { pinned, follow }) {
  const other = !pinned && data.live !== data.session.id ? data.sessions.find((each) => each.id === data.live) : null;
  renew(note, other && [other.id, other.title], () =>
    other
      ? [
          `Another session is running: ${other.project_name}, ${shorten(other.title || other.host, 80)} `,
          button("Follow it", follow),
        ]
      : [],
  );
}

const welcome = () =>
  empty(
    h("h2", "No agent has reported anything yet"),
    h(
      "ol.steps",
      h("li", code("Connect an agent: `foreword install claude-code` (or opencode, codex, gemini, copilot, cursor)")),
      h("li", code("Fill the memory from what is there: `foreword init` in a project")),
      h("li", "Start the agent there, and ask it something"),
    ),
    h(
      "p",
      "The context that it gets appears here: at session start and for each prompt, word for word, with its tokens, why each item was chosen and whether it was used.",
    ),
  );
