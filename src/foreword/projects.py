"""Find the project of a folder, and its languages, from files alone."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from os.path import basename, dirname, exists, join
from time import monotonic

from foreword.encoding import read_table
from foreword.errors import BadRequest
from foreword.models import Project

LANGUAGES = {
    name: rest
    for name, *rest in ([each.strip() for each in line.split("|")] for line in read_table(__file__, "languages.txt"))
}
ENDINGS = {ending: name for name, (endings, _, _) in LANGUAGES.items() for ending in endings.split()}
SIGNS = {file: name for name, (_, files, _) in LANGUAGES.items() for file in files.split()}
# A folder with one of these is a project of its own. Not Makefile or requirements.txt, which lie in docs/ as well; and
# exact names only, since a pattern such as *.sln would need a listing.
PROJECT_FILES = (
    *(file for file in SIGNS if file not in ("requirements.txt", "tsconfig.json")),
    *("settings.gradle", "settings.gradle.kts", "MODULE.bazel", "deno.jsonc", "flake.nix"),
)

CASELESS = ("github.com", "gitlab.com", "bitbucket.org")  # their paths ignore case
ALIASES = {  # the same repositories behind a second name, for networks that close port 22
    "www.github.com": "github.com",
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
# Accounts that many share: a path in their home is the server's. In any other's home it is another repository.
SHARED = ("", "git", "gitea", "gogs", "forgejo", "gitlab", "aur", "hg", "svn")
# Of ssh, http, https and git. One set for all schemes: ssh on 443 is the same server behind a strict firewall.
DEFAULT_PORTS = ("22", "80", "443", "9418")

PATH_LIMIT = 4096  # PATH_MAX of Linux; macOS has 1024
FILE_LIMIT = 1_000_000  # bytes; a git config has a few hundred
MOST_INCLUDES = 10  # of one config in another, as with git
NAME_LIMIT = 80  # characters; a name is for one line of display


def resolve(folder: str) -> Project:
    """Return the project of an absolute *folder*, whether it still exists or not; BadRequest for any other path."""
    if not folder.startswith("/") or len(folder) > PATH_LIMIT:
        message = f"the project's folder must be an absolute path of at most {PATH_LIMIT} bytes, not {folder[:200]!r}"
        raise BadRequest(message, hint="give the full path of the folder, as `pwd` prints it")
    real_folder = _real(folder)
    existing = next(step for step in _upward(real_folder) if _mode(step) or step == "/")
    if not stat.S_ISDIR(_mode(existing)):  # a file stands for its folder
        real_folder = existing = dirname(existing)
    for top in _upward(existing):
        if project := _repository(top):
            return project
    # A package.json left in the home folder, in / or in /tmp must not make one project of all that lies below.
    shared_folders = ("/", _real(os.environ.get("HOME", "") or "/"))
    for step in _upward(existing):
        is_project = step not in shared_folders and any(exists(join(step, name)) for name in PROJECT_FILES)
        if is_project and not _mode(step) & stat.S_ISVTX:
            real_folder = step
            break
    return Project(key="dir:" + _storable(real_folder), name=_label(real_folder), root=real_folder)


def remote(url: str) -> str:
    """Return `host/owner/repo` for every spelling of a remote, without user and password; empty if it has no host."""
    host, path = _address(url)
    if not host:
        return ""
    return f"{host}/{path.lower() if host in CASELESS else path}"


# ---- git


def _repository(top: str) -> Project | None:
    git = git_directory(top)
    if not git:
        return None
    common = _common(git)
    inside = git == top  # a bare repository, or a folder within `.git`
    root = dirname(top) if inside and top.endswith("/.git") else top
    # A linked work tree reads a relative remote as the main one does, or the two would not share.
    base = root if git == common else dirname(common) if common.endswith("/.git") else common
    remotes = _remotes(common, git)
    url = remotes.get("origin") or (remotes[min(remotes)] if remotes else "")
    key, name = _identity(url, base=base)
    holder = dirname(common) if basename(common).startswith(".") else common  # the folder around `.git` or `.bare`
    return Project(key=key or "dir:" + _storable(common), name=name or _label(holder), root=root)


def _common(git: str) -> str:
    """Return the git directory that all work trees of a repository have in common."""
    target = _text(join(git, "commondir")).strip("\r\n")
    common = _real(join(git, target)) if 0 < len(target) <= PATH_LIMIT else git
    return common if _is_repository(common) else git


def is_pushed(root: str, branch: str, commit: str) -> bool:
    """Return whether git's files say that a remote has *branch* as it is here, or has this commit of it at its head."""
    from glob import escape, glob  # seldom

    git = git_directory(root) if root else ""
    if not git or ".." in branch:
        return False
    common = _common(git)
    heads = {
        name: head
        for head, _, name in (line.partition(" ") for line in _text(join(common, "packed-refs")).splitlines())
    }
    loose = (f"refs/heads/{branch}", *glob(f"refs/remotes/*/{escape(branch)}", root_dir=common))
    heads |= {name: head for name in loose if (head := _text(join(common, name)).strip())}
    local = heads.get(f"refs/heads/{branch}", "")
    there = [
        head for name, head in heads.items() if name.startswith("refs/remotes/") and name.split("/", 3)[-1] == branch
    ]
    return local in there or any(head.startswith(commit) for head in there if commit)


