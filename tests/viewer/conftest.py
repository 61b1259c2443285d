"""Drive Debian's Chromium through Playwright against viewers over copies of one filled memory.

`viewer` and `page` are shared by the tests of a file, each of which changes only memories of its own; `fresh` and
`fresh_page` belong to one test, which may break them. A page has a cookie and shows nothing yet:
`visit(page, f"{viewer.origin}/memories")`. `@every_look` runs a test at desktop and phone width, light and dark. Any
console error, refused content, exception, dialog or request to another host fails the test; `watch.expects("409")`
excuses what a test provokes.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from foreword.paths import Home
from foreword.viewer.app import ViewerServer
from foreword.worker.client import Client
from tests.clients.install import binary, clients
from tests.clients.versions import AXE
from tests.viewer.filled import Filled, fill, worker
from tests.viewer.install import chromium

try:
    from playwright import sync_api as playwright
except ImportError:  # said by the fixture that needs it: a conftest that skips ends all of pytest
    playwright = None

REQUIRED = os.environ.get("FOREWORD_VIEWER") == "required"
ARTEFACTS = Path(os.environ.get("FOREWORD_ARTEFACTS") or Path(__file__).resolve().parents[2] / "artefacts") / "viewer"
SECONDS = 15.0  # that a page may take on a busy machine
# A box for addresses draws what it would suggest as two pages of its own, for each window: half of what one costs.
SUGGESTING = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# What Playwright switches off of Debian's Chromium: a second list replaces the first.
SWITCHED_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled",
    "PreconnectToSearch",
)  # fmt: skip
FLAGS = (
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-gpu-rasterization",  # Debian switches it on; a GPU in software costs a tenth of each page
    "--disable-software-rasterizer",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # whoever is named is not there
    f"--disable-features={','.join((*SWITCHED_OFF, *SUGGESTING))}",
)


@dataclass(frozen=True)
class Look:
    """How wide the window is, and which colours its user prefers."""

    place: str
    scheme: str
    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.place}-{self.scheme}"


DESKTOP, PHONE = ("desktop", 1280, 800), ("phone", 390, 844)
ALL_LOOKS = [
    Look(place, scheme, width, height) for place, width, height in (DESKTOP, PHONE) for scheme in ("light", "dark")
]
every_look = pytest.mark.parametrize("look", ALL_LOOKS, indirect=True, ids=str)


class Viewer:
    """An opened viewer, the worker behind it, and what lies in its memory."""

    def __init__(self, home: Home, client: Client, filled: Filled) -> None:
        self.home, self.client, self.filled = home, client, filled
        self.projects, self.sessions, self.ids = filled.projects, filled.sessions, filled.ids
        self.server = ViewerServer(home)
        self.server.start()
        self.port: int = self.server.port
        self.origin = f"http://127.0.0.1:{self.port}"
        self.cookie = self._cookie(self.link())

    def link(self) -> str:
        """Another address that opens it once."""
        return self.server.auth.link()

    def close(self, reason: str = "the test ended") -> None:
        if self.server.is_running():
            self.server.close(reason)

    def _cookie(self, url: str) -> tuple[str, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            line.request("GET", url.removeprefix(self.origin))
            cookie = line.getresponse().headers["Set-Cookie"]
        finally:
            line.close()
        name, _, text = cookie.partition(";")[0].partition("=")
        return name, text


# What Chromium says of a request whose server left: before it took it, while it held it, or while it told.
GONE = (
    "CONNECTION_REFUSED", "CONNECTION_RESET", "CONNECTION_CLOSED", "CONNECTION_ABORTED", "SOCKET_NOT_CONNECTED",
    "EMPTY_RESPONSE", "INCOMPLETE_CHUNKED_ENCODING", "CONTENT_LENGTH_MISMATCH",
)  # fmt: skip


@dataclass
class Watch:
    """What the browser said and asked for that no page of ours may."""

    origin: str = ""
    messages: list[str] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    answered: set[tuple[str, str]] = field(default_factory=set)  # method and path of every good answer

    def expects(self, *patterns: str) -> None:
        """What matches one of these is no trouble: the test asks for it."""
        self.excused += patterns

    def expects_it_gone(self) -> None:
        """The test closes the viewer: whatever was being asked for at that moment is not had."""
        self.expects(rf"net::ERR_({'|'.join(GONE)})\b")

    @property
    def troubles(self) -> list[str]:
        return [each for each in self.messages if not any(re.search(pattern, each) for pattern in self.excused)]


def settled(page: Any) -> None:
    """Wait until the page that the address names is drawn."""
    page.wait_for_function(
        """() => { const main = document.getElementById("main");
                   return main && main.children.length && !main.hasAttribute("aria-busy"); }"""
    )


def visit(page: Any, address: str) -> None:
    """Open an address as its reader does, and wait until it is drawn."""
    page.goto(address, wait_until="load")
    settled(page)


def go(page: Any, address: str) -> None:
    """To another address as a link leads there, without loading all of the page again."""
    page.evaluate(
        "(address) => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }", address
    )
    settled(page)


# Counts what a page has asked and not read yet, and the timers that are due within a second.
STIRS = """(() => {
    const stirs = (window.stirs = { asked: 0, due: new Set(), later: window.setTimeout.bind(window) });
    const { fetch, clearTimeout } = window;
    const idle = window.requestIdleCallback.bind(window), cancelIdle = window.cancelIdleCallback.bind(window);
    const counted = (sort, begin, act, given) => {
        const id = begin((...told) => { stirs.due.delete(`${sort} ${id}`); act(...told); }, ...given);
        stirs.due.add(`${sort} ${id}`);
        return id;
    };
    const over = () => stirs.later(() => { stirs.asked -= 1; }, 0);
    window.fetch = async (...given) => {
        stirs.asked += 1;
        try {
            const got = await fetch(...given), json = got.json.bind(got);
            got.json = () => json().finally(over);
            return got;
        } catch (error) {
            over();
            throw error;
        }
    };
    window.setTimeout = (act, pause = 0, ...given) =>
        typeof act === "function" && pause < 1000 ? counted("timer", stirs.later, act, [pause, ...given])
            : stirs.later(act, pause, ...given);
    window.clearTimeout = (id) => { stirs.due.delete(`timer ${id}`); clearTimeout(id); };
    window.requestIdleCallback = (act, how) => counted("idle", idle, act, [how]);
    window.cancelIdleCallback = (id) => { stirs.due.delete(`idle ${id}`); cancelIdle(id); };
})()"""
# Settles after four frames in a row in which nothing was pending and nothing was drawn.
STILL = """() => new Promise((settle) => {
    let quiet = 0;
    const watcher = new MutationObserver(() => { quiet = 0; });
    watcher.observe(document.body, { subtree: true, childList: true });
    const look = () => {
        const busy = document.getElementById("main").hasAttribute("aria-busy");
        quiet = stirs.asked || stirs.due.size || busy ? 0 : quiet + 1;
        if (quiet < 4) return requestAnimationFrame(look);
        watcher.disconnect();
        settle();
    };
    look();
})"""


def still(page: Any) -> None:
    """Wait until all that a page asked for has come, and nothing of it changes any more."""
    page.evaluate(STILL)


# The browser tells of refused content on its console too; this tells which, and of what is only reported.
LISTENER = """addEventListener("securitypolicyviolation", event => console.error(
    `refused: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"""


@contextmanager
def watched(context: Any, viewer: Viewer, watch: Watch) -> Iterator[Any]:
    """A page that has the viewer's cookie, and nothing that another page has stored; nothing may go wrong on it."""
    watch.origin = viewer.origin
    name, text = viewer.cookie
    context.clear_cookies()
    context.add_cookies([{"name": name, "value": text, "url": viewer.origin, "httpOnly": True, "sameSite": "Strict"}])
    hears = {
        "console": lambda message: _note_console(message, watch),
        "weberror": lambda error: watch.messages.append(f"exception: {error.error}"),
        "request": lambda request: _note_request(request, watch),
        "response": lambda got: _answered(got, watch),
        "dialog": lambda dialog: (watch.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        "page": lambda new: new.on("crash", lambda: watch.messages.append("the page crashed")),
    }
    for event, hear in hears.items():
        context.on(event, hear)
    page = context.new_page()
    try:
        yield page
    finally:
        for each in context.pages:
            each.close()
        for event, hear in hears.items():
            context.remove_listener(event, hear)
    assert watch.troubles == []


def _note_console(message: Any, watch: Watch) -> None:
    if message.type == "error":
        watch.messages.append(f"console: {message.text} at {message.location.get('url', '')}")


def _note_request(request: Any, watch: Watch) -> None:
    there = urlsplit(request.url)
    if f"{there.scheme}://{there.netloc}" != watch.origin and request.url != "about:blank":
        watch.messages.append(f"a request leaves: {request.method} {request.url[:200]}")


def _answered(got: Any, watch: Watch) -> None:
    if got.url.startswith(f"{watch.origin}/") and got.status < 400:
        watch.answered.add((got.request.method, urlsplit(got.url).path))


# -- fixtures -----------------------------------------------------------------------------------------------------


def missing(why: str) -> None:
    """Without what the tests need they say so and are passed over, but not where they are required."""
    if REQUIRED:
        pytest.fail(f"FOREWORD_VIEWER=required, but {why}", pytrace=False)
    pytest.skip(why)


def lacking() -> str:
    """Why no browser can be had, if none can."""
    if playwright is None:
        return "there is no playwright (`make test-viewer` installs it)"
    if chromium(os.environ) is None:
        return "there is no chromium (apt-get install chromium, or name one in CHROMIUM)"
    return ""


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for all; its profile is a folder that it throws away itself."""
    program = chromium(os.environ)
    if lacks := lacking():
        missing(lacks)
    with playwright.sync_playwright() as player:
        made = player.chromium.launch(executable_path=str(program), headless=True, args=list(FLAGS))
        playwright.expect.set_options(timeout=SECONDS * 1000)  # as all that is waited for; its own are five seconds
        yield made
        made.close()


@contextmanager
def window(browser: Any, look: Look, **more: Any) -> Iterator[Any]:
    """What a browser keeps for one person: its cache, its cookies, what pages have stored."""
    context = browser.new_context(
        viewport={"width": look.width, "height": look.height},
        color_scheme=look.scheme,
        has_touch=look.place in ("phone", "tablet"),
        reduced_motion="reduce",
        service_workers="block",
        locale="en-GB",
        timezone_id="UTC",
        **more,
    )
    context.set_default_timeout(SECONDS * 1000)
    context.add_init_script(LISTENER)
    context.add_init_script(STIRS)
    try:
        yield context
    finally:
        context.close()


@pytest.fixture(scope="package")
def windows(browser: Any) -> Iterator[Callable[[Look], Any]]:
    """One for each look: scripts that are cached are half of what a page costs."""
    with ExitStack() as stack:
        made: dict[Look, Any] = {}

        def of(look: Look) -> Any:
            if look not in made:
                made[look] = stack.enter_context(window(browser, look))
            return made[look]

        yield of


@pytest.fixture(scope="package")
def template() -> Iterator[tuple[Path, Filled]]:
    """A filled home whose worker has left; every viewer gets a copy."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    yield root, fill(home, root / "projects")
    shutil.rmtree(root)


@contextmanager
def opened(template: tuple[Path, Filled]) -> Iterator[Viewer]:
    """A viewer over a copy of the filled home."""
    root, filled = template
    copy = Path(tempfile.mkdtemp(prefix="fw-"))
    try:
        shutil.copytree(root / "h", copy / "h")
        home = Home(root=copy / "h")
        with worker(home, root / "projects" / "user") as client:
            viewer = Viewer(home, client, filled)
            try:
                yield viewer
            finally:
                viewer.close()
    finally:
        shutil.rmtree(copy)


@pytest.fixture(scope="module")
def viewer(template: tuple[Path, Filled]) -> Iterator[Viewer]:
    """A viewer for all tests of a file; each changes memories of its own only."""
    with opened(template) as made:
        yield made


@pytest.fixture
def fresh(template: tuple[Path, Filled]) -> Iterator[Viewer]:
    """A viewer of this test's own."""
    with opened(template) as made:
        yield made


@pytest.fixture
def look(request: pytest.FixtureRequest) -> Look:
    """Desktop and light, where a test does not say otherwise."""
    return getattr(request, "param", ALL_LOOKS[0])


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def page(windows: Callable[[Look], Any], viewer: Viewer, look: Look, watch: Watch) -> Iterator[Any]:
    with watched(windows(look), viewer, watch) as made:
        yield made


@pytest.fixture
def fresh_page(windows: Callable[[Look], Any], fresh: Viewer, look: Look, watch: Watch) -> Iterator[Any]:
    with watched(windows(look), fresh, watch) as made:  # its port is an origin of its own
        yield made


@pytest.fixture
def unused(windows: Callable[[Look], Any], look: Look, watch: Watch) -> Iterator[tuple[Any, Viewer]]:
    """A viewer over a memory that nobody has told anything yet."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    (root / "new").mkdir()
    try:
        with worker(home, root / "user") as client:
            viewer = Viewer(home, client, Filled({"new": str(root / "new")}))
            try:
                with watched(windows(look), viewer, watch) as page:
                    yield page, viewer
            finally:
                viewer.close()
    finally:
        shutil.rmtree(root)


@pytest.fixture
def shot(look: Look) -> Callable[..., Path]:
    """Keeps a picture of a page: `shot(page, "memories")` -> artefacts/viewer/memories-phone-dark.png."""

    def taken(page: Any, name: str, *, whole: bool = False) -> Path:
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        path = ARTEFACTS / f"{name}-{look}.png"
        page.screenshot(path=path, full_page=whole)
        return path

    return taken


@pytest.fixture(scope="package")
def axe() -> str:
    """The script of axe-core, as npm has it."""
    script = binary(AXE, clients(os.environ))
    if not script.exists():
        missing(f"there is no {AXE.spec} (python tests/viewer/install.py, which needs npm)")
    return script.read_text(encoding="utf-8")
