// Show the page "Timeline": sessions day by day, each with what came of it; /timeline/SESSION is its story.

import { get } from "./api.js";
import { button, clickedLink, drawList, fill, h, holdScroll, walkable } from "./dom.js";
import { formatDay, formatNumber, formatSpan, formatTokens, pluralize, projectPath, storyPath } from "./format.js";
import {
  changedFiles,
  code,
  empty,
  errorBox,
  failureState,
  memoryLink,
  projectChoice,
  sessionState,
  sessionTitle,
} from "./parts.js";
import { showStory } from "./story.js";

export const title = "Timeline";

const PAGE = 30;
const MOST = 200; // sessions in one answer
const LATEST = 60; // sessions that are loaded again after a commit: running ones come first
const REST = 1_000; // milliseconds between two requests after commits

export async function show(root, page) {
  if (page.path[1]) return showStory(root, page, page.path[1]);
  const project = page.query.get("project") ?? "";
  const before = (page.back && history.state?.place) || {};
  const place = { ...before }; // where the way back leads: how many sessions are listed, and the one that was opened
  let saving = 0;
  let sessions = [];
  let next = "";
  let isLoading = false;
  let queue = Promise.resolve();
  const list = h("div.days", { "aria-busy": "true" });
  const older = button("Older sessions", loadMore, { hidden: true });
  const rows = () => [...list.querySelectorAll(".session")];
  const rowOf = (id) => rows().find((each) => each.dataset.key === id);
  const walk = walkable(rows);
  const load = (query) => get("/api/timeline", { project, ...query }, { signal: page.signal });

  root.append(h("div.head", h("h1", title)), list, h("p.older", older));
  projectChoice(page, { change: (key) => page.go(key ? projectPath(key) : "/timeline") }).then(
    (choice) => root.firstChild.append(choice),
    () => {},
  );
  const openChosen = () =>
    open((list.querySelector(".session.chosen") ?? document.activeElement.closest(".session"))?.dataset.key);
  page.keys({
    j: ["Next session", walk.next],
    k: ["Previous session", walk.previous],
    o: ["Its whole story", openChosen],
    Enter: ["Its whole story", openChosen],
  });
  await loadFirst();
  const lastRow = before.id && rowOf(before.id);
  if (lastRow) walk.choose(lastRow); // app.js scrolls
  list.addEventListener("focusin", ({ target }) => save({ id: target.closest(".session")?.dataset.key ?? "" }));
  list.addEventListener("click", writePlace, true); // before a link is followed
  addEventListener("beforeunload", writePlace, { signal: page.signal });
  page.live(update, REST);
  const end = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && loadMore(), {
    rootMargin: "400px",
  });
  end.observe(older);
  page.signal.addEventListener("abort", () => end.disconnect());

  async function loadFirst() {
    const data = await load({ limit: Math.min(MOST, Math.max(PAGE, before.loaded ?? 0)) });
    list.removeAttribute("aria-busy");
    draw(data.sessions, data.next);
    while (next && sessions.length < (before.loaded ?? 0)) appendAnswer(await load({ before: next, limit: MOST }));
    page.announce(pluralize(sessions.length, "session"));
  }

  // Load the next sessions, once, however often the end of the list is seen.
  function loadMore() {
    if (!next || isLoading) return;
    isLoading = true;
    older.nextElementSibling?.remove(); // an error
    enqueue(async () => {
      appendAnswer(await load({ before: next, limit: PAGE }).finally(() => (isLoading = false)));
      page.announce(`${pluralize(sessions.length, "session")}${next ? "" : ", all there are"}`);
      end.unobserve(older); // reports again if it is still in sight
      end.observe(older);
    }).catch((error) => error.name !== "AbortError" && older.after(errorBox(error)));
  }

  function appendAnswer(data) {
    const known = new Set(sessions.map((each) => each.id));
    draw([...sessions, ...data.sessions.filter((each) => !known.has(each.id))], data.next);
  }

  // Load the latest sessions again, and keep those behind them.
  function update() {
    return enqueue(async () => {
      const data = await load({ limit: Math.min(LATEST, Math.max(PAGE, sessions.length)) });
      const fresh = new Set(data.sessions.map((each) => each.id));
      const last = data.sessions.at(-1)?.last ?? 0;
      const behind = data.next ? sessions.filter((each) => !fresh.has(each.id) && each.last <= last) : [];
      draw([...data.sessions, ...behind], behind.length ? next : data.next);
    });
  }

  // Answers enter the list one after the other.
  function enqueue(work) {
    const result = queue.then(work);
    queue = result.catch(() => {});
    return result;
  }

  function draw(loaded, following) {
    const restore = holdScroll(rows(), document.activeElement?.closest?.(".session"));
    sessions = loaded;
    next = following;
    if (loaded.length) drawDays(list, loaded, open);
    else fill(list, nothing(project));
    older.hidden = !next;
    save({ loaded: loaded.length });
    restore();
  }

  function open(id) {
    if (!id) return;
    save({ id });
    writePlace();
    page.go(storyPath(id));
    history.replaceState({ ...history.state, from: "timeline" }, "");
  }

  // Browsers allow some two hundred of these in ten seconds, and a held key changes the place thirty times a second.
  function save(changes) {
    Object.assign(place, changes);
    if (!saving) saving = setTimeout(writePlace, 300);
  }

  function writePlace() {
    clearTimeout(saving);
    saving = 0;
    if (!page.signal.aborted) history.replaceState({ ...history.state, place: { ...place } }, "");
  }
}

