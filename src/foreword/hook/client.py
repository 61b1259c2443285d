"""Pass a hook's stdin to the worker and print its answer. This runs at every event, so its imports are its cost.

`build.py` copies this file into the home; the hook.py beside it sets CONFIG and calls `run`. Started as
`python -I -S hook.py --host H EVENT`. When no worker answers, `foreword.hook.offline` of the package does the rest.
Memory must never break the agent: exit 0, one JSON object or nothing on stdout.
"""

from __future__ import annotations

import posix
import sys
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal  # type: ignore[import-not-found]
from time import monotonic, sleep, time

TYPE_CHECKING = False  # `typing` costs 5 ms
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Call = tuple[str, str, float, bytes, int, int]  # agent, event, at, the bytes kept, where they are cut, total size

CONFIG: dict[str, Any] = {}
STARTED = monotonic()
WORKER_SHARE = 0.4  # of a deadline, for a worker that hangs: the offline path takes 110 to 150 ms of the rest


def run(config: dict[str, Any]) -> None:
    """Serve one hook call and end the process with 0, whatever happens."""
    CONFIG.update(config)
    try:
        main()
    except BaseException as exc:
        try:
            log_problem(exc)
        except BaseException:
            pass
    posix._exit(0)


def main() -> None:
    at = round(time(), 6)  # as it is written in the URL: the worker must see the same time
    agent, event = agent_and_event()
    raw, head, total = read_stdin()
    began = monotonic()  # how long the agent took to write is not ours
    if posix.environ.get(b"FOREWORD_OFF", b"") not in (b"", b"0"):
        return
    raw, head = hide_variables(raw, head)
    if late := option("--late").split():  # a hook could not keep this event in its time; nobody waits for the answer
        answer_offline((agent, event, float(late[0]), raw, int(late[1]), int(late[2])), until=0.0, why="")
        return
    # A plugin that asked the worker itself says when, and why that failed: the worker is not asked again.
    called_at, _, why = option("--asked").partition(" ")
    if len(called_at) >= 20 or not called_at.replace(".", "", 1).isdecimal():
        called_at = ""
    call = agent, event, float(called_at or at), raw, head, total
    limit = deadline_for(event, total)
    until, worker_until = began + limit, began + limit * WORKER_SHARE
    try:
        answer = answer_offline(call, until=until, why=why) if called_at else ask_worker(call, until=worker_until)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        # No worker yet, or one that leaves and resets whoever still waits in its queue: both are ordinary.
        answer = answer_offline(call, until=until, why="")
    except Exception as exc:
        answer = answer_offline(call, until=until, why=f"{type(exc).__name__}: {exc}")
    while answer:
        answer = answer[posix.write(1, answer) :]


