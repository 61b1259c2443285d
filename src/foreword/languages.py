"""A project's folder -> the languages it is written in, by project files and by the names of its files.

Nothing is opened but folders, and few of them: a tree of a million files costs no more than one of a thousand.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

# In the order in which languages are told.
SIGNS = {
    "pyproject.toml": "python",
    "setup.py": "python",
    "setup.cfg": "python",
    "requirements.txt": "python",
    "Pipfile": "python",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "package.json": "javascript",
    "tsconfig.json": "typescript",
    "deno.json": "typescript",
    "pom.xml": "java",
    "build.gradle": "java",
    "build.gradle.kts": "kotlin",
    "build.sbt": "scala",
    "Gemfile": "ruby",
    "composer.json": "php",
    "CMakeLists.txt": "c++",
    "mix.exs": "elixir",
    "rebar.config": "erlang",
    "Package.swift": "swift",
    "pubspec.yaml": "dart",
    "stack.yaml": "haskell",
    "dune-project": "ocaml",
    "build.zig": "zig",
    "project.clj": "clojure",
    "deps.edn": "clojure",
}
# Not .h, which is C as well as C++, and no markup or data: a README is written in no language of ours.
_ENDINGS = (
    "python py pyi pyx ipynb|go go|rust rs|javascript js jsx mjs cjs|typescript ts tsx mts cts|java java|kotlin kt kts"
    "|scala scala|ruby rb rake|php php|c c|c++ cc cpp cxx hpp hh|c# cs|elixir ex exs|erlang erl|swift swift|dart dart"
    "|haskell hs|ocaml ml mli|zig zig|clojure clj cljs cljc|lua lua|perl pl pm|r r|julia jl|shell sh bash zsh|sql sql"
    "|objective-c m mm|vue vue|svelte svelte|powershell ps1|terraform tf|nim nim|f# fs fsx|groovy groovy|solidity sol"
)
ENDINGS = {ending: names[0] for names in (each.split() for each in _ENDINGS.split("|")) for ending in names[1:]}

# Other people's code, and what was made out of ours; names with a dot in front are left out anyway.
VENDORED = frozenset(
    """node_modules bower_components jspm_packages vendor vendors third_party thirdparty 3rdparty external externals
    deps extern Pods Carthage Godeps venv env virtualenv site-packages dist-packages __pycache__ target dist build out
    obj output coverage htmlcov public static assets data datasets generated gen tmp temp logs""".split()  # noqa: SIM905 - words are read better than forty quoted strings
)
SHARE = 0.1  # of the files in any language, that make a language one of the project's
# So many folders are read at each depth, evenly spread: forty packages must not hide what lies in them. A hook spends
# 0.2 ms on this repository and 0.5 ms on 200,000 files.
WIDTHS = (1, 5, 3, 2, 1, 1, 1, 1)
MOST_ENTRIES = 400  # of all folders together
MOST_IN_ONE = 150  # of one folder: ten thousand of the same say no more than these
SECONDS = 0.02  # a disk on the network may need milliseconds for each folder


def languages(root: str) -> tuple[str, ...]:
    """The languages of the project at *root*, those with a project file first; what cannot be read has none."""
    signs, counted = _seen(root)
    least = SHARE * sum(counted.values())
    shared = sorted((-files, language) for language, files in counted.items() if files >= least)
    return tuple(dict.fromkeys([SIGNS[sign] for sign in SIGNS if sign in signs] + [language for _, language in shared]))


def _seen(root: str) -> tuple[set[str], dict[str, int]]:
    """The project files in *root*, and how many files there are of each language, the folders near it first."""
    signs: set[str] = set()
    counted: dict[str, int] = {}
    level, left, until = [root], MOST_ENTRIES, monotonic() + SECONDS
    for depth, width in enumerate(WIDTHS):
        below: list[str] = []
        for folder in level[:: 1 + (len(level) - 1) // width]:
            if left <= 0 or monotonic() > until:
                return signs, counted
            folders, files, whole = _listed(folder, most=min(left, MOST_IN_ONE))
            if not depth:
                signs = {name for name in SIGNS if (name in files if whole else _there(f"{root}/{name}"))}
            for name in files:
                stem, _, ending = name.rpartition(".")
                if stem and (language := ENDINGS.get(ending)):
                    counted[language] = counted.get(language, 0) + 1
            below += [f"{folder}/{name}" for name in sorted(folders)]
            left -= len(folders) + len(files)
        if not below or (not depth and _is_nobodys(root)):
            break
        level = below
    return signs, counted


def _listed(folder: str, *, most: int) -> tuple[list[str], set[str], bool]:
    """Folders that may hold the project's own code, files, and whether that is all; never what a link leads to."""
    folders: list[str] = []
    files: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for at, entry in enumerate(entries):
                if at >= most:
                    return folders, files, False
                name = entry.name
                if not entry.is_dir(follow_symlinks=False):
                    files.add(name)
                elif name[0] != "." and name not in VENDORED:
                    folders.append(name)
    except (OSError, ValueError):  # not there, not a folder, not readable, or no path at all
        pass
    return folders, files, True


def _is_nobodys(root: str) -> bool:
    """Whether this is no project but / or somebody's home: there, macOS asks the user before we may look further."""
    home = os.environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
    return root in ("/", home.rstrip("/"))


def _there(path: str) -> bool:
    try:
        os.stat(path)
    except (OSError, ValueError):
        return False
    return True