def git_directory(top: str) -> str:
    """Return the git directory of a folder, where git would look for it; empty for none."""
    dot = join(top, ".git")
    mode = _mode(dot)
    if stat.S_ISDIR(mode) and _is_repository(dot):
        return _real(dot)
    if stat.S_ISREG(mode):
        word, _, target = _text(dot).strip("\r\n").partition(": ")
        directory = _real(join(top, target)) if word == "gitdir" and 0 < len(target) <= PATH_LIMIT else ""
        if directory and _is_repository(directory):
            return directory
    return top if all(exists(join(top, name)) for name in ("HEAD", "objects", "refs")) else ""


def _is_repository(folder: str) -> bool:
    # git wants more, but half a repository still shows whose work it is.
    return exists(join(folder, "HEAD")) or exists(join(folder, "config"))


def _identity(url: str, *, base: str) -> tuple[str, str]:
    """Return key and name of what *url* leads to; both empty if that is not known."""
    host, path = _address(url)
    if host:
        return "git:" + _storable(remote(url)), _label(path)
    if not path:
        return "", ""
    path = path.rstrip("/").removesuffix("/.git") or "/"
    real_path = _real(join(base, path))
    if not _mode(real_path) and _mode(real_path + ".git"):  # git clones /srv/x from /srv/x.git
        real_path += ".git"
    return "git:" + _storable(real_path), _label(real_path)


# ---- the address of a remote


def _address(url: str) -> tuple[str, str]:
    """Return host and path of *url*; no host for a path on this machine, and neither where no repository is named."""
    url = url.strip()
    if len(url) > PATH_LIMIT:
        return "", ""
    # helper::address; behind `ext::` is a command
    while "::" in url and (helper := re.match(r"[\w+.-]+::", url, re.ASCII)):
        url = url[helper.end() :] if "://" in url else ""
    scheme, has_scheme, rest = url.partition("://")
    if has_scheme and scheme.isascii() and scheme.translate({ord(sign): "" for sign in "+-."}).isalnum():
        authority, _, path = rest.partition("/")
        if scheme.lower() == "file":
            from urllib.parse import unquote  # 3 ms, and seldom

            return "", "/" + unquote(path, errors="surrogateescape")
        host, port = _host_and_rest(authority)
        return _tidy(host, path, port=port, user=_user(authority) if path.startswith("~/") else "")
    authority, _, path = url.partition("/")
    if ":" not in authority and "@" not in authority:
        return "", url
    host, first = _host_and_rest(authority)  # git@host:owner/repo
    is_at_home = first == "~" or not first.startswith("~")
    return _tidy(host, f"{first}/{path}", port="", user=_user(authority) if first and is_at_home else "")


def _user(authority: str) -> str:
    """Return who logs in, if a home of their own is theirs; what may be a secret is no name."""
    user = authority.rpartition("@")[0]
    return user if user.lower() not in SHARED and re.fullmatch(r"[a-z][a-z0-9._-]{0,31}", user) else ""


