"""stdin of a host's hook -> the worker -> stdout; without a worker, the spool and a read-only look at the database.

This file is the head of the generated hook.py; `build.py` fills CONFIG, takes out prose and annotations, and puts the
package's light modules behind it. Started as `python -I -S hook.py --host H EVENT`. Its imports are its cost: all else
is loaded only when the worker is away. Memory must never break the agent: exit 0, one JSON object or nothing on stdout.
"""

from __future__ import annotations

import posix
import sys
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal  # type: ignore[import-not-found]
from time import monotonic, sleep, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, NoReturn

    Call = tuple[str, str, float, bytes, int, int]  # host, event, at, what was kept, where it was cut, its size

CONFIG: dict[str, Any] = {}


def main() -> None:
    at = round(time(), 6)  # as it is written in a URL: the worker must see the same moment
    host, event = named(sys.argv)
    raw, head, total = read_stdin()
    began = monotonic()  # how long the host took to write is not ours
    if posix.environ.get(b"FOREWORD_OFF", b"") not in (b"", b"0"):
        return
    asked, _, why = asked_before(sys.argv).partition(" ")
    call = host, event, float(asked or at), raw, head, total
    limit = deadline_of(event, total)
    try:
        answer = away(call, until=began + limit, why=why) if asked else ask(call, until=began + limit * 0.6)
    except (FileNotFoundError, ConnectionRefusedError):
        answer = away(call, until=began + limit, why="")  # nobody there: the ordinary case of a first call
    except Exception as exc:
        answer = away(call, until=began + limit, why=f"{type(exc).__name__}: {exc}")
    write_stdout(answer)


def named(argv: list[str]) -> tuple[str, str]:
    """Host and event from the command line; letters, digits, `-`, `_`, `.` only, because they go into a URL."""
    words = [word for word in argv[1:] if word]
    host = words[words.index("--host") + 1] if "--host" in words[:-1] else ""
    event = words[-1] if words and words[-1] not in ("--host", host) else ""
    return clean(host) or "unknown", clean(event) or "unknown"


def asked_before(argv: list[str]) -> str:
    """When a plugin asked the worker itself, and why that came to nothing; then it is not asked for the same again."""
    told = argv[argv.index("--asked") + 1] if "--asked" in argv[:-1] else ""
    at = told.partition(" ")[0]
    return told if len(at) < 20 and at.replace(".", "", 1).isdecimal() else ""  # else no time, and nothing to keep


def clean(word: str) -> str:
    return "".join(letter for letter in word[:80] if letter.isascii() and (letter.isalnum() or letter in "-_."))


def read_stdin() -> tuple[bytes, int, int]:
    """All of stdin, its first and last part kept: what was kept, where the cut is (-1: none), how much there was."""
    first, last = CONFIG["head"], CONFIG["tail"]
    start, end, size, spoiled = [], b"", 0, False
    signal(SIGALRM, hang_up)
    setitimer(ITIMER_REAL, CONFIG["deadline_stdin"])
    try:
        while part := posix.read(0, 1 << 20):
            if size < first:
                start.append(part[: first - size])
                part = part[first - size :]
                size += len(start[-1])
            size += len(part)
            end += part
            spoiled = spoiled or opens_private(end[-len(part) - 200 :])
            end = end[-last:]
    except TimeoutError:  # a host that never closes our stdin has told us what it had to tell
        first = size = min(size, first)
        return b"".join(start)[:first], first, size
    setitimer(ITIMER_REAL, 0)
    if size <= first + last:
        return b"".join(start) + end, -1, size
    return b"".join(start) + (b"" if spoiled else end), first, size


def opens_private(part: bytes) -> bool:
    """Whether something private may begin here: then the end of a cut payload may lie inside it, and is not kept."""
    if b"PRIVATE KEY" in part or b"Private-Lines" in part:
        return True
    if not part.isascii() or b"\\u" in part:
        if "foreword.redact" not in sys.modules:
            load()
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


def hang_up(_signal: int, _frame: object) -> NoReturn:
    raise TimeoutError


def deadline_of(event: str, total: int) -> float:
    if total > CONFIG["head"]:
        which = "deadline_huge"
    else:
        starts = event.lower().endswith(("sessionstart", "session.created", "system.transform", "compacting"))
        which = "deadline_start" if starts else "deadline_prompt"
    return float(CONFIG[which])


