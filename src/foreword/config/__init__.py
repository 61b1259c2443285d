"""config.toml, synonyms.toml and the environment -> settings, where each came from, and what is wrong with them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.config.file import read, with_lines
from foreword.config.settings import SETTINGS, Settings, checked, from_text, named
from foreword.errors import BadConfig
from foreword.layout import LAYOUTS, merged, shown
from foreword.paths import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.paths import Home

__all__ = ["SETTINGS", "Loaded", "Settings", "load", "load_synonyms"]

PACKAGED_SYNONYMS = Path(__file__).parent.with_name("synonyms.toml")


@dataclass(frozen=True)
class Loaded:
    """Settings that can always be used, with the origin of each and a sentence for all that was wrong."""

    settings: Settings
    origin: Mapping[str, str]  # name -> default, file or environment
    problems: tuple[str, ...]


def load(home: Home, environ: Mapping[str, str]) -> Loaded:
    """The environment over the file over the defaults; what is broken is left out and told, and nothing is raised."""
    file = read(home.config)
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    origin = dict.fromkeys((*values, "recipes"), "default")
    complaints: list[tuple[tuple[str, ...], str]] = []
    for name, given in file.table.items():
        if name == "recipes":
            continue
        try:
            values[name] = _expanded(checked(named(name), given), environ)
            origin[name] = "file"
        except BadConfig as exc:
            complaints.append(((name,), f"{exc}; {exc.hint}"))
    recipes, wrong = merged(file.table.get("recipes", {}))
    complaints += [(("recipes", *each.path), each.says) for each in wrong]
    if recipes != LAYOUTS:
        origin["recipes"] = "file"
    problems = file.problems + with_lines(home.config, file.text, complaints)
    for setting in SETTINGS:
        if text := environ.get(setting.env, ""):
            try:
                values[setting.name] = _expanded(checked(setting, from_text(setting, text)), environ)
                origin[setting.name] = "environment"
            except BadConfig as exc:
                problems += (f"{setting.env} in the environment is not used: {exc}",)
    return Loaded(settings=Settings(**values, recipes=recipes), origin=origin, problems=problems)


def load_synonyms(home: Home) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Each word with the words it stands for: ours, with every word that the user's file has replaced by the user's."""
    words = {word: _words(word, given) for word, given in tomllib.loads(PACKAGED_SYNONYMS.read_text("utf-8")).items()}
    file = read(home.synonyms)
    complaints: list[tuple[tuple[str, ...], str]] = []
    for word, given in file.table.items():
        try:
            words[word.lower()] = _words(word, given)
        except BadConfig as exc:
            complaints.append(((word,), f"{exc}; {exc.hint}"))
    # An empty list is how a user takes one of our words out.
    kept = {word: others for word, others in words.items() if others}
    return kept, file.problems + with_lines(home.synonyms, file.text, complaints)


def _expanded(checked: object, environ: Mapping[str, str]) -> object:
    return tuple(expand(each, environ) for each in checked) if isinstance(checked, tuple) else checked


def _words(word: str, given: object) -> tuple[str, ...]:
    if not (
        _is_word(word) and isinstance(given, list) and all(isinstance(each, str) and _is_word(each) for each in given)
    ):
        raise BadConfig(
            f"{shown(word)} must be one word with a list of single words, not {shown(given)}",
            hint='write it as: deploy = ["ci", "pipeline"]',
        )
    return tuple(dict.fromkeys(each.lower() for each in given if each.lower() != word.lower()))


def _is_word(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isprintable() and " " not in text