def _host_and_rest(authority: str) -> tuple[str, str]:
    """Return the host without user and password, and what follows its colon."""
    authority = authority.rpartition("@")[2]
    if "[" not in authority:
        host, _, rest = authority.partition(":")
        return host, rest
    address = re.fullmatch(r"(\[[^\[\]]*:[^\[\]]*:[^\[\]]*\])(?::(.*))?", authority, re.DOTALL)  # IPv6
    return (address[1], address[2] or "") if address else ("", "")


def _tidy(host: str, path: str, *, port: str, user: str = "") -> tuple[str, str]:
    host = host.lower().rstrip(".")
    host = ALIASES.get(host, host)
    # ?access_token=…, a proxy's https://…/https://user:token@host/…, a password with a slash in it
    may_hold_secret = re.search(r"[?#]|://|:[^/@]*@", path)
    if host.split() != [host] or (port and not (port.isascii() and port.isdigit())) or may_hold_secret:
        return "", ""
    if port and port not in DEFAULT_PORTS and host not in CASELESS:
        host += ":" + port
    steps = [step for step in path.split("/") if step not in ("", ".")]
    while steps and steps[-1].strip().removesuffix(".git") != steps[-1]:
        last = steps.pop().strip().removesuffix(".git")
        steps += [last] if last else []
    if steps[:1] == ["~"]:
        del steps[0]  # the user's own folder, where host:path begins as well
    if not steps or not {".", "..", "~"}.isdisjoint(steps):
        return "", ""
    return host, "/".join([f"~{user}", *steps] if user and host not in CASELESS else steps)


# ---- git's config


_HERE = re.compile(r"file:|[/.~]|\w+://(?:[^/@]*@)?(?:localhost|127\.|\[::1\])")


def _remotes(common: str, git: str) -> dict[str, str]:
    """Return the first url of each remote, as git reads it: with what `insteadOf` makes of it."""
    home = os.environ.get("HOME", "")
    user = (join(os.environ.get("XDG_CONFIG_HOME") or join(home, ".config"), "git/config"), join(home, ".gitconfig"))
    remotes: dict[str, str] = {}
    bases: dict[str, str] = {}
    for path in ("/etc/gitconfig", *user, join(common, "config"), join(git, "config.worktree")):
        for section, name, key, value in _entries(path, git):
            if section == "remote" and key == "url" and value:
                remotes.setdefault(name, value)
            elif section == "url" and key == "insteadof" and value:
                bases[value] = name
    for name, url in remotes.items():
        prefix = max((each for each in bases if url.startswith(each)), key=len, default="")
        # A mirror on this machine is not what a project is called: it differs from one machine to the next.
        if prefix and not _HERE.match(bases[prefix]):
            remotes[name] = bases[prefix] + url[len(prefix) :]
    return remotes


def _entries(path: str, git: str, depth: int = 0) -> Iterator[tuple[str, str, str, str]]:
    """Yield section, name of it, key and value of a config and of the files that it includes, in git's order."""
    section = name = ""
    for line in _text(path).removeprefix("\ufeff").splitlines():
        text = line.strip()
        if text.startswith("["):
            kind, _, quoted = text[1:].partition('"')
            section = kind.strip(" \t]").lower()
            name = quoted.rpartition('"')[0].replace('\\"', '"').replace("\\\\", "\\")
            continue
        key, _, value = text.partition("=")
        key, value = key.rstrip().lower(), _value(value.strip())
        yield section, name, key, value
        included = section == "include" or (section == "includeif" and _is_in(name, git, dirname(path)))
        if key == "path" and value and included and depth < MOST_INCLUDES:
            yield from _entries(join(dirname(path), os.path.expanduser(value)), git, depth + 1)


def _is_in(condition: str, git: str, folder: str) -> bool:
    """Return whether a condition such as `gitdir:~/code/` holds of a git directory; others are taken not to."""
    from fnmatch import fnmatchcase  # seldom

    kind, _, pattern = condition.partition(":")
    pattern = os.path.expanduser(folder + pattern[1:] if pattern.startswith("./") else pattern)
    pattern = pattern if pattern.startswith("/") else f"**/{pattern}"
    pattern = f"{pattern}**" if pattern.endswith("/") else pattern
    if kind == "gitdir/i":
        git, pattern = git.lower(), pattern.lower()
    return kind in ("gitdir", "gitdir/i") and fnmatchcase(git, pattern)


