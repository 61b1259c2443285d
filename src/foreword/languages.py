"""A project's folder -> the languages it is written in, by the files that give them away. Light."""

from __future__ import annotations

try:
    import posix as system
except ImportError:  # not on Windows
    import os as system  # type: ignore[no-redef]

_SIGNS = {
    "pyproject.toml": "python",
    "setup.py": "python",
    "requirements.txt": "python",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "package.json": "javascript",
    "tsconfig.json": "typescript",
    "pom.xml": "java",
    "build.gradle": "java",
    "Gemfile": "ruby",
    "composer.json": "php",
    "CMakeLists.txt": "c++",
}


def languages(root: str) -> tuple[str, ...]:
    """The languages of the project at *root*; a folder that cannot be read has none."""
    try:
        names = set(system.listdir(root))
    except (OSError, ValueError):  # not there, not readable, or no path at all
        return ()
    return tuple(dict.fromkeys(language for sign, language in _SIGNS.items() if sign in names))
