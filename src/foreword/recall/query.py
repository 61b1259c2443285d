"""Moment -> what to look for: words, files and functions of its prompt, the task, in the scopes it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foreword.languages import languages
from foreword.recall.mentions import mentioned
from foreword.recall.task import task_of
from foreword.types import EMPTY, UNIVERSAL, Moment, Query
from foreword.words import pairs, terms

MOST_TOUCHED = 50  # files; who touched more works on everything
# Commands of hosts whose arguments are for the host: a window that is about to be emptied, a model, a server, a file.
HOSTS_OWN = ("compact", "compress", "clear", "resume", "model", "mcp", "plugin", "config", "add-dir", "export")

NOTIFIED = "<task-notification>"  # Claude's, in the user's name, when something ends in the background: nobody asked


def query_of(moment: Moment, *, synonyms: Mapping[str, Sequence[str]] = EMPTY) -> Query:
    """What a moment looks for, in the scopes it may see: what its prompt says and names, and what is being done."""
    prompt = topic_of(moment.prompt) if moment.name == "prompt" else moment.prompt  # who asks, asks for every word
    said = terms(prompt)
    files, functions = mentioned(prompt, root=moment.project.root)
    return Query(
        scopes=scopes_of(moment),
        terms=said,
        pairs=pairs(prompt),
        synonyms=_besides(said, synonyms),
        files=files,
        functions=functions,
        touched=moment.touched[:MOST_TOUCHED],
        task=task_of(prompt, moment.recent),
    )


def topic_of(prompt: str) -> str:
    """What a prompt is about: of a slash command what stands behind its name; of the host's own and ours, nothing."""
    if prompt.lstrip()[:1] != "/":
        return "" if prompt.startswith(NOTIFIED) else prompt
    command, _, rest = " ".join(prompt.split(None, 1)).partition(" ")
    name = command[1:].lower()
    if "/" in name or "." in name or not name:
        return prompt  # a path
    return "" if name in HOSTS_OWN or name.startswith("foreword:") else rest


def scopes_of(moment: Moment) -> tuple[str, ...]:
    """The project's own, its languages', and the universal scope: nothing else is ever a candidate."""
    spoken = languages(moment.project.root) if moment.languages is None else moment.languages
    every = (moment.project.scope, *(f"language:{language}" for language in spoken), UNIVERSAL)
    return tuple(each for each in every if each.startswith(moment.scope))


def _besides(said: Sequence[str], synonyms: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The synonyms that were not said themselves, each with the word it may stand for."""
    return {other: term for term in reversed(said) for other in synonyms.get(term, ()) if other not in said}
