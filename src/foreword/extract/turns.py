"""Group the actions of a session into turns: one human prompt and everything until the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from foreword.extract.actions import Action, Choice
from foreword.extract.authorship import Authorship, authorship_of

EARLIER = 40  # texts of the agent and of tools that a prompt is compared with, to tell what was pasted


@dataclass(frozen=True)
class Turn:
    """One human prompt and everything until the next one."""

    number: int  # from 0, in its session
    prompt: Action | None  # None before the first prompt of a session
    author: Authorship  # who wrote the prompt
    actions: tuple[Action, ...] = field(repr=False)  # after the prompt, in their order
    began: float = 0.0
    ended: float = 0.0

    @property
    def text(self) -> str:
        """The prompt as submitted."""
        return self.prompt.text if self.prompt else ""

    @property
    def typed(self) -> str:
        """The words that a person typed; empty where somebody or something else wrote the prompt."""
        return self.author.typed

    @property
    def answer(self) -> str:
        """The agent's final message."""
        return next((each.text for each in reversed(self.actions) if each.kind == "answer"), "")

    @property
    def runs(self) -> tuple[Action, ...]:
        """The commands that were run."""
        return tuple(each for each in self.actions if each.kind == "tool" and each.act == "run")

    @property
    def edited(self) -> tuple[str, ...]:
        """The files that were edited, each once, in order."""
        return _files(self.actions, "edit")

    @property
    def read(self) -> tuple[str, ...]:
        """The files that were read, each once, in order."""
        return _files(self.actions, "read")

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The agent's questions that the user answered."""
        return tuple(choice for each in self.actions for choice in each.choices)


def turns_of(actions: Iterable[Action]) -> tuple[Turn, ...]:
    """Split the actions of one session at its prompts."""
    groups: list[tuple[Action | None, list[Action]]] = [(None, [])]
    for action in actions:
        if action.kind == "prompt":
            groups.append((action, []))
        else:
            groups[-1][1].append(action)
    if not any(each.kind in ("tool", "answer") for each in groups[0][1]):
        del groups[0]
    turns: list[Turn] = []
    earlier: list[str] = []
    for number, (prompt, some) in enumerate(groups):
        author = (
            authorship_of(prompt.text, earlier=earlier[-EARLIER:]) if prompt else Authorship("machine", "", "no prompt")
        )
        every = [*([prompt] if prompt else []), *some]
        began, ended = min((each.at for each in every), default=0.0), max((each.at for each in every), default=0.0)
        turns.append(Turn(number, prompt, author, tuple(some), began=began, ended=ended))
        earlier += [text for each in some if (text := each.text or each.output)]
    return tuple(turns)


def _files(actions: Sequence[Action], act: str) -> tuple[str, ...]:
    done = (each for each in actions if each.act == act and not each.failed)
    return tuple(dict.fromkeys(file for each in done for file in each.files))