def option(name: str) -> str:
    """Return the word behind *name* on the command line."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv[:-1] else ""


def agent_and_event() -> tuple[str, str]:
    """Return agent and event; letters, digits, `-`, `_` and `.` only, because they go into a URL."""
    agent = option("--host")
    event = sys.argv[-1] if len(sys.argv) > 1 and sys.argv[-1] not in ("--host", agent) else ""
    return clean(agent) or "unknown", clean(event) or "unknown"


def clean(word: str) -> str:
    return "".join(letter for letter in word[:80] if letter.isascii() and (letter.isalnum() or letter in "-_."))


def read_stdin() -> tuple[bytes, int, int]:
    """Read all of stdin; return its first and last part, where the cut is (-1: none) and how much there was."""
    first, last = CONFIG["head"], CONFIG["tail"]
    start, end, size, private = [], b"", 0, False
    signal(SIGALRM, raise_timeout)
    setitimer(ITIMER_REAL, CONFIG["deadline_stdin"])
    try:
        while part := posix.read(0, 1 << 20):
            if size < first:
                start.append(part[: first - size])
                part = part[first - size :]
                size += len(start[-1])
            size += len(part)
            end += part
            private = private or may_open_private(end[-len(part) - 200 :])
            end = end[-last:]
    except TimeoutError:  # an agent that never closes our stdin has sent what it had to send
        first = size = min(size, first)
        return b"".join(start)[:first], first, size
    setitimer(ITIMER_REAL, 0)
    if size <= first + last:
        return b"".join(start) + end, -1, size
    return b"".join(start) + (b"" if private else end), first, size


def may_open_private(part: bytes) -> bool:
    """Return whether private text may begin here: then the end of a cut payload may lie inside it, and is not kept."""
    if b"PRIVATE KEY" in part or b"Private-Lines" in part:
        return True
    if not part.isascii() or b"\\u" in part:
        add_package_to_path()
        from foreword.redact.private_tags import may_open

        if may_open(part):
            return True
    part = part.lower()
    at = -1
    while (at := part.find(b"private", at + 1)) >= 0:
        before = part[max(0, at - 160) : at]
        if any(sign in before for sign in (b"<", b"lt", b"3c", b"60", b"\xef\xbc\x9c")):  # plain, escaped, wide
            return True
    return False


def raise_timeout(_signal: int, _frame: object) -> NoReturn:
    raise TimeoutError


def deadline_for(event: str, total: int) -> float:
    """Return the seconds that this call may take."""
    if total > CONFIG["head"]:
        which = "deadline_huge"
    else:
        starts = event.lower().endswith(("sessionstart", "session.created", "system.transform", "compacting"))
        which = "deadline_start" if starts else "deadline_prompt"
    return float(CONFIG[which])


def ask_worker(call: Call, *, until: float) -> bytes:
    """Return the worker's answer; a worker that refuses, is late or sends anything but a whole 200 raises."""
    posix.stat(CONFIG["socket"])  # raises where no worker ever started, before a socket module is loaded
    from _socket import AF_UNIX, SOCK_STREAM, socket

    agent, event, at, raw, head, total = call
    query = f"host={agent}&event={event}&at={at:.6f}&head={head}&total={total}"
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(max(0.01, until - monotonic()))
    connection.connect(CONFIG["socket"])
    connection.sendall(
        f"POST /api/hook?{query} HTTP/1.1\r\n"
        f"Host: foreword\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode()
        + raw
    )
    received = b""
    while True:
        connection.settimeout(max(0.01, until - monotonic()))
        part = connection.recv(1 << 18)
        if not part:
            break
        received += part
    top, _, body = received.partition(b"\r\n\r\n")
    lines = top.lower().split(b"\r\n")
    if not lines[0].startswith(b"http/1.1 200") or b"content-length: %d" % len(body) not in lines:
        raise ValueError(f"the worker answered {top[:80]!r}")
    return body


def answer_offline(call: Call, *, until: float, why: str) -> bytes:
    """Keep the event, look for context in the database, and start a worker for the next event."""
    if call[1] in ("statusLine", "PreToolUse"):
        return b""  # drawn often, or before each tool: nothing happened that must be kept, and only a worker answers it
    import gc
    from _thread import start_new_thread

    gc.disable()  # a process that lives for 80 ms has no garbage, and looking for it takes a tenth of them
    start_new_thread(exit_late, (call, until))
    add_package_to_path()
    from foreword.hook import offline

    posix.umask(0o077)  # not earlier: bytecode that importing writes is for every user of the package
    return offline.answer(CONFIG, call, until=until, why=why)


def add_package_to_path() -> None:
    if CONFIG["package"] not in sys.path:
        sys.path.append(CONFIG["package"])


