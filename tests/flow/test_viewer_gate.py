"""Send forged requests to every route of one open viewer: none is answered, and nothing of what is stored changes.

The routes come from the app itself, so a new one is tried too. Each shape begins as what the viewer's own page sends,
which is answered, and changes one thing.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.requests import Request as Received

from foreword.errors import Conflict
from foreword.paths import Home
from foreword.viewer.app import HEADERS, ROUTES, ViewerServer
from foreword.viewer.auth import LINK_SECONDS, Auth, Forbidden, is_page
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import end_worker, wait_for

CANARY = "wombats dig at night"
EVERY = [(path, method) for path, methods in ROUTES.items() for method in methods]


@dataclass(frozen=True)
class Request:
    """A request, byte for byte."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""
    version: str = "HTTP/1.1"

    def but(self, **fields: str | None) -> Request:
        """The same with other fields (an underscore is a hyphen); None leaves one out."""
        wanted = {name.replace("_", "-").lower(): text for name, text in fields.items()}
        kept = tuple(pair for pair in self.fields if pair[0].lower() not in wanted)
        return replace(self, fields=kept + tuple((name, text) for name, text in wanted.items() if text is not None))

    def also(self, name: str, text: str) -> Request:
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
    """A viewer that is open, and the cookie that a browser would have."""

    home: Home
    client: Client
    server: ViewerServer
    cookie: str
    id: str  # of a note, which waits to become something
    session: str = ""
    injection: str = ""
    project: str = ""

    @property
    def port(self) -> int:
        return self.server.port

    def asks(self, path: str, method: str = "GET") -> Request:
        """What the viewer's own page sends, and is answered."""
        names = {"/static/": "app.js", "/api/sessions/": self.session, "/api/injections/": self.injection}
        names |= {"/api/memories/": self.id, "/now/": self.session, "/timeline/": self.session, "/memories/": self.id}
        more = {"/api/preview": {"project": self.project}}
        target = f"{path}{names.get(path, '')}"
        target += f"?{urlencode(more[path])}" if path in more and method == "GET" else ""
        page = is_page(target)
        fields = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": f"foreword-{self.port}={self.cookie}",
            "Sec-Fetch-Site": "none" if page else "same-origin",
            "Sec-Fetch-Mode": "navigate" if page else "cors",
            "Sec-Fetch-Dest": "document" if page else "empty",
        }
        request = Request(method, target, tuple(fields.items()))
        if method != "POST":
            return request
        body = json.dumps(self.answer(path)).encode()
        about = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        about["Content-Length"] = str(len(body))
        return replace(request, fields=(*request.fields, *about.items()), body=body)

    def answer(self, path: str) -> dict[str, Any]:
        """The body of a change that would be made, were the request let in."""
        bodies: dict[str, dict[str, Any]] = {
            "/api/memories/": {"title": "forged"},
            "/api/pin": {"id": self.id},
            "/api/undo": {"project": self.project},
            "/api/forget": {"ids": [self.id], "yes": True},
            "/api/review": {"do": "promote", "id": self.id, "as": "decision"},
            "/api/preview": {"project": self.project, "prompt": "forged"},
        }
        return bodies[path]

    def send(self, raw: bytes) -> Answer:
        with socket.create_connection(("127.0.0.1", self.port), timeout=40) as line:
            with contextlib.suppress(ConnectionError):  # it may refuse before all is sent
                line.sendall(raw)
            return read(line)

    def token(self) -> str:
        return self.server.auth.link().partition("token=")[2]


