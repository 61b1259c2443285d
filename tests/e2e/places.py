"""A host, a request, a text of ours -> whether it stands where this host's users' models read it, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.e2e.requests import Part, holding


def at_start(host: str, parts: Sequence[Part], text: str, *, prompt: str) -> str:
    """Why what a session was given at its start is not in its place; nothing when it is."""
    return _wrong(STARTS[host], parts, text, prompt)


def at_prompt(host: str, parts: Sequence[Part], text: str, *, prompt: str) -> str:
    """Why what came with a prompt is not in its place; nothing when it is."""
    return _wrong(PROMPTS[host], parts, text, prompt)


def named(parts: Sequence[Part], text: str) -> str:
    """Where a text was found, for a person."""
    [found] = holding(parts, text.strip())
    tag = next((each for each in TAGS if each in found.text), "")
    return f"a {found.role} message{' in ' + tag if tag else ''}"


TAGS = ("<hook_context>", "<system-reminder>", "<system_reminder>")  # in which some hosts wrap what hooks say


Place = Callable[[Part, Part, Sequence[Part]], bool]  # ours, the prompt's part, all of them


def _wrong(place: tuple[str, Place], parts: Sequence[Part], text: str, prompt: str) -> str:
    found = holding([part for part in parts if part.role != "tool"], text.strip())
    if len(found) != 1:
        return f"it is in the request {len(found)} times, not once"
    prompt_parts = [part for part in parts if part.role == "user" and prompt in part.text]
    if not prompt_parts:
        return "the prompt itself is not in the request"
    where, is_there = place
    if is_there(found[0], prompt_parts[-1], parts):
        return ""
    return f"it is not {where}, but in a {found[0].role} part of message {found[0].message}"


def _claude(ours: Part, prompt: Part, parts: Sequence[Part]) -> bool:
    """Newer models are given a system message behind the user's; older ones a reminder in the user's own."""
    if ours.role == "system":
        return ours.message > prompt.message
    return ours.role == "user" and ours.text.lstrip().startswith("<system-reminder>")


def _second_system(ours: Part, prompt: Part, parts: Sequence[Part]) -> bool:
    return [part for part in parts if part.role == "system"][1:2] == [ours]


STARTS: dict[str, tuple[str, Place]] = {
    "claude-code": ("a system message behind the prompt, or a system-reminder", _claude),
    "opencode": ("the second system message", _second_system),
    "codex": (
        "a developer message before the prompt",
        lambda ours, prompt, _: ours.role == "developer" and ours.message < prompt.message,
    ),
    "gemini": (
        "a <hook_context> in front of the prompt",
        lambda ours, prompt, _: ours == prompt and ours.text.lstrip().startswith("<hook_context>"),
    ),
    "copilot": (
        "a user message of its own",
        lambda ours, prompt, _: ours.role == "user" and ours.message != prompt.message,
    ),
}
PROMPTS: dict[str, tuple[str, Place]] = {
    "claude-code": STARTS["claude-code"],
    "opencode": (
        "a part of its own in the user's message",
        lambda ours, prompt, _: ours.role == "user" and ours.message == prompt.message and ours != prompt,
    ),
    "codex": (
        "a developer message behind the prompt",
        lambda ours, prompt, _: ours.role == "developer" and ours.message > prompt.message,
    ),
    "gemini": (
        "a <hook_context> part in the user's message",
        lambda ours, prompt, _: (
            ours.role == "user" and ours.message == prompt.message and ours.text.lstrip().startswith("<hook_context>")
        ),
    ),
    "copilot": (
        "a system_reminder at the end of the user's message",
        lambda ours, prompt, _: (
            ours.role == "user" and ours.message == prompt.message and "<system_reminder>" in ours.text
        ),
    ),
}
