"""Build the query of a trigger: words, files and functions of its prompt, the task, and the scopes it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foreword.models import EMPTY, UNIVERSAL, Query, Trigger
from foreword.projects import languages
from foreword.recall.mentions import mentioned
from foreword.terms import broken, pairs, terms

MOST_TOUCHED = 50  # files; who touched more works on everything
# Commands of hosts whose arguments are for the host: a window that is about to be emptied, a model, a server, a file.
HOSTS_OWN = ("compact", "compress", "clear", "resume", "model", "mcp", "plugin", "config", "add-dir", "export")

NOTIFIED = "<task-notification>"  # Claude's, in the user's name, when something ends in the background: nobody asked


def query_of(trigger: Trigger, *, synonyms: Mapping[str, Sequence[str]] = EMPTY) -> Query:
    """Return what a trigger looks for, in the scopes it may see: words, files, functions, and the task."""
    prompt = topic_of(trigger.prompt) if trigger.name == "prompt" else trigger.prompt  # who asks, asks for every word
    words = terms(prompt)
    files, functions = mentioned(prompt, root=trigger.project.root)
    return Query(
        scopes=scopes_of(trigger),
        terms=words,
        pairs=pairs(prompt),
        synonyms={other: term for term in reversed(words) for other in synonyms.get(term, ()) if other not in words},
        files=files,
        functions=functions,
        touched=trigger.touched[:MOST_TOUCHED],
        task=task_of(prompt, trigger.recent),
    )


def topic_of(prompt: str) -> str:
    """Return the text that a prompt is about: the arguments of a slash command, nothing for an agent's own command."""
    if prompt.lstrip()[:1] != "/":
        return "" if prompt.startswith(NOTIFIED) else prompt
    command, _, rest = " ".join(prompt.split(None, 1)).partition(" ")
    name = command[1:].lower()
    if "/" in name or "." in name or not name:
        return prompt  # a path
    return "" if name in HOSTS_OWN or name.startswith("foreword:") else rest


def scopes_of(trigger: Trigger) -> tuple[str, ...]:
    """Return the project's own, its languages', and the universal scope: nothing else is ever a candidate."""
    spoken = languages(trigger.project.root) if trigger.languages is None else trigger.languages
    every = (trigger.project.scope, *(f"language:{language}" for language in spoken), UNIVERSAL)
    return tuple(each for each in every if each.startswith(trigger.scope))


# --- the task --------------------------------------------------------------------------------------------------------

SIGNS = {
    "coding": "implement feature refactor add build convert create extend extract integrate migrate rename replace",
    "debugging": """broken bug bugs crash crashes debug error errors exception exceptions fail fails failing failure fix
    fixes flaky hangs leak panic regression traceback wrong""",
    "documentation": "changelog doc docs docstring docstrings document documentation glossary readme tutorial typo",
    "architecture": "adr alternative approach architecture decide decision design layering rationale redesign tradeoff",
}
READ = 400  # characters at the beginning and at the end: what lies between was pasted
LATELY = 3  # tool uses among which a failure speaks for debugging
_IN_NAMES = frozenset("_/.-")


def task_of(prompt: str, recent: Sequence[str] = ()) -> str:
    """Return the task that the words of *prompt* and the kinds of *recent* tool events speak for most; else nothing."""
    sample = prompt if len(prompt) <= 2 * READ else f"{prompt[:READ]} {prompt[-READ:]}"
    # A file or a function that is called `test_exceptions` or `create-token` says nothing about the task.
    words = set(broken(" ".join(word for word in sample.split() if _IN_NAMES.isdisjoint(word[:-1]))).lower().split())
    speak = {task: len(words.intersection(signs.split())) for task, signs in SIGNS.items()}
    speak["debugging"] += "tool_failure" in recent[:LATELY]
    best, second = sorted(speak, key=speak.__getitem__, reverse=True)[:2]
    return best if speak[best] > speak[second] else ""
