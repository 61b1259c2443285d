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


# --- the task --------------------------------------------------------------------------------------------------------

# Task -> how much a word speaks for it -> the words. Each counts once, and some speak for two tasks.
SIGNS = {
    "coding": {
        3: "implement implements implementing implemented feat feature refactor refactoring refactored",
        2: """add adding adds build convert create creating extend extract generate integrate introduce migrate
        port rename renaming replace support supports wire write writing""",
        1: """accept allow change changing code drop enable endpoint expose function handle improve make method
        move parameter remove return simplify split switch test tests update upgrade use""",
    },
    "debugging": {
        4: """broken bug bugfix bugs debug debugging fix fixed fixes fixing hotfix regression segfault stacktrace
        traceback""",
        3: """crash crashed crashes crashing deadlock diagnose error errors exception exceptions fail failed
        failing fails failure failures flaky hang hanging hangs intermittent investigate leak leaks panic
        unexpected wrong""",
        2: """breaks broke cannot cant corrupt corrupted doesnt incorrect incorrectly isnt issue missing nan
        null problem race reproduce stopped stuck timeout timeouts undefined warning why workaround""",
        1: "catch expected log logs prevent raise raises resolve slow still trace",
    },
    "documentation": {
        5: "changelog docs docstring docstrings documentation readme",
        4: "doc document documented documenting documents glossary tutorial typo typos wording",
        2: "comment comments description example examples guide notes spelling",
        1: "clarify describe explain heading link links page release section summary",
    },
    "architecture": {
        5: "adr architectural architecture",
        4: "design designs redesign tradeoff tradeoffs",
        3: """alternative alternatives approach decide decided decision diagram layering microservice
        microservices monolith organise organize rationale restructure roadmap scalability""",
        2: """abstraction boundaries choose chose chosen compare coupling decouple layers overview restructuring
        scale strategy structure""",
        1: """best better between boundary component components data dependencies flow interface layer migrate
        module modules pattern plan protocol schema service services should split storage system""",
    },
}
ENOUGH = 2  # less is no evidence
READ = 400  # characters at the beginning and at the end: what lies between was pasted
LATELY = 3  # tool uses that count; a failure speaks for debugging, the more the nearer it is
FAILED_LAST, FAILED_LATELY = 2, 1
_IN_NAMES = frozenset("_/.-")


def task_of(prompt: str, recent: Sequence[str] = ()) -> str:
    """The task that the words of *prompt* and the kinds of *recent* tool events, newest first, speak for most."""
    speak = dict.fromkeys(SIGNS, 0)
    sample = prompt if len(prompt) <= 2 * READ else f"{prompt[:READ]} {prompt[-READ:]}"
    # A file or a function that is called `test_exceptions` or `create-token` says nothing about the task.
    plain = " ".join(word for word in sample.split() if _IN_NAMES.isdisjoint(word[:-1]))
    words = set(broken(plain.replace("'t", "t").replace("’t", "t")).lower().split())
    for task, weights in SIGNS.items():
        for weight, signs in weights.items():
            speak[task] += weight * len(words.intersection(signs.split()))
    if "tool_failure" in recent[:LATELY]:
        speak["debugging"] += FAILED_LAST if recent[0] == "tool_failure" else FAILED_LATELY
    best, second = sorted(speak, key=speak.__getitem__, reverse=True)[:2]
    return best if speak[best] >= ENOUGH and speak[best] > speak[second] else ""
