"""The viewer's gate, request by request: forged ones against every route, who may connect, and when it closes.

The routes come from the app itself, so a new one is tried by the same shapes. A shape begins as what the viewer's own
page would send, which is let in, and changes one thing.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from foreword.cli.view import HOLD_EVERY, _anew
from foreword.client import Client
from foreword.errors import BadRequest, Conflict, ForewordError
from foreword.hook import build
from foreword.http import Request
from foreword.paths import Home
from foreword.web import FIELDS, is_page
from foreword.web.files import names
from foreword.web.gate import LASTS, Gate, Refused
from foreword.web.peers import _looked_up, owner_of
from foreword.web.routes import routes_of
from foreword.worker import life
from foreword.worker.keeper import Keeper
from tests.flow.conftest import CLEAN, end_worker, until, wait_for

CANARY = "wombats dig at night"
DAY = 86_400.0
KINDS_OF_FORM = ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "")
STRANGE = ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", "GETX")
ROUTES = routes_of(None, None)  # type: ignore[arg-type] # nothing is asked of them here
EVERY = [(path, method) for path, methods in ROUTES.items() for method in methods]


@dataclass(frozen=True)
class Asked:
    """What is sent, byte for byte."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""
    version: str = "HTTP/1.1"

    def but(self, **fields: str | None) -> Asked:
        """The same with other fields (an underscore is a hyphen); None leaves one out."""
        wanted = {name.replace("_", "-").lower(): text for name, text in fields.items()}
        kept = tuple(pair for pair in self.fields if pair[0].lower() not in wanted)
        return replace(self, fields=kept + tuple((name, text) for name, text in wanted.items() if text is not None))

    def also(self, name: str, text: str) -> Asked:
        return replace(self, fields=(*self.fields, (name, text)))

    @property
    def raw(self) -> bytes:
        fields = "".join(f"{name}: {text}\r\n" for name, text in self.fields)
        return f"{self.method} {self.target} {self.version}\r\n{fields}\r\n".encode("latin-1") + self.body


@dataclass(frozen=True)
class Answer:
    status: int
    fields: dict[str, str]
    body: bytes


@dataclass
class Open:
    """A viewer that is open, and the key that a browser would have."""

    home: Home
    client: Client
    port: int
    cookie: str
    holder: str
    id: str  # of a memory: a note, which waits to become something
    session: str = ""
    injection: str = ""
    project: str = ""
    prompt: str = ""  # the key of one that is too long for its card

    def asks(self, path: str, method: str = "GET") -> Asked:
        """What the viewer's own page sends, and is answered."""
        names = {"/static/": "app.js", "/api/sessions/": self.session, "/api/injections/": self.injection}
        names |= {"/api/memories/": self.id, "/now/": self.session, "/timeline/": self.session, "/memories/": self.id}
        names |= {"/api/prompts/": self.prompt}
        more = {"/api/try": {"project": self.project}, "/api/prompts/": {"session": self.session}}
        target = f"{path}{names.get(path, '')}"
        target += f"?{urlencode(more[path])}" if path in more and method == "GET" else ""
        page = is_page(ROUTES, target)
        fields = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": f"foreword-{self.port}={self.cookie}",
            "Sec-Fetch-Site": "none" if page else "same-origin",
            "Sec-Fetch-Mode": "navigate" if page else "cors",
            "Sec-Fetch-Dest": "document" if page else "empty",
        }
        asked = Asked(method, target, tuple(fields.items()))
        if method != "POST":
            return asked
        body = json.dumps(self.told(path)).encode()
        about = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        about["Content-Length"] = str(len(body))
        return replace(asked, fields=(*asked.fields, *about.items()), body=body)

    def told(self, path: str) -> dict[str, Any]:
        """What a change is told: were it let in, it would be done, and something would be different."""
        bodies: dict[str, dict[str, Any]] = {
            "/api/memories/": {"title": "forged"},
            "/api/pin": {"id": self.id},
            "/api/aside": {"ids": [self.id]},
            "/api/tags": {"ids": [self.id], "add": ["forged"]},
            "/api/supersede": {"old": self.id, "title": "forged", "kind": "note"},
            "/api/undo": {"project": self.project},
            "/api/forget": {"ids": [self.id], "yes": True},
            "/api/review": {"do": "promote", "id": self.id, "as": "decision"},
            "/api/try": {"project": self.project, "prompt": "forged"},
        }
        return bodies[path]

    def send(self, raw: bytes, *, host: str = "127.0.0.1") -> Answer:
        with socket.create_connection((host, self.port), timeout=40) as line:
            line.sendall(raw)
            return read(line)

    def token(self) -> str:
        return str(self.client.post("/api/view", {"do": "open"})["url"].partition("token=")[2])