// Headings of days and sessions, in one list.
function drawDays(list, sessions, open) {
  list.querySelector(".empty")?.remove();
  const days = [...Map.groupBy(sessions, (session) => formatDay(session.last))];
  const entries = days.flatMap(([day, group]) => [
    { key: day, heading: [day, " ", h("span.dim", pluralize(group.length, "session"))], data: group.length },
    ...group.map((session) => ({ key: session.id, session, data: session })),
  ]);
  drawList(list, entries, {
    key: ({ key }) => key,
    data: ({ data }) => data,
    create: ({ session }) =>
      session ? h("article.card.session", { "data-session": session.id, tabindex: "-1" }) : h("h2.day"),
    draw: ({ session, heading }) => heading ?? sessionCard(session, open),
  });
}

function sessionCard(session, open) {
  const follow = (event) => {
    if (!clickedLink(event)) return;
    event.preventDefault();
    open(session.id);
  };
  const { started, last, project_name, host, injected } = session;
  const usage = injected.used ? [", ", h("span.used", `✓ ${formatNumber(injected.used)} used`)] : null;
  return [
    h("h3", h("a", { href: storyPath(session.id), on: { click: follow } }, sessionTitle(session))),
    h(
      "p.figures",
      sessionState(session),
      [formatSpan(started, last), project_name, host].map((each) => h("span", each)),
      injected.shown
        ? h("span", { title: formatTokens(injected.tokens) }, `${pluralize(injected.shown, "item")} injected`, usage)
        : null,
    ),
    session.summary ? h("p", session.summary) : null,
    session.work ? h("p.dim", session.work) : null,
    outcomes(session),
  ];
}

// What came of a session, a line for each kind.
function outcomes(session) {
  const kinds = [
    ["Changed", "changed", changedFiles],
    [
      "Failed",
      "failures",
      (items) => items.map((each) => h("li", memoryLink(each.id, each.title), " ", failureState(each))),
    ],
    ["Decided", "decisions", (items) => items.map(outcome)],
    ["Rules", "rules", (items) => items.map(outcome)],
    ["Learned", "learned", (items) => items.map(outcome)],
    ["Still open", "next", (items) => items.map((each) => h("li", each))],
  ].filter(([, name]) => session[name].length);
  const more = (count) => (count ? h("li.dim", `and ${formatNumber(count)} more`) : null);
  const row = ([label, name, draw]) => [
    h("dt", label),
    h("dd", h("ul", draw(session[name]), more(session.more[name]))),
  ];
  return kinds.length ? h("dl.lines", kinds.map(row)) : null;
}

const outcome = ({ id, title: text, status }) =>
  h("li", id ? memoryLink(id, text) : text, status && status !== "active" ? h("span.dim", ` (${status})`) : null);

const nothing = (project) =>
  empty(
    h("p", project ? "No session of this project yet." : "No session yet."),
    h("p", code("Sessions appear here as soon as an agent reports them: `foreword install claude-code` connects one.")),
  );
