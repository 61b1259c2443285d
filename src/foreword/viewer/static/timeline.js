// The page "Timeline": sessions day by day, each with what came of it; one of them opened is its story.

import { get } from "./ask.js";
import { fill, make } from "./dom.js";
import {
  anew,
  clock,
  coded,
  day,
  empty,
  many,
  memory,
  number,
  projects,
  reorder,
  standing,
  trouble,
  walkable,
} from "./parts.js";
import { changes, fate, tell, unsaid } from "./story.js";

export const title = "Timeline";

const PAGE = 30;
const MOST = 200; // that one answer holds
const LATEST = 60; // that are looked at again when something was committed: who goes on comes first
const REST = 1_000; // milliseconds between two looks at what has changed

export async function show(root, page) {
  if (page.path[1]) return tell(root, page, page.path[1]);
  const project = page.query.get("project") ?? "";
  const before = (page.back && history.state?.place) || {}; // where it was left, by whatever way
  const place = { ...before };
  let keeping = 0;
  const list = make("div", { class: "days", "aria-busy": "true" });
  const older = make("button", { type: "button", hidden: true, on: { click: () => more() } }, "Older sessions");
  const rows = new Rows(list, { open });
  const walk = walkable(() => list.querySelectorAll(".session"));
  let next = "";
  let loading = false;
  let turn = Promise.resolve();
  let looked = performance.now();
  let waiting = 0;

  root.append(make("div", { class: "head" }, make("h1", {}, title)), list, make("p", { class: "older" }, older));
  projects(page, { change: (key) => page.go(key ? `/timeline?project=${encodeURIComponent(key)}` : "/timeline") }).then(
    (choice) => root.firstChild.append(choice),
    () => {},
  );
  page.keys({
    j: ["Next session", walk.next],
    k: ["Previous session", walk.previous],
    o: ["Its whole story", () => opened()],
    Enter: ["Its whole story", () => opened()],
  });

  await first();
  const left = before.id && rows.node(before.id);
  if (left) walk.choose(left); // how far it was scrolled, the frame knows
  list.addEventListener("focusin", ({ target }) => keep({ id: target.closest(".session")?.dataset.session ?? "" }));
  list.addEventListener("click", write, true); // before a link is followed
  addEventListener("beforeunload", write, { signal: page.signal }); // a reload leads there too
  page.live(later);
  const end = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && more(), {
    rootMargin: "400px",
  });
  end.observe(older);
  page.signal.addEventListener("abort", () => {
    end.disconnect();
    clearTimeout(waiting);
  });

  async function first() {
    const told = await ask({ limit: Math.min(MOST, Math.max(PAGE, before.loaded ?? 0)) });
    next = told.next;
    list.removeAttribute("aria-busy");
    rows.put(told.sessions);
    while (next && rows.told.length < (before.loaded ?? 0)) put(await ask({ before: next, limit: MOST }));
    if (!rows.told.length) list.append(nothing(project));
    older.hidden = !next;
    keep({ loaded: rows.told.length });
    page.say(many(rows.told.length, "session"));
  }

  // What comes behind the last one; asked for once, however often the end of the list is seen.
  function more() {
    if (!next || loading) return;
    loading = true;
    older.nextElementSibling?.remove(); // what went wrong before
    inTurn(async () => {
      put(await ask({ before: next, limit: PAGE }).finally(() => (loading = false)));
      page.say(`${many(rows.told.length, "session")}${next ? "" : ", all there are"}`);
      end.unobserve(older); // what is still in sight is told anew
      end.observe(older);
    }).catch((error) => error.name !== "AbortError" && older.after(trouble(error)));
  }

  function put(told) {
    next = told.next;
    rows.put([...rows.told, ...told.sessions.filter((each) => !rows.has(each.id))]);
  }

  function later() {
    waiting ||= setTimeout(again, Math.max(0, REST - (performance.now() - looked)));
  }

  // Something was committed: the sessions that are shown may have gone on, and there may be new ones.
  function again() {
    waiting = 0;
    looked = performance.now();
    inTurn(async () => {
      const told = await ask({ limit: Math.min(LATEST, Math.max(PAGE, rows.told.length)) });
      const fresh = new Set(told.sessions.map((each) => each.id));
      const last = told.sessions.at(-1)?.last ?? 0;
      const behind = told.next ? rows.told.filter((each) => !fresh.has(each.id) && each.last <= last) : [];
      if (!behind.length) next = told.next;
      rows.put([...told.sessions, ...behind]);
      if (!rows.told.length) fill(list, nothing(project));
    }).catch(() => {}); // the frame tells when the viewer is closed; what is shown stays
  }

  // One answer after the other is put into the list, and the button is there as long as there is more.
  function inTurn(work) {
    const mine = turn.then(work).finally(() => {
      older.hidden = !next;
      keep({ loaded: rows.told.length });
    });
    turn = mine.catch(() => {});
    return mine;
  }

  function ask(query) {
    return get("/api/timeline", { project, ...query }, { signal: page.signal });
  }

  function opened() {
    const chosen = list.querySelector(".session.chosen") ?? document.activeElement.closest(".session");
    if (chosen) open(chosen.dataset.session);
  }

  function open(id) {
    keep({ id });
    write();
    page.go(`/timeline/${encodeURIComponent(id)}`);
    history.replaceState({ ...history.state, from: "timeline" }, "");
  }

  // Kept as it changes, not when the page is left: by then the address may be another's. A key that is held changes it
  // thirty times a second, and a browser takes some two hundred of these in ten.
  function keep(some) {
    Object.assign(place, some);
    if (!keeping) keeping = setTimeout(write, 300);
  }

  function write() {
    clearTimeout(keeping);
    keeping = 0;
    if (!page.signal.aborted) history.replaceState({ ...history.state, place: { ...place } }, "");
  }
}