def read(line: socket.socket) -> Answer:
    """Read one answer; of a stream only the head."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = line.recv(1 << 16)
        if not part:
            break
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.title(): text for name, text in (each.split(": ", 1) for each in lines)}
    while len(body) < int(fields.get("Content-Length", 0)) and (part := line.recv(1 << 16)):
        body += part
    return Answer(int((*first.split(" "), "0", "0")[1]), fields, body)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """One viewer for all tests of a file."""
    with held(str(tmp_path_factory.mktemp("shop"))) as here:
        yield here


@contextlib.contextmanager
def held(project: str) -> Iterator[Open]:
    """A viewer of its own worker, held open as its command does, with something behind every route."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREWORD_HOME", str(home.root))
        lifecycle.start(home)
    here = None
    try:
        here = open_(home, project)
        yield furnished(here, project)
    finally:
        if here:
            here.server.close("the test ended")
        end_worker(home)
        shutil.rmtree(root)


def furnished(here: Open, project: str) -> Open:
    """Put something behind every route: a change that can be undone, and a session that was given something."""
    here.client.post(f"/api/memories/{here.id}", {"body": "and sleep by day"})
    answer = {"kind": "decision", "title": "Burrows are kept open", "project_path": project}
    here.client.post("/api/memories", answer)
    for event, more in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "burrows " * 200})):
        request = urlencode({"host": "claude-code", "event": event, "at": time.time()})
        payload = {"session_id": "furnished", "cwd": project, "hook_event_name": event, **more}
        status, _ = here.client.send("POST", f"/api/hook?{request}", json.dumps(payload).encode())
        assert status == 200

    def context() -> list[dict[str, Any]]:
        return list(here.client.get("/api/injections", session_id="furnished")["injections"])

    wait_for(context)
    here.session, here.injection, here.project = "furnished", context()[0]["id"], context()[0]["project"]
    return here


def another(here: Open) -> Open:
    """With another note that waits, whose last change can be undone."""
    folder = here.project.removeprefix("dir:")
    answer = {"kind": "note", "title": f"{CANARY}, and another time", "project_path": folder}
    id = here.client.post("/api/memories", answer)["memories"][0]["id"]
    here.client.post(f"/api/memories/{id}", {"body": "and sleep by day"})
    return replace(here, id=id)


def open_(home: Home, project: str = "") -> Open:
    client = Client(home, seconds=20)
    answer = {"kind": "note", "title": CANARY, "project_path": project or str(home.root.parent)}
    id = client.post("/api/memories", answer)["memories"][0]["id"]
    server = ViewerServer(home)
    server.start()
    return Open(home, client, server, redeemed(server.auth.link(), server.port), id)


