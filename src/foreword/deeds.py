"""Event -> deed: what happened, in words that are the same for every host. Transcripts are read into deeds too."""

from __future__ import annotations

from foreword.values import value


@value
class Edit:
    """What a tool put in the place of what: whole texts of a file, or a piece of it; None where there was no file."""

    file: str
    before: str | None
    after: str | None
    whole: bool = False


@value
class Todo:
    """One entry of the agent's own list."""

    text: str
    done: bool = False


@value
class Deed:
    """One thing that happened in a session."""

    kind: str  # start, prompt, answer, tool, compaction or end
    at: float
    text: str = ""  # what was said: by the user in a prompt, by the agent in an answer
    source: str = ""  # of a start: startup, resume, clear, compact or fork
    act: str = ""  # of a tool: run, edit, read, search, fetch, plan, delegate or other
    tool: str = ""  # as the host calls it
    command: str = ""  # that was run
    files: tuple[str, ...] = ()  # relative to the project's root where they lie in it
    output: str = ""  # what came back, of whatever stream
    failed: bool | None = None  # None: the host does not tell
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] = ()  # the whole list as it stands now
    id: str = ""  # the same for the same deed, also when a transcript tells it again