def secret_values() -> list[bytes]:
    """Return the secrets of the environment: values under telling names that are no path, number or word."""
    environ = posix.environ
    usual = b"%s\n%s\n%s" % (environ.get(b"PWD", b""), environ.get(b"HOME", b""), environ.get(b"PATH", b""))
    found = []
    for name, value in environ.items():
        if not 8 <= len(value) <= 4096:
            continue
        sure = b"PASS" in name
        if not sure and b"://" in value and b"@" in value:
            value = value.partition(b"://")[2].rpartition(b"@")[0].partition(b":")[2]
            sure = True
        elif not (
            sure or b"TOKEN" in name or b"KEY" in name or b"SECRET" in name or b"CRED" in name or b"AUTH" in name
        ):
            continue
        bare = value.translate(None, b"-_./:@")
        if bare.isdigit() or (bare.isalpha() and len(bare) < 20) or value[:1] in (b"/", b"~", b"."):
            continue
        if b"://" in value or value in usual or len(value.split()) != 1 or len(value) < (8 if sure else 12):
            continue
        if not bare.isalpha() and bare.translate(None, b"0123456789") == bare and not sure:
            continue
        found.append(value)
    return found


def hide_variables(raw: bytes, head: int) -> tuple[bytes, int]:
    """Return a payload without the secrets of the environment, and where it is cut now."""
    values = secret_values()
    if head < 0 or not values:
        return without_values(raw, values), head
    first = without_values(raw[:head], values)
    return first + without_values(raw[head:], values), len(first)


def without_values(raw: bytes, values: list[bytes]) -> bytes:
    """Return JSON without these values, as they are, in a JSON text inside it, or with \\u escapes."""
    for value in sorted(values, key=len, reverse=True):
        inner = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        forms = {inner, inner.replace(b"\\", b"\\\\").replace(b'"', b'\\"')}
        if not value.isascii():
            text = inner.decode("utf-8", "surrogateescape")
            forms.add("".join([c if c.isascii() else f"\\u{ord(c):04x}" for c in text]).encode())
        for form in forms:
            raw = raw.replace(form, b"[redacted:env]")
    return raw


def exit_late(call: Call, until: float) -> None:
    """End the process when all deadlines have passed: a disk may hang, or many hooks may share a busy core."""
    from _thread import start_new_thread

    again = not option("--late")
    seconds = CONFIG["deadline_all" if again else "deadline_late"]
    sleep(max(0.0, max(until, STARTED + seconds) - monotonic()))  # who was slow to write still gets an answer
    start_new_thread(exit_after, (1.5,))  # because what follows may hang as well
    if again:
        spawn_late_process(call)
    else:
        log_problem(TimeoutError(f"ended after {seconds} s; its event may be lost"))
    posix._exit(0)


def exit_after(seconds: float) -> None:
    sleep(seconds)
    posix._exit(0)


def spawn_late_process(call: Call) -> None:
    """Start a process that keeps the event while the agent goes on; it gets the event in memory, without a file."""
    try:
        agent, event, at, raw, head, total = call
        memory = posix.memfd_create("foreword")
        while raw:
            raw = raw[posix.write(memory, raw) :]
        posix.lseek(memory, 0, 0)
        streams = [
            (posix.POSIX_SPAWN_DUP2, memory, 0),
            (posix.POSIX_SPAWN_OPEN, 1, "/dev/null", posix.O_WRONLY, 0),
            (posix.POSIX_SPAWN_OPEN, 2, "/dev/null", posix.O_WRONLY, 0),
        ]
        about = ["--late", f"{at:.6f} {head} {total}", "--host", agent, event]
        command = [sys.executable, "-I", "-S", sys.argv[0], *about]
        posix.posix_spawn(command[0], command, posix.environ, file_actions=streams, setsid=True)
    except Exception as exc:  # no memfd_create: not Linux
        log_problem(TimeoutError(f"ended after {CONFIG['deadline_all']} s; its event may be lost: {exc}"))


def log_problem(exc: BaseException) -> None:
    """Append the swallowed exception to the log that `doctor` reads."""
    what = f"{type(exc).__name__}: {exc}".encode("ascii", "replace").replace(b'"', b"'").replace(b"\\", b"/")
    what = what.replace(b"\n", b" ")[:500]
    agent = agent_and_event()[0].encode()
    fd = posix.open(CONFIG["problems"], posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
    if posix.fstat(fd).st_size < 1 << 18:  # a package that is gone fails at every event
        posix.write(fd, b'{"at":%d,"where":"hook of %s","what":"%s"}\n' % (time(), agent, what))