def read(line: socket.socket) -> Answer:
    """An answer, whose lines come until the other end closes; of a stream only the head."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = line.recv(1 << 16)
        if not part:
            break
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(each.split(": ", 1) for each in lines)
    while len(body) < int(fields.get("Content-Length", 0)):
        body += line.recv(1 << 16)
    return Answer(int((*first.split(" "), "0", "0")[1]), fields, body)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """One viewer for all that only try to get in."""
    with held(str(tmp_path_factory.mktemp("shop"))) as here:
        yield here


@contextlib.contextmanager
def held(project: str) -> Iterator[Open]:
    """A viewer of its own worker, held as its command would."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREWORD_HOME", str(home.root))
        life.start(home)
    here = open_(home, project)
    try:
        with holding(here):
            yield furnished(here, project)
    finally:
        end_worker(home)
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def holding(here: Open) -> Iterator[None]:
    """Held as its command would: where a busy machine keeps us from it for too long, it is opened again."""
    ended = threading.Event()

    def hold() -> None:
        while not ended.wait(HOLD_EVERY):
            with contextlib.suppress(ForewordError):  # it is asked again soon
                if here.client.post("/api/view", {"do": "hold", "holder": here.holder}).get("again"):
                    again = {"do": "open", "port": here.port, "key": here.cookie}
                    here.holder = here.client.post("/api/view", again)["holder"]

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def furnished(here: Open, project: str) -> Open:
    """With something behind every route: what can be taken back, and a session that was given something."""
    here.client.post(f"/api/memories/{here.id}", {"body": "and sleep by day"})
    told = {"kind": "decision", "title": "Burrows are kept open", "project_path": project}
    here.client.post("/api/memories", told)
    for event, more in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "burrows " * 200})):
        asked = urlencode({"host": "claude-code", "event": event, "at": time.time()})
        payload = {"session_id": "furnished", "cwd": project, "hook_event_name": event, **more}
        status, _ = here.client._send("POST", f"/api/hook?{asked}", json.dumps(payload).encode())
        assert status == 200

    def given() -> list[dict[str, Any]]:
        return list(here.client.get("/api/injections", session_id="furnished")["injections"])

    wait_for(given)
    here.session, here.injection, here.project = "furnished", given()[0]["id"], given()[0]["project"]
    moments = json.loads(here.send(here.asks("/api/now").raw).body)["moments"]
    here.prompt = next(each["whole"] for each in moments if each["whole"])
    return here


def another(here: Open) -> Open:
    """With another note that waits, whose last change can be taken back."""
    folder = here.project.removeprefix("dir:")
    told = {"kind": "note", "title": f"{CANARY}, and another time", "project_path": folder}
    id = here.client.post("/api/memories", told)["memories"][0]["id"]
    here.client.post(f"/api/memories/{id}", {"body": "and sleep by day"})
    return replace(here, id=id)


def open_(home: Home, project: str = "") -> Open:
    client = Client(home, seconds=20)
    told = {"kind": "note", "title": CANARY, "project_path": project or str(home.root.parent)}
    id = client.post("/api/memories", told)["memories"][0]["id"]
    got = client.post("/api/view", {"do": "open"})
    return Open(home, client, got["port"], redeemed(got["url"], got["port"]), got["holder"], id)