def _value(text: str) -> str:
    """Return a value without quotes, escapes and comment; empty where it goes on in the next line."""
    if not any(sign in text for sign in '"\\#;'):
        return text.strip()  # as nearly always: a hook compiles no pattern for it
    parts = re.match(r'((?:[^"\\#;]|\\.|"(?:[^"\\]|\\.)*")*)(?=$|[#;])', text)
    return re.sub(r'\\(.)|"', lambda found: found[1] or "", parts[1].rstrip()) if parts else ""


# ---- names for display, names for keeping


def _label(path: str) -> str:
    """Return the last part of *path*, fit to be shown."""
    shown = "".join(letter for letter in basename(path).removesuffix(".git") if letter.isprintable())
    return shown.strip()[:NAME_LIMIT] or "/"


def _storable(path: str) -> str:
    """Return *path* as text that any store and terminal can hold; two paths never become one."""
    # Bytes that are not UTF-8 come as surrogates, which no database takes. A tidy path has no `//`, so it marks them.
    # Not isprintable(): it knows more letters in each Python, and the hook's may not be the worker's.
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", lambda found: f"//{ord(found[0]):04x}", path)


# ---- paths and files


def _real(path: str) -> str:
    """Return *path* without links, `.` and `..`; what cannot be followed stays as it is spelled."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # ValueError for NUL and for what the file system cannot spell
        return os.path.normpath(path)


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _text(path: str) -> str:
    """Return a regular file's whole lines within FILE_LIMIT; empty if it cannot be read."""
    if not stat.S_ISREG(_mode(path)):
        return ""  # opening a pipe would wait for ever
    try:
        with open(path, "rb") as file:
            raw = file.read(FILE_LIMIT)
    except OSError:
        return ""
    if len(raw) == FILE_LIMIT:
        raw = raw[: raw.rfind(b"\n") + 1]  # half a line would be another address
    return raw.decode("utf-8", "surrogateescape")


def _upward(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = dirname(path)
        yield path


# ---- languages

_VENDORED = " ".join(read_table(__file__, "vendored.txt")).split()
VENDORED = frozenset(name.lstrip("?") for name in _VENDORED)
ALWAYS_VENDORED = frozenset(name for name in _VENDORED if name[0] != "?")  # also where git tracks a folder
SHARE = 0.1  # of the files in any language, that make a language one of the project's
MOST_ENTRIES = 400  # of all folders together
MOST_IN_ONE = 60  # of one folder: ten thousand of the same say no more than these, and must not hide the others
MOST_FOLDERS = 5  # that are read of those in one folder: forty packages must not hide what lies in them
SECONDS = 0.02  # a disk on the network may need milliseconds for each folder


def languages(root: str) -> tuple[str, ...]:
    """Return the languages of the project at *root*, those with a project file first; what cannot be read has none.

    A few hundred entries are read, the folders near the root first. A hook spends half a millisecond on it.
    """
    signed = [language for name, language in SIGNS.items() if _mode(f"{root}/{name}")]
    counted: Counter[str] = Counter()
    level, left, until = [root], MOST_ENTRIES, monotonic() + SECONDS
    while level and left > 0 and monotonic() < until:
        folder, *level = level
        folders: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, min(left, MOST_IN_ONE)):
                    left -= 1
                    stem, _, ending = entry.name.rpartition(".")
                    if not entry.is_dir(follow_symlinks=False):
                        counted[ENDINGS.get(ending, "") if stem else ""] += 1
                    elif entry.name[0] != "." and entry.name not in VENDORED:
                        folders.append(f"{folder}/{entry.name}")
        except (OSError, ValueError):  # not there, not a folder, not readable, or no path at all
            pass
        left -= 1
        # In the home folder macOS asks the user before we look further.
        if root not in ("/", os.environ.get("HOME", "").rstrip("/")):
            level += sorted(folders)[:: 1 + len(folders) // (MOST_FOLDERS + 1)]  # evenly spread
    del counted[""]
    least = SHARE * counted.total()
    shared = sorted((-files, language) for language, files in counted.items() if files >= least)
    return tuple(dict.fromkeys(signed + [language for _, language in shared]))
