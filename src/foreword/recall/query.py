"""Build the query of a trigger: words, files and functions of its prompt, the task, and the scopes it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foreword.models import EMPTY, UNIVERSAL, Query, Trigger
from foreword.projects import languages
from foreword.recall.mentions import mentioned
from foreword.recall.task import task_of
from foreword.terms import pairs, terms

MOST_TOUCHED = 50  # files; who touched more works on everything
# Commands of hosts whose arguments are for the host: a window that is about to be emptied, a model, a server, a file.
HOSTS_OWN = ("compact", "compress", "clear", "resume", "model", "mcp", "plugin", "config", "add-dir", "export")

NOTIFIED = "<task-notification>"  # Claude's, in the user's name, when something ends in the background: nobody asked


def query_of(trigger: Trigger, *, synonyms: Mapping[str, Sequence[str]] = EMPTY) -> Query:
    """What a moment looks for, in the scopes it may see: what its prompt says and names, and what is being done."""
    prompt = topic_of(trigger.prompt) if trigger.name == "prompt" else trigger.prompt  # who asks, asks for every word
    words = terms(prompt)
    files, functions = mentioned(prompt, root=trigger.project.root)
    return Query(
        scopes=scopes_of(trigger),
        terms=words,
        pairs=pairs(prompt),
        synonyms=_besides(words, synonyms),
        files=files,
        functions=functions,
        touched=trigger.touched[:MOST_TOUCHED],
        task=task_of(prompt, trigger.recent),
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


def scopes_of(trigger: Trigger) -> tuple[str, ...]:
    """The project's own, its languages', and the universal scope: nothing else is ever a candidate."""
    spoken = languages(trigger.project.root) if trigger.languages is None else trigger.languages
    every = (trigger.project.scope, *(f"language:{language}" for language in spoken), UNIVERSAL)
    return tuple(each for each in every if each.startswith(trigger.scope))


def _besides(words: Sequence[str], synonyms: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the synonyms that are not among *words*, each with the word it may stand for."""
    return {other: term for term in reversed(words) for other in synonyms.get(term, ()) if other not in words}