def redeemed(url: str, port: int) -> str:
    """The cookie that a link gives."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(line):
        line.request("GET", f"/{url.partition('/?')[2] and '?'}{url.partition('/?')[2]}")
        got = line.getresponse()
        assert got.status == 200, got.read()
        name, _, rest = got.headers["Set-Cookie"].partition("=")
    assert name == f"foreword-{port}"
    assert set(rest.split("; ")[1:]) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    return rest.partition(";")[0]


# -- sixteen shapes and more, against every route --------------------------------------------------------------------

Shape = Callable[[Asked, Open], Asked]
SHAPES: dict[str, Shape] = {
    "another host": lambda asked, _: asked.but(host="evil.example"),
    "a rebound name with our port": lambda asked, here: asked.but(host=f"evil.example:{here.port}"),
    "another port": lambda asked, here: asked.but(host=f"127.0.0.1:{here.port + 1}"),
    "no port": lambda asked, _: asked.but(host="127.0.0.1"),
    "localhost": lambda asked, here: asked.but(host=f"localhost:{here.port}"),
    "the address of version six": lambda asked, here: asked.but(host=f"[::1]:{here.port}"),
    "every address": lambda asked, here: asked.but(host=f"0.0.0.0:{here.port}"),
    "no host": lambda asked, _: asked.but(host=None),
    "two hosts": lambda asked, _: asked.also("Host", "evil.example"),
    "a whole address of another host": lambda asked, _: replace(asked, target=f"http://evil.example{asked.target}"),
    "a whole address of ours": lambda asked, here: replace(asked, target=f"http://127.0.0.1:{here.port}{asked.target}"),
    "an old request without a host": lambda asked, _: replace(asked.but(host=None), version="HTTP/1.0"),
    "a foreign origin": lambda asked, _: asked.but(origin="https://evil.example"),
    "no origin that it would tell": lambda asked, _: asked.but(origin="null"),
    "an origin on another port": lambda asked, here: asked.but(origin=f"http://127.0.0.1:{here.port + 1}"),
    "an encrypted origin": lambda asked, here: asked.but(origin=f"https://127.0.0.1:{here.port}"),
    "an origin that begins like ours": lambda asked, here: asked.but(
        origin=f"http://127.0.0.1:{here.port}.evil.example"
    ),
    "two origins": lambda asked, here: asked.but(origin=f"http://127.0.0.1:{here.port}").also("Origin", "null"),
    "of another site": lambda asked, _: asked.but(sec_fetch_site="cross-site"),
    "of another port of this machine": lambda asked, _: asked.but(sec_fetch_site="same-site"),
    "without a word of its site": lambda asked, _: asked.but(sec_fetch_site=None),
    "in an inner frame": lambda asked, _: asked.but(sec_fetch_dest="iframe"),
    "in a frame": lambda asked, _: asked.but(sec_fetch_dest="frame"),
    "as an object": lambda asked, _: asked.but(sec_fetch_dest="object"),
    "embedded": lambda asked, _: asked.but(sec_fetch_dest="embed"),
    "as a worker": lambda asked, _: asked.but(sec_fetch_dest="serviceworker"),
    "without a cookie": lambda asked, _: asked.but(cookie=None),
    "with an empty cookie": lambda asked, here: asked.but(cookie=f"foreword-{here.port}="),
    "with a wrong cookie": lambda asked, here: asked.but(cookie=f"foreword-{here.port}={'x' * len(here.cookie)}"),
    "with half of the cookie": lambda asked, here: asked.but(cookie=f"foreword-{here.port}={here.cookie[:20]}"),
    "with the cookie of another port": lambda asked, here: asked.but(cookie=f"foreword-{here.port + 1}={here.cookie}"),
    "with the cookie twice": lambda asked, here: asked.but(
        cookie=f"foreword-{here.port}={here.cookie}; foreword-{here.port}={here.cookie}"
    ),
    "with two lines of cookies": lambda asked, _: asked.also("Cookie", "a=b"),
    "with a token for a cookie": lambda asked, here: asked.but(cookie=f"foreword-{here.port}={here.token()}"),
    "with a token behind the path": lambda asked, here: replace(
        asked.but(cookie=None), target=f"{asked.target}{'x' if asked.target == '/' else ''}?token={here.token()}"
    ),
    "with a token for a bearer": lambda asked, here: asked.but(cookie=None, authorization=f"Bearer {here.token()}"),
    "to upgrade it": lambda asked, _: asked.but(
        upgrade="websocket", connection="Upgrade", sec_websocket_key="dGhlIHNhbXBsZQ==", sec_websocket_version="13"
    ),
    "in chunks": lambda asked, _: replace(
        asked.but(content_length=None, transfer_encoding="chunked"), body=b"2\r\n{}\r\n0\r\n\r\n"
    ),
    "of two lengths": lambda asked, _: asked.but(content_length="0").also("Content-Length", "5"),
    "of a length that is none": lambda asked, _: asked.but(content_length="-1"),
}


# What is no request that anybody would have to understand is refused before the gate looks at it; and a whole address
# is the path of no route. Everything else is the gate's to refuse.
NO_REQUEST = (
    "two hosts", "two origins", "with two lines of cookies", "in chunks", "of two lengths", "of a length that is none",
)  # fmt: skip
NO_ROUTE = ("a whole address of another host", "a whole address of ours")


@pytest.mark.parametrize("name", SHAPES)
def test_no_route_answers_a_forged_request(opened: Open, name: str) -> None:
    before = stored(opened.home)
    for path, method in EVERY:
        asked = SHAPES[name](opened.asks(path, method), opened)
        allowed = (400,) if name in NO_REQUEST else (403, 404) if name in NO_ROUTE else (403,)
        refused(opened.send(asked.raw), (asked.method, asked.target), status=allowed)
    assert stored(opened.home) == before


def test_what_the_page_itself_sends_is_answered_so_the_shapes_are_what_is_refused(opened: Open) -> None:
    for path, method in EVERY:
        here = another(opened) if method == "POST" else opened
        before = stored(here.home)
        got = here.send(here.asks(path, method).raw)
        assert got.status == 200, (path, method, got.body)
        assert (stored(here.home) != before) == (method == "POST" and path != "/api/try"), (
            path,
            "what it does is done",
        )
        headed(got)


def test_no_change_is_taken_from_a_form_or_from_nowhere(opened: Open) -> None:
    before = stored(opened.home)
    for path, method in EVERY:
        if method == "POST":
            asked = opened.asks(path, method)
            refused(opened.send(asked.but(origin=None).raw), (path, "without an origin"), status=(403,))
            for kind in KINDS_OF_FORM:
                refused(opened.send(asked.but(content_type=kind or None).raw), (path, kind), status=(403,))
            no_object = replace(asked.but(content_length="2"), body=b"[]")  # past the gate, and nothing is done
            refused(opened.send(no_object.raw), (path, "no object"), status=(400,))
    assert stored(opened.home) == before


@pytest.mark.parametrize("method", STRANGE)
def test_no_route_speaks_another_method(opened: Open, method: str) -> None:
    preflight = {"access_control_request_method": "POST", "access_control_request_headers": "content-type"}
    before = stored(opened.home)
    for path in ROUTES:
        asked = replace(opened.asks(path), method=method)
        refused(opened.send(asked.raw), (method, path), status=(403,))
        if method == "OPTIONS":
            for origin in ("https://evil.example", f"http://127.0.0.1:{opened.port}"):
                refused(opened.send(asked.but(origin=origin, **preflight).raw), (method, path, origin), status=(403,))
    assert stored(opened.home) == before


def test_a_mistyped_address_is_told_in_a_page_to_a_person_and_as_json_to_all_others(opened: Open) -> None:
    for path in ("/nothing", "/timelines", "/try/it", "/constructor", "/%E0%A4"):
        typed = opened.asks(path).but(accept="text/html,application/xhtml+xml,*/*;q=0.8")
        told = opened.send(typed.raw)
        assert (told.status, told.fields["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert told.body == opened.send(opened.asks("/now").raw).body
        assert json.loads(opened.send(typed.but(accept="*/*").raw).body)["hint"]
        assert opened.send(typed.but(cookie=None).raw).status == 403
        assert opened.send(typed.but(sec_fetch_site="cross-site").raw).status == 403
        assert opened.send(typed.but(sec_fetch_dest="iframe").raw).status == 403
    script = opened.send(opened.asks("/api/nothing").but(accept="text/html").raw)
    assert (script.status, bool(json.loads(script.body)["error"])) == (404, True)


def test_no_file_of_ours_is_given_without_the_cookie(opened: Open) -> None:
    for name in names():
        asked = replace(opened.asks("/static/"), target=f"/static/{name}")
        assert opened.send(asked.raw).status == 200
        refused(opened.send(asked.but(cookie=None).raw), name)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../index.html",
        "/static/../../__init__.py",
        "/static/%2e%2e/__init__.py",
        "/static/..%2f__init__.py",
        "/static/%2e%2e%2f%2e%2e%2fconfig.py",
        "/static/..\\__init__.py",
        "/static/%5c..%5c__init__.py",
        "/static/app.js%00",
        "/static/%00",
        "/static//etc/passwd",
        "/static//app.js",
        "/static/./app.js",
        "/static/",
        "/static/app.js/",
        "/static/APP.JS",
        "/static/%ff%fe",
        "/static/__pycache__",
        "/static",
        "//static/app.js",
        "/../../../../etc/passwd",
        "/api/memories/%00",
        "/api/memories/%ff%fe",
        "/api/memories/../../static/app.js",
        f"/static/{'a' * 5000}",
        "/favicon.ico",
        "/nowhere",
        "*",
        "",
    ],
)
def test_no_path_leads_out_of_what_is_ours(opened: Open, path: str) -> None:
    for page in (True, False):
        asked = replace(opened.asks("/now" if page else "/api/projects"), target=path)
        got = opened.send(asked.raw)
        assert 400 <= got.status < 500, got
        headed(got)
        assert b"root:" not in got.body
        assert b"import" not in got.body


def test_whatever_bytes_a_path_or_a_token_has_the_answer_is_told(opened: Open) -> None:
    opened.token()  # there is one to compare with
    for target in ("/?token=%ff", "/?token=", "/?token=%00", f"/?token={'a' * 40_000}", "/?token=a&token=b"):
        refused(opened.send(replace(opened.asks("/").but(cookie=None), target=target).raw), target)
    for path, method in EVERY:
        if path.startswith("/api/") and path.endswith("/"):
            for id in ("%ff", "%00", "%ed%a0%80", "..", "%F0%9F%92%A9", "x" * 3000):
                asked = replace(opened.asks(path, method), target=path + id)
                assert 400 <= opened.send(asked.raw).status < 500, (path, id)


def test_a_head_without_an_end_and_what_is_no_http_are_refused_with_the_same_fields(opened: Open) -> None:
    for raw in (b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"G" * 70_000 + b"\r\n\r\n"):
        got = opened.send(raw)
        assert got.status == 400
        headed(got)


def refused(got: Answer, what: object, *, status: Sequence[int] = range(400, 500)) -> None:
    """Refused, with the fields of every answer, and with nothing that anybody could read out of it."""
    assert got.status in status, (what, got)
    headed(got)
    assert "Set-Cookie" not in got.fields, what
    if got.fields["Content-Type"] == "application/json":
        assert set(json.loads(got.body)) == {"error", "hint"}, what
    else:  # a page, which a person reads: one line
        assert got.fields["Content-Type"] == "text/plain; charset=utf-8", what
        assert got.body.count(b"\n") == 1, what
    assert CANARY.encode() not in got.body, what


def headed(got: Answer) -> None:
    assert {name: got.fields.get(name) for name in FIELDS} == dict(FIELDS)
    assert not [name for name in got.fields if name.lower().startswith("access-control-")]
    assert got.fields["Connection"] == "close"


def stored(home: Home) -> list[Any]:
    """All memories, links and entries of the log, read by the standard library."""
    connection = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    with contextlib.closing(connection):
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("memories", "links", "log")]


# -- tokens and cookies ----------------------------------------------------------------------------------------------


def test_a_link_opens_once_on_the_root_alone_and_is_not_used_up_by_what_is_refused(opened: Open) -> None:
    token = opened.token()
    asked = replace(opened.asks("/").but(cookie=None), target=f"/?token={token}")
    for wrong in (
        asked.but(host="evil.example"),
        asked.but(origin="https://evil.example"),
        asked.but(sec_fetch_dest="iframe"),
        asked.but(sec_purpose="prefetch"),
        replace(asked, method="HEAD"),
        replace(asked, method="POST"),
        replace(asked, target=f"/now?token={token}"),
    ):
        refused(opened.send(wrong.raw), wrong)
    assert opened.send(asked.raw).fields["Set-Cookie"].startswith(f"foreword-{opened.port}=")
    refused(opened.send(asked.raw), "a used token")


def test_a_link_is_too_old_after_a_while() -> None:
    now = [0.0]
    gate = Gate(8000, now=lambda: now[0])
    fields = {"host": "127.0.0.1:8000"}
    links = [gate.link().partition("token=")[2] for _ in range(2)]
    now[0] = LASTS - 1
    assert gate.opened(Request("GET", "/", {"token": links[0]}, b"", fields)).startswith("foreword-8000=")
    now[0] = LASTS + 1
    with pytest.raises(Refused):
        gate.opened(Request("GET", "/", {"token": links[1]}, b"", fields))


def test_the_cookie_of_an_earlier_run_opens_nothing(home: Home, start) -> None:
    start()
    first = open_(home)
    asked = first.asks("/api/projects")
    assert first.send(asked.raw).status == 200
    first.client.post("/api/view", {"do": "close"})
    again = first.client.post("/api/view", {"do": "open", "port": first.port})
    assert again["port"] == first.port
    refused(first.send(asked.raw), "a cookie of the run before")
    with pytest.raises(Conflict):
        first.client.post("/api/view", {"do": "open", "port": first.port - 1 if first.port > 1024 else 1024})
    for port in (80, -1, 65_536, True, "8000", 1.5):
        with pytest.raises(BadRequest):
            first.client.post("/api/view", {"do": "open", "port": port})


def test_the_key_of_an_earlier_opening_lets_its_browsers_in_again(home: Home, start) -> None:
    client = start()
    here = open_(home)
    key = client.post("/api/view", {"do": "open"})["key"]
    client.post("/api/view", {"do": "close"})
    assert client.post("/api/view", {"do": "open", "port": here.port, "key": key})["key"] == key
    assert here.send(here.asks("/api/projects").raw).status == 200
    for wrong in ("x", 1, True, "x" * 200, "é" * 43, "x" * 42 + "\n"):
        with pytest.raises(BadRequest):
            client.post("/api/view", {"do": "open", "key": wrong})


def test_what_the_worker_tells_of_its_viewer_holds_no_key(opened: Open) -> None:
    token = opened.token()
    told = json.dumps(opened.client.get("/api/view"))
    assert token not in told
    assert opened.cookie not in told
    assert token not in opened.home.log.read_text()
    assert opened.cookie not in opened.home.log.read_text()


# -- who may connect -------------------------------------------------------------------------------------------------


def test_it_listens_on_loopback_alone(opened: Open) -> None:
    table = Path("/proc/net/tcp")
    if table.exists():
        listening = [
            (row.split()[1], name)
            for name in ("tcp", "tcp6")
            for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
            if row.split()[3] == "0A" and row.split()[1].endswith(f":{opened.port:04X}")
        ]
        assert listening == [(f"0100007F:{opened.port:04X}", "tcp")]
    for address in ("127.0.0.2", "::1", *own_addresses()):
        with pytest.raises(OSError):  # noqa: PT011 - refused, or no such address here
            socket.create_connection((address, opened.port), timeout=2).close()


def own_addresses() -> list[str]:
    """Other addresses of this machine; nothing is sent to learn them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
        except OSError:
            return []  # no network but loopback
        found = str(line.getsockname()[0])
    return [] if found.startswith("127.") else [found]


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to be another user")
def test_another_user_gets_nothing_even_with_the_cookie(opened: Open) -> None:
    asking = (
        "import socket,sys\n"
        "for _ in range(50):\n"
        "    s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),5)\n"
        "    try:\n"
        "        s.sendall(sys.argv[2].encode()); print(s.recv(100))\n"
        "    except OSError: print(b'')\n"
        "    s.close()"
    )
    given = ["-I", "-S", "-c", asking, str(opened.port), opened.asks("/api/projects").raw.decode()]
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", build.interpreter()]
    told = [
        subprocess.run([*command, *given], capture_output=True, text=True, check=True, timeout=60).stdout.split()
        for command in (other, [build.interpreter()])
    ]
    assert told[0] == ["b''"] * 50, "another user"
    assert "200" in " ".join(told[1]), "and we ourselves are answered"


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system does not tell whose a connection is")
@pytest.mark.parametrize("how", [owner_of, _looked_up])
def test_the_owner_of_a_connection_is_told_by_the_system(opened: Open, how: Callable[[int, int], int | None]) -> None:
    with socket.create_connection(("127.0.0.1", opened.port), timeout=5) as line:
        port = line.getsockname()[1]
        assert how(port, opened.port) == os.getuid()
    assert how(port, opened.port) == how(1, opened.port) == -1, "a connection that is not there is nobody's"
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as line:
        line.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        line.connect(("::ffff:127.0.0.1", opened.port))
        assert how(line.getsockname()[1], opened.port) == os.getuid()