// The sessions that are shown, under their days. What has not changed keeps its nodes, and nothing jumps.
class Rows {
  constructor(list, { open }) {
    this.list = list;
    this.open = open;
    this.told = [];
    this.nodes = new Map(); // id -> its node and what it was made of
    this.days = new Map(); // name -> its section
  }

  has = (id) => this.nodes.has(id);
  node = (id) => this.nodes.get(id)?.node;

  put(sessions) {
    const anchor = this.anchor();
    const shown = new Set(sessions.map((each) => each.id));
    for (const each of sessions) this.made(each);
    for (const id of this.nodes.keys()) if (!shown.has(id)) this.nodes.delete(id);
    this.told = sessions;
    const held = document.activeElement;
    this.lay();
    if (held !== document.activeElement && held.isConnected) held.focus({ preventScroll: true }); // a row that moves loses it
    anchor();
  }

  // A row, told anew where what it tells has changed; it stays the same node, and what has the focus in it keeps that.
  made(session) {
    const told = JSON.stringify(session);
    const known = this.nodes.get(session.id) ?? { node: rowOf(session) };
    const draw = () => fill(known.node, content(session, this.open));
    if (known.told !== told && !anew(known.node, draw)) known.node.focus({ preventScroll: true });
    this.nodes.set(session.id, { node: known.node, told });
  }

  // Days and rows in their order, each moved only where it must.
  lay() {
    const days = Map.groupBy(this.told, (session) => day(session.last));
    const before = this.days;
    this.days = new Map();
    for (const [name, some] of days) {
      const section = before.get(name) ?? make("section", { class: "day", "aria-label": name }, make("h2"));
      const [heading] = section.children;
      const count = many(some.length, "session");
      if (section.count !== count) fill(heading, name, " ", make("span", { class: "dim" }, count));
      section.count = count;
      reorder(section, [heading, ...some.map((each) => this.node(each.id))]);
      this.days.set(name, section);
    }
    reorder(this.list, [...this.days.values()]);
  }

  // Whatever is put above it, the row in the middle of somebody's reading stays where it is.
  anchor() {
    const held = document.activeElement?.closest?.(".session")?.dataset.session;
    const seen = [...this.list.querySelectorAll(".session")].find((each) => each.getBoundingClientRect().bottom > 60);
    const id = scrollY > 0 ? (held ?? seen?.dataset.session) : null;
    const top = id && this.node(id)?.getBoundingClientRect().top;
    return () => {
      const now = id && this.node(id);
      if (now) scrollBy(0, now.getBoundingClientRect().top - top);
    };
  }
}

const rowOf = (session) => make("article", { class: "card session", "data-session": session.id, tabindex: "-1" });

function content(session, open) {
  const link = make(
    "a",
    { href: `/timeline/${encodeURIComponent(session.id)}`, on: { click: followed } },
    session.title || unsaid(session),
  );
  function followed(event) {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open(session.id);
  }
  const figures = [span(session), session.project_name, session.host].map((each) => make("span", {}, each));
  return [
    make("h3", {}, link),
    make("p", { class: "figures" }, standing(session.running, session.ended), figures, injected(session)),
    session.summary ? make("p", {}, session.summary) : null,
    session.work ? make("p", { class: "dim" }, session.work) : null,
    lines(session),
  ];
}

const span = ({ started, last }) =>
  clock(started) === clock(last) ? clock(last) : `${clock(started)} – ${clock(last)}`;

function injected({ injected: { items, used, tokens } }) {
  if (!items) return null;
  return make(
    "span",
    { title: `${number(tokens)} tokens` },
    `given ${many(items, "memory", "memories")}`,
    used ? [", ", make("span", { class: "used" }, `✓ ${number(used)} used`)] : null,
  );
}

// What came of it, a line for each sort of thing.
function lines(session) {
  const sorts = [
    ["Changed", "changed", (some) => changes(some)],
    ["Failed", "failures", (some) => some.map(failure)],
    ["Decided", "decisions", (some) => some.map(link)],
    ["Rules", "rules", (some) => some.map(link)],
    ["Learned", "learned", (some) => some.map(link)],
    ["Still open", "next", (some) => some.map((each) => make("li", {}, each))],
  ];
  const told = sorts.filter(([, name]) => session[name].length);
  return told.length
    ? make(
        "dl",
        { class: "lines" },
        told.map(([label, name, list]) => [
          make("dt", {}, label),
          make("dd", {}, make("ul", {}, list(session[name]), rest(session.more[name]))),
        ]),
      )
    : null;
}

const rest = (count) => (count ? make("li", { class: "dim" }, `and ${number(count)} more`) : null);

const link = (each) =>
  make(
    "li",
    {},
    each.id ? memory(each.id, each.title) : each.title,
    each.status && each.status !== "active" ? make("span", { class: "dim" }, ` (${each.status})`) : null,
  );

function failure(each) {
  return make("li", {}, memory(each.id, each.title), " ", fate(each));
}

function nothing(project) {
  return empty(
    make("p", {}, project ? "No session of this project has been seen yet." : "No session has been seen yet."),
    make(
      "p",
      {},
      coded(
        "Sessions appear here as soon as an agent reports them: `foreword install claude-code` (or another host) wires one.",
      ),
    ),
  );
}
