"""The real clients that we are tested with: where npm has each, in which version, and what its program is called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pinned:
    """One client in one version."""

    package: str
    version: str
    binary: str
    script: str = ""  # among its modules, where it is no program but something that a page loads

    @property
    def spec(self) -> str:
        """As npm is asked for it."""
        return f"{self.package}@{self.version}"

    @property
    def folder(self) -> str:
        """Where it lies among the installed ones; another version lies beside it."""
        return f"{self.binary}-{self.version}"


VERSIONS = {
    "claude-code": Pinned("@anthropic-ai/claude-code", "2.1.325", "claude"),
    "opencode": Pinned("opencode-ai", "1.18.33", "opencode"),
    "codex": Pinned("@openai/codex", "0.166.0", "codex"),
    "gemini": Pinned("@google/gemini-cli", "0.61.0", "gemini"),
    "copilot": Pinned("@github/copilot", "1.0.102", "copilot"),
}
AXE = Pinned("axe-core", "4.14.0", "axe-core", script="axe-core/axe.min.js")  # tells what a page keeps from people
BIOME = Pinned("@biomejs/biome", "2.6.6", "biome")  # how the pages' code is laid out, and what is wrong in it