# -- when it closes --------------------------------------------------------------------------------------------------


class Command:
    """`foreword view`, as somebody runs it."""

    def __init__(self, home: Home, *words: str, **environ: str) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-m", "foreword", "view", "--no-browser", *words],
            env={**CLEAN, "HOME": str(home.root), "FOREWORD_HOME": str(home.root), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def says(self, words: str) -> str:
        """The line with these words, for which it is waited."""
        assert self.process.stderr
        for line in self.process.stderr:
            if words in line:
                return line
        raise AssertionError(f"it ended without a word of {words!r}")

    def ends(self, *, with_: int = 0) -> tuple[int, str]:
        if with_:
            self.process.send_signal(with_)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err


@pytest.fixture
def view(home: Home, start) -> Iterator[Callable[..., Command]]:
    start()
    made: list[Command] = []

    def begun(*words: str, **environ: str) -> Command:
        made.append(Command(home, *words, **environ))
        return made[-1]

    yield begun
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def is_open(url: str) -> bool:
    port = int(url.rpartition(":")[2].partition("/")[0])
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module", autouse=True)
def killed() -> Iterator[tuple[Home, str]]:
    """A command that nobody let say goodbye, at the beginning: how long it takes is found out at the end."""
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    command = Command(home)
    url = command.url()
    command.ends(with_=signal.SIGKILL)
    yield home, url
    end_worker(home)
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_closes_with_its_command(view, how: str) -> None:
    command = view()
    url = command.url()
    assert is_open(url)
    code, said = command.ends(with_=getattr(signal, how))
    assert not is_open(url)
    assert code == 0
    assert "the viewer is closed" in said


def test_two_commands_hold_one_viewer_and_it_closes_with_the_last(view, home: Home) -> None:
    one, two = view(), view()
    urls = one.url(), two.url()
    assert urls[0] != urls[1]
    assert urls[0].partition("?")[0] == urls[1].partition("?")[0]
    port = int(urls[0].rpartition(":")[2].partition("/")[0])
    assert redeemed(urls[0], port) == redeemed(urls[1], port)
    one.ends(with_=signal.SIGINT)
    assert is_open(urls[1])
    two.ends(with_=signal.SIGINT)
    assert not is_open(urls[1])


@pytest.mark.parametrize("how", ["killed", "replaced"])
def test_a_page_goes_on_when_its_worker_was(view, home: Home, how: str) -> None:
    command = view()
    url = command.url()
    port = int(url.rpartition(":")[2].partition("/")[0])
    here = Open(home, Client(home), port, redeemed(url, port), "", "x")
    assert here.send(here.asks("/api/projects").raw).status == 200
    before = life.pid_of(home)
    if how == "killed":
        end_worker(home)
    else:  # as any command does it that finds a worker of an older build
        life.stop(home)
        life.start(home)
    command.says("a page that is open goes on")
    assert here.send(here.asks("/api/projects").raw).status == 200
    assert life.pid_of(home) != before
    assert command.ends(with_=signal.SIGINT)[0] == 0
    assert not is_open(url)


def test_who_presses_ctrl_c_while_it_is_opened_again_closes_the_new_one(start, home: Home) -> None:
    client = start()
    opened = client.post("/api/view", {"do": "open"})
    client.post("/api/view", {"do": "close"})

    def pressed(_told: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _anew(client, opened, tell=pressed)
    assert is_open(opened["url"])
    client.post("/api/view", {"do": "leave", "holder": opened["holder"]})
    assert not is_open(opened["url"])


def test_where_the_port_is_taken_meanwhile_the_command_prints_another_link(view, home: Home) -> None:
    command = view()
    url = command.url()
    port = int(url.rpartition(":")[2].partition("/")[0])
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        command.process.send_signal(signal.SIGSTOP)  # until the port is taken
        end_worker(home)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        command.process.send_signal(signal.SIGCONT)
        command.says("a page that is open is at its end")
    said = command.url()  # where the first one was told
    assert said.startswith("http://127.0.0.1:")
    assert f":{port}/" not in said


def test_who_may_open_it_again_is_told_so(home: Home, start) -> None:
    client: Client = start()
    first = client.post("/api/view", {"do": "open"})
    held = {"do": "hold", "holder": first["holder"]}
    client.post("/api/view", {"do": "leave", "holder": first["holder"]})
    told = client.post("/api/view", held)
    assert (told["open"], told["again"]) == (False, True), "a command that was only suspended"
    client.post("/api/view", {"do": "open"})
    client.post("/api/view", {"do": "close"})
    told = client.post("/api/view", held)
    assert (told["open"], told["again"], told["why"]) == (False, False, "it was asked to close")


def test_a_worker_that_was_stopped_for_a_while_waits_for_its_commands(home: Home, monkeypatch) -> None:
    monkeypatch.setattr("foreword.web.LET_GO", 0.6)
    monkeypatch.setattr("foreword.web.AWAY", 0.3)
    with contextlib.closing(Keeper(home)) as keeper:
        viewer = keeper.viewer
        viewer.say({"do": "open"})
        for _ in range(2):
            time.sleep(0.9)
            viewer.tend()
            assert viewer.busy(), "nobody could be heard"
        for _ in until(20):
            viewer.tend()
            if not viewer.busy():
                break
        assert not viewer.busy(), "and whoever does not come then is gone"


def test_a_clock_that_jumps_closes_nothing_and_makes_nothing_younger_than_new(home: Home) -> None:
    now = [time.time()]
    with contextlib.closing(Keeper(home, now=lambda: now[0])) as keeper:
        got = keeper.viewer.say({"do": "open"})
        here = Open(home, Client(home), got["port"], redeemed(got["url"], got["port"]), got["holder"], "x")
        for jump in (DAY, -2 * DAY, DAY):
            told = {"session_id": f"s{jump}", "cwd": str(home.root), "prompt": "what time is it?"}
            keeper.events({"host": "claude-code", "event": "UserPromptSubmit", "payload": told})
            now[0] += jump
            keeper.viewer.tend()
            health = json.loads(here.send(here.asks("/api/health").raw).body)
            assert health["worker"]["uptime_s"] >= 0
            running = json.loads(here.send(here.asks("/api/timeline").raw).body)["sessions"]
            assert all(abs(now[0] - each["last"]) < DAY / 2 for each in running if each["running"])
        assert keeper.viewer.busy()


def test_a_page_that_listens_is_told_why_it_ends_unless_the_worker_is_replaced(home: Home, start) -> None:
    client: Client = start()
    told = {}
    for how in ("close", "leave", "stop"):
        here = open_(home)
        with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line:
            line.sendall(here.asks("/api/live").raw)
            line.recv(1 << 16)
            if how == "stop":
                life.stop(home)
            else:
                client.post("/api/view", {"do": how, "holder": here.holder})
            told[how] = b"".join(iter(lambda: line.recv(1 << 16), b""))
    assert b"it was asked to close" in told["close"]
    assert b"its command ended" in told["leave"]
    assert b"closed" not in told["stop"]


def test_another_command_closes_it_and_the_first_says_so(view) -> None:
    command = view()
    url = command.url()
    assert "closed" in view("--close").ends()[1]
    assert not is_open(url)
    code, said = command.ends()
    assert (code, "asked to close" in said) == (0, True)
    assert "no viewer is open" in view("--close").ends()[1]


def test_what_was_closed_already_can_be_left(home: Home, start) -> None:
    client: Client = start()
    holder = client.post("/api/view", {"do": "open"})["holder"]
    client.post("/api/view", {"do": "close"})
    assert client.post("/api/view", {"do": "leave", "holder": holder})["open"] is False


def test_it_closes_when_nobody_looks_and_only_then_the_worker_leaves(home: Home, start) -> None:
    home.config.write_text("viewer_idle_minutes = 0.05\nworker_idle_minutes = 0.01\n")
    client = start()
    began = time.monotonic()
    opened = client.post("/api/view", {"do": "open"})
    held = {"do": "hold", "holder": opened["holder"]}
    while client.post("/api/view", held)["open"]:
        assert time.monotonic() - began < 30
        time.sleep(0.1)
    assert time.monotonic() - began > 2.5, "three seconds, in which the worker had nothing else to do"
    assert not is_open(opened["url"])
    wait_for(lambda: not life.pid_of(home))


def test_somebody_who_looks_keeps_it_open(home: Home, monkeypatch) -> None:
    home.config.write_text("viewer_idle_minutes = 0.05\n")
    now = [time.monotonic()]  # by a clock of our own: a machine that stalls between two looks would close it
    monkeypatch.setattr("foreword.web.time", types.SimpleNamespace(monotonic=lambda: now[0]))
    with contextlib.closing(Keeper(home)) as keeper:
        viewer = keeper.viewer
        got = viewer.say({"do": "open"})
        here = Open(home, Client(home), got["port"], redeemed(got["url"], got["port"]), got["holder"], "x")

        def passes() -> bool:
            """A second, in which its command says a word and the worker looks after it."""
            now[0] += 1.0
            viewer.say({"do": "hold", "holder": here.holder})
            viewer.tend()
            return viewer.busy()

        for _ in range(12):  # longer than it would stay by itself
            assert here.send(here.asks("/api/projects").raw).status == 200
            assert passes()
        assert [passes() for _ in range(3)] == [True, True, False], "three seconds after the last look"


def test_who_is_refused_does_not_keep_it_open(home: Home, start) -> None:
    home.config.write_text("viewer_idle_minutes = 0.03\n")
    client = start()
    here = open_(home)
    began = time.monotonic()
    while client.post("/api/view", {"do": "hold", "holder": here.holder})["open"]:
        assert time.monotonic() - began < 20
        with contextlib.suppress(OSError, ValueError):
            here.send(here.asks("/api/projects").but(cookie=None).raw)
        time.sleep(0.1)


def test_an_agents_shell_opens_no_viewer(view, home: Home) -> None:
    code, said = view(CLAUDECODE="1").ends()
    assert code != 0
    assert "http" not in said
    assert Client(home).get("/api/view")["open"] is False


def test_a_worker_that_leaves_takes_its_viewer_along_and_the_command_says_so(view, home: Home) -> None:
    command = view()
    url = command.url()
    life.stop(home)
    assert not is_open(url)
    code, said = command.ends()
    assert code != 0
    assert "foreword view" in said


def test_it_closes_some_seconds_after_a_command_that_was_killed(killed) -> None:
    home, url = killed
    wait_for(lambda: not is_open(url), seconds=30)
    assert "its command ended" in home.log.read_text()