def redeemed(url: str, port: int) -> str:
    """The cookie that a link gives."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(line):
        line.request("GET", f"/?{url.partition('/?')[2]}")
        got = line.getresponse()
        assert got.status == 200, got.read()
        name, _, rest = got.headers["Set-Cookie"].partition("=")
    assert name == f"foreword-{port}"
    assert set(rest.split("; ")[1:]) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    return rest.partition(";")[0]


# -- the shapes ------------------------------------------------------------------------------------------------------

Shape = Callable[[Request, Open], Request]
SHAPES: dict[str, Shape] = {
    "another host": lambda request, _: request.but(host="evil.example"),
    "a rebound name with our port": lambda request, here: request.but(host=f"evil.example:{here.port}"),
    "another port": lambda request, here: request.but(host=f"127.0.0.1:{here.port + 1}"),
    "no port": lambda request, _: request.but(host="127.0.0.1"),
    "localhost": lambda request, here: request.but(host=f"localhost:{here.port}"),
    "an IPv6 address": lambda request, here: request.but(host=f"[::1]:{here.port}"),
    "every address": lambda request, here: request.but(host=f"0.0.0.0:{here.port}"),
    "a user before ours": lambda request, here: request.but(host=f"evil@127.0.0.1:{here.port}"),
    "a name behind ours": lambda request, here: request.but(host=f"127.0.0.1:{here.port}@evil.example"),
    "a short address": lambda request, here: request.but(host=f"127.1:{here.port}"),
    "an address as a number": lambda request, here: request.but(host=f"2130706433:{here.port}"),
    "a port with a zero": lambda request, here: request.but(host=f"127.0.0.1:0{here.port}"),
    "two addresses": lambda request, here: request.but(host=f"127.0.0.1:{here.port}, evil.example"),
    "no host": lambda request, _: request.but(host=None),
    "HTTP/1.0 without a host": lambda request, _: replace(request.but(host=None), version="HTTP/1.0"),
    "a foreign origin": lambda request, _: request.but(origin="https://evil.example"),
    "origin null": lambda request, _: request.but(origin="null"),
    "an origin on another port": lambda request, here: request.but(origin=f"http://127.0.0.1:{here.port + 1}"),
    "an encrypted origin": lambda request, here: request.but(origin=f"https://127.0.0.1:{here.port}"),
    "an origin that begins like ours": lambda request, here: request.but(
        origin=f"http://127.0.0.1:{here.port}.evil.example"
    ),
    "Sec-Fetch-Site: cross-site": lambda request, _: request.but(sec_fetch_site="cross-site"),
    "Sec-Fetch-Site: same-site": lambda request, _: request.but(sec_fetch_site="same-site"),
    "no Sec-Fetch-Site": lambda request, _: request.but(sec_fetch_site=None),
    "in an inner frame": lambda request, _: request.but(sec_fetch_dest="iframe"),
    "in a frame": lambda request, _: request.but(sec_fetch_dest="frame"),
    "as an object": lambda request, _: request.but(sec_fetch_dest="object"),
    "embedded": lambda request, _: request.but(sec_fetch_dest="embed"),
    "as a service worker": lambda request, _: request.but(sec_fetch_dest="serviceworker"),
    "without a cookie": lambda request, _: request.but(cookie=None),
    "with an empty cookie": lambda request, here: request.but(cookie=f"foreword-{here.port}="),
    "with a wrong cookie": lambda request, here: request.but(cookie=f"foreword-{here.port}={'x' * len(here.cookie)}"),
    "with half of the cookie": lambda request, here: request.but(cookie=f"foreword-{here.port}={here.cookie[:20]}"),
    "with the cookie of another port": lambda request, here: request.but(
        cookie=f"foreword-{here.port + 1}={here.cookie}"
    ),
    "with the cookie in quotes": lambda request, here: request.but(cookie=f'foreword-{here.port}="{here.cookie}"'),
    "with the cookie behind a comma": lambda request, here: request.but(
        cookie=f"a=b, foreword-{here.port}={here.cookie}"
    ),
    "with another cookie first": lambda request, here: request.but(
        cookie=f"foreword-{here.port}=someone; foreword-{here.port}={here.cookie}"
    ),
    "with a token for a cookie": lambda request, here: request.but(cookie=f"foreword-{here.port}={here.token()}"),
    "with a token behind the path": lambda request, here: replace(
        request.but(cookie=None), target=f"{request.target}{'x' if request.target == '/' else ''}?token={here.token()}"
    ),
    "with a token for a bearer": lambda request, here: request.but(cookie=None, authorization=f"Bearer {here.token()}"),
    "to upgrade it": lambda request, _: request.but(
        upgrade="websocket", connection="Upgrade", sec_websocket_key="dGhlIHNhbXBsZQ==", sec_websocket_version="13"
    ),
    **{
        f"as {method}": lambda request, _, method=method: replace(request, method=method)  # type: ignore[misc]
        for method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", "GETX")
    },
    "as a preflight of our origin": lambda request, here: replace(request, method="OPTIONS").but(
        origin=f"http://127.0.0.1:{here.port}", access_control_request_method="POST"
    ),
}
# Not the gate's to refuse: requests that two readers would understand differently, or that name no route.
AMBIGUOUS: dict[str, Shape] = {
    "two hosts": lambda request, _: request.also("Host", "evil.example"),
    "two origins": lambda request, here: request.but(origin=f"http://127.0.0.1:{here.port}").also("Origin", "null"),
    "two lines of cookies": lambda request, _: request.also("Cookie", "a=b"),
    "two sites": lambda request, _: request.also("sec-fetch-site", "cross-site"),
    "two destinations": lambda request, _: request.also("sec-fetch-dest", "iframe"),
    "two lengths": lambda request, _: request.but(content_length="0").also("Content-Length", "5"),
    "a length below zero": lambda request, _: request.but(content_length="-1"),
    "chunks": lambda request, _: replace(
        request.but(content_length=None, transfer_encoding="chunked"), body=b"0\r\n\r\n"
    ),
    "chunks and a length": lambda request, _: request.also("Transfer-Encoding", "chunked"),
    "odd chunks": lambda request, _: request.also("tRANSFER-eNCODING", "xchunked"),
    "a space before a colon": lambda request, _: request.also("X ", "y"),
    "a line without a colon": lambda request, _: request.also("X", "y\r\nz"),
    "a field without a name": lambda request, _: request.also("", "x"),
    "a bare line feed": lambda request, _: request.also("X", "a\nCookie: b"),
    "a bare return": lambda request, _: request.also("X", "a\rCookie: b"),
    "a zero byte": lambda request, _: request.also("X", "\0"),
    "a name of other letters": lambda request, _: request.also("X\xad", "y"),
    "two spaces": lambda request, _: replace(request, version=" HTTP/1.1"),
    "an unknown version": lambda request, _: replace(request, version="HTTP/1.12"),
}
WHOLE: dict[str, Shape] = {
    "a whole address of another host": lambda request, _: replace(
        request, target=f"http://evil.example{request.target}"
    ),
    "a whole address of ours": lambda request, here: replace(
        request, target=f"http://127.0.0.1:{here.port}{request.target}"
    ),
}
FORMS: dict[str, Shape] = {
    "without an origin": lambda request, _: request.but(origin=None),
    **{
        f"a body of {kind}": lambda request, _, kind=kind: request.but(content_type=kind)  # type: ignore[misc]
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", None)
    },
}
CHANGES = [(path, method) for path, method in EVERY if method == "POST"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("shapes", "routes", "status"),
    [(SHAPES, EVERY, (400, 403)), (AMBIGUOUS, EVERY, (400,)), (WHOLE, EVERY, (403, 404)), (FORMS, CHANGES, (403,))],
    ids=["forged", "ambiguous", "whole", "forms"],
)
def test_no_route_answers_a_forged_request(
    opened: Open, shapes: dict[str, Shape], routes: Sequence[tuple[str, str]], status: Sequence[int]
) -> None:
    before = stored(opened.home)
    for name, shape in shapes.items():
        for path, method in routes:
            request = shape(opened.asks(path, method), opened)
            refused(opened.send(request.raw), (name, request.method, request.target), status=status)
    assert stored(opened.home) == before


def test_every_route_answers_its_own_page_so_the_shapes_are_what_is_refused(opened: Open) -> None:
    for path, method in EVERY:
        here = another(opened) if method == "POST" else opened
        before = stored(here.home)
        got = here.send(here.asks(path, method).raw)
        assert got.status == 200, (path, method, got.body)
        changes = method == "POST" and path != "/api/preview"
        assert (stored(here.home) != before) == changes, (path, "what it does is done")
        headed(got)
        if method == "POST":
            no_object = replace(here.asks(path, method).but(content_length="2"), body=b"[]")
            refused(here.send(no_object.raw), (path, "no object"), status=(400,))


def refused(got: Answer, what: object, *, status: Sequence[int] = range(400, 500)) -> None:
    """Refused with the fields of every answer, and with nothing that anybody could read out of it."""
    assert got.status in status, (what, got)
    assert "Set-Cookie" not in got.fields, what
    assert CANARY.encode() not in got.body, what
    headed(got)
    if not got.body or is_invalid(got):  # HEAD has no body
        return
    if got.fields["Content-Type"] == "application/json":
        assert set(json.loads(got.body)) == {"error", "hint"}, what
    else:  # a page, which a person reads: one line
        assert got.fields["Content-Type"] == "text/plain; charset=utf-8", what
        assert got.body.count(b"\n") == 1, what


def is_invalid(got: Answer) -> bool:
    """Whether the server refused what is no HTTP, before our app saw it."""
    return got.status == 400 and set(got.fields) == {"Content-Type", "Connection"}


def headed(got: Answer) -> None:
    if is_invalid(got):
        return
    assert {name: got.fields.get(name.title()) for name in HEADERS} == HEADERS
    assert not [name for name in got.fields if name.lower().startswith("access-control-")]
    assert "Server" not in got.fields


def stored(home: Home) -> list[Any]:
    """All memories, links and entries of the log, read by the standard library."""
    connection = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    with contextlib.closing(connection):
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("memories", "links", "log")]


def test_a_mistyped_address_is_told_in_a_page_to_a_person_and_as_json_to_all_others(opened: Open) -> None:
    for path in ("/nothing", "/timelines", "/try/it", "/constructor", "/%E0%A4"):
        typed = opened.asks(path).but(accept="text/html,application/xhtml+xml,*/*;q=0.8")
        answer = opened.send(typed.raw)
        assert (answer.status, answer.fields["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert answer.body == opened.send(opened.asks("/now").raw).body
        assert json.loads(opened.send(typed.but(accept="*/*").raw).body)["hint"]
        assert opened.send(typed.but(cookie=None).raw).status == 403
        assert opened.send(typed.but(sec_fetch_site="cross-site").raw).status == 403
    script = opened.send(opened.asks("/api/nothing").but(accept="text/html").raw)
    assert (script.status, bool(json.loads(script.body)["error"])) == (404, True)


def test_no_file_of_ours_is_given_without_the_cookie(opened: Open) -> None:
    for name in opened.server._app._files:
        request = replace(opened.asks("/static/"), target=f"/static/{name}")
        assert opened.send(request.raw).status == 200
        refused(opened.send(request.but(cookie=None).raw), name)


OUT = (
    "/static/../index.html", "/static/../../__init__.py", "/static/%2e%2e/__init__.py", "/static/..%2f__init__.py",
    "/static/%2e%2e%2f%2e%2e%2fconfig.py", "/static/..\\__init__.py", "/static/%5c..%5c__init__.py",
    "/static/app.js%00", "/static/%00", "/static//etc/passwd", "/static//app.js", "/static/./app.js", "/static/",
    "/static/app.js/", "/static/APP.JS", "/static/%ff%fe", "/static/__pycache__", "/static", "//static/app.js",
    "/../../../../etc/passwd", "/api/memories/%00", "/api/memories/%ff%fe", "/api/memories/../../static/app.js",
    f"/static/{'a' * 5000}", "/favicon.ico", "/nowhere", "*", "", "//evil.example/now", "http:/now", "\\now", "/now#x",
)  # fmt: skip


def test_no_path_leads_out_of_what_is_ours_whatever_its_bytes(opened: Open) -> None:
    for path in OUT:
        for page in ("/now", "/api/projects"):
            got = opened.send(replace(opened.asks(page), target=path).raw)
            assert 400 <= got.status < 500, (path, got)
            headed(got)
            assert b"root:" not in got.body
            assert b"import" not in got.body
    for path, method in EVERY:
        if path.startswith("/api/") and path.endswith("/"):
            for id in ("%ff", "%00", "%ed%a0%80", "..", "%F0%9F%92%A9", "x" * 3000):
                request = replace(opened.asks(path, method), target=path + id)
                assert 400 <= opened.send(request.raw).status < 500, (path, id)
    for raw in (b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"G" * 70_000 + b"\r\n\r\n"):
        assert opened.send(raw).status in (400, 403), raw[:20]


def test_what_comes_behind_a_request_is_never_a_request(opened: Open) -> None:
    before = stored(opened.home)
    change = opened.asks("/api/pin", "POST").raw
    request = opened.asks("/api/projects")
    for raw in (
        request.raw + change,
        replace(request.but(content_length=str(len(change))), body=change).raw,
        replace(request.but(cookie=None, content_length=str(len(change))), body=change).raw,
        b"\r\n\r\n" + change,
        request.but(cookie=None).raw + change,
    ):
        with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as line:
            line.sendall(raw)
            got = b""
            with contextlib.suppress(ConnectionError):
                while part := line.recv(1 << 16):
                    got += part
        assert got.count(b"HTTP/1.1 ") == 1
    assert stored(opened.home) == before


# -- links and cookies -----------------------------------------------------------------------------------------------


def test_a_link_opens_once_on_the_root_alone_and_is_not_used_up_by_what_is_refused(opened: Open) -> None:
    token = opened.token()
    request = replace(opened.asks("/").but(cookie=None), target=f"/?token={token}")
    for wrong in (
        request.but(host="evil.example"),
        request.but(origin="https://evil.example"),
        request.but(sec_fetch_dest="iframe"),
        request.but(sec_purpose="prefetch"),
        replace(request, method="HEAD"),
        replace(request, method="POST"),
        replace(request, target=f"/now?token={token}"),
        *(replace(request, target=f"/?token={wrong}") for wrong in ("%ff", "", "%00", "a" * 40_000, "a&token=b")),
    ):
        refused(opened.send(wrong.raw), wrong)
    assert opened.send(request.raw).fields["Set-Cookie"].startswith(f"foreword-{opened.port}=")
    refused(opened.send(request.raw), "a used token")
    again = opened.send(replace(opened.asks("/"), target=request.target).raw)
    assert (again.status, "Set-Cookie" in again.fields) == (200, False), "whoever has the cookie is in already"


def test_of_all_who_race_for_a_link_one_gets_in(opened: Open) -> None:
    for _ in range(10):
        request = replace(opened.asks("/").but(cookie=None), target=f"/?token={opened.token()}").raw
        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(opened.send, [request] * 8))
        assert sorted(each.status for each in got) == [200, *[403] * 7]


def test_a_link_is_too_old_after_a_while() -> None:
    now = [0.0]
    auth = Auth(8000, now=lambda: now[0])

    def opening(token: str) -> Received:
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": f"token={token}".encode()}
        return Received(scope | {"headers": [(b"host", b"127.0.0.1:8000")]})

    tokens = [auth.link().partition("token=")[2] for _ in range(2)]
    now[0] = LINK_SECONDS - 1
    assert auth.redeem(opening(tokens[0]))["Set-Cookie"].startswith("foreword-8000=")
    now[0] = LINK_SECONDS + 1
    with pytest.raises(Forbidden):
        auth.redeem(opening(tokens[1]))


def test_another_viewer_has_other_keys_and_a_port_of_its_own(opened: Open) -> None:
    request = opened.asks("/api/projects")
    with pytest.raises(Conflict):
        ViewerServer(opened.home, port=opened.port)
    other = ViewerServer(opened.home)
    other.start()
    try:
        there = replace(opened, server=other)
        assert opened.send(request.raw).status == 200
        refused(there.send(there.asks("/api/projects").raw), "the cookie of another viewer")
    finally:
        other.close("the test ended")


# -- who may connect -------------------------------------------------------------------------------------------------


def test_it_listens_on_loopback_alone(opened: Open) -> None:
    if Path("/proc/net/tcp").exists():
        listening = [
            (row.split()[1], name)
            for name in ("tcp", "tcp6")
            for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
            if row.split()[3] == "0A" and row.split()[1].endswith(f":{opened.port:04X}")
        ]
        assert listening == [(f"0100007F:{opened.port:04X}", "tcp")]
    for address in ("127.0.0.2", "::1"):
        with pytest.raises(OSError):  # noqa: PT011 - refused, or no such address here
            socket.create_connection((address, opened.port), timeout=2).close()