def ask(call: Call, *, until: float) -> bytes:
    """The worker's bytes; a worker that refuses, is late or answers anything but a whole 200 raises."""
    posix.stat(CONFIG["socket"])  # no worker since the last start: no need for sockets at all
    from _socket import AF_UNIX, SOCK_STREAM, socket

    host, event, at, raw, head, total = call
    line = socket(AF_UNIX, SOCK_STREAM)
    line.settimeout(max(0.01, until - monotonic()))
    line.connect(CONFIG["socket"])
    line.sendall(
        f"POST /api/hook?host={host}&event={event}&at={at:.6f}&head={head}&total={total}{digests(secret_values())}"
        " HTTP/1.1\r\n"
        f"Host: foreword\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode()
        + raw
    )
    got = b""
    while True:
        line.settimeout(max(0.01, until - monotonic()))
        part = line.recv(1 << 18)
        if not part:
            break
        got += part
    top, _, body = got.partition(b"\r\n\r\n")
    lines = top.lower().split(b"\r\n")
    if not lines[0].startswith(b"http/1.1 200") or b"content-length: %d" % len(body) not in lines:
        raise ValueError(f"the worker answered {top[:80]!r}")
    return body


def away(call: Call, *, until: float, why: str) -> bytes:
    """No worker: keep the event, look for context with what is here, and start a worker for the next time."""
    if call[1] == "statusLine":
        return b""  # drawn often: nothing happened, and nobody waits
    import gc
    from _thread import start_new_thread

    gc.disable()  # a process that lives for 15 ms has no garbage to look for, and looking takes one of them
    start_new_thread(give_up, ())
    posix.umask(0o077)
    load()
    from foreword.hook import fallback

    return fallback.answer(CONFIG, call, until=until, why=why, values=secret_values())


def secret_values() -> list[bytes]:
    """What the environment holds under a name that tells; no path, number or word: those stand in texts that matter."""
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


def digests(values: list[bytes]) -> str:
    """Enough for the worker to find these values in what it is sent, and nothing that tells them."""
    from _imp import source_hash  # built in; `hashlib` costs a hook 10 ms

    key = CONFIG["key"]
    told = [f"{len(each)}-{source_hash(key, each[:8]).hex()}-{source_hash(key, each).hex()}" for each in values]
    return f"&hidden={','.join(told)}" if told and key else ""


def give_up() -> None:
    """A disk that hangs has no timeout of its own; the host would kill us at five seconds, and show it."""
    sleep(CONFIG["deadline_all"])
    posix._exit(0)


def load() -> None:
    """Make the light modules importable: compiled from the cache, else their source from the end of this file."""
    import marshal
    from _frozen_importlib_external import MAGIC_NUMBER
    from _imp import source_hash

    magic = MAGIC_NUMBER.hex()
    found: Any = None
    try:
        with open(posix.open(CONFIG["cache"], posix.O_RDONLY | posix.O_NONBLOCK), "rb") as file:
            data = file.read()
        if data[:8] == source_hash(0, data[8:]):  # marshal trusts its input: one flipped bit may end the process
            for_magic, build, found = marshal.loads(data[8:])
            found = found if (for_magic, build) == (magic, CONFIG["build"]) else None
    except (OSError, ValueError, EOFError, TypeError):
        found = None  # the cache is only faster: this file holds the same
    if found is None:
        try:
            from binascii import a2b_base64
            from zlib import decompress

            with open(__file__, "rb") as file:
                found = marshal.loads(decompress(a2b_base64(file.read().rpartition(b"\n#")[2])))
        except Exception:
            sys.path.append(CONFIG["package"])  # a damaged file, or no zlib: the package has the same modules
            return
    spec_of: Any = type(sys.__spec__)

    class Bundle:
        @staticmethod
        def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
            return spec_of(name, Bundle, is_package=found[name][0]) if name in found else None

        @staticmethod
        def create_module(_spec: ModuleSpec) -> None:
            return None

        @staticmethod
        def exec_module(module: ModuleType) -> None:
            code = found[module.__name__][1]
            exec(marshal.loads(code) if type(code) is bytes else code, module.__dict__)

    sys.meta_path.insert(0, Bundle)


def write_stdout(answer: bytes) -> None:
    while answer:
        answer = answer[posix.write(1, answer) :]


def trace(exc: BaseException) -> None:
    """Leave what was swallowed where `doctor` finds it."""
    what = f"{type(exc).__name__}: {exc}".encode("ascii", "replace").replace(b'"', b"'").replace(b"\\", b"/")
    host = named(sys.argv)[0].encode()
    fd = posix.open(CONFIG["trouble"], posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
    what = what.replace(b"\n", b" ")[:500]
    posix.write(fd, b'{"at":%d,"where":"hook of %s","what":"%s"}\n' % (time(), host, what))


if __name__ == "__main__":
    try:
        main()
    except BaseException as exc:
        try:
            trace(exc)
        except BaseException:
            pass
    posix._exit(0)
