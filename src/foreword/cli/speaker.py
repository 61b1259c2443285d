"""The environment of a command -> the agent whose shell it runs in; nobody where a person typed it."""

from __future__ import annotations

from collections.abc import Mapping

from foreword.errors import BadRequest

# What agents set for the commands that they run. What such a command says is the agent's, whoever is logged in.
VARIABLES = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "CODEX_CI": "codex",
    "GEMINI_CLI": "gemini",
    "OPENCODE": "opencode",
    "CURSOR_AGENT": "cursor",
    "COPILOT_AGENT_SESSION_ID": "copilot",
    "AI_AGENT": "agent",
}


def speaker(environ: Mapping[str, str]) -> str:
    """The agent that speaks here; empty for the user."""
    return next((agent for name, agent in VARIABLES.items() if environ.get(name)), "")


def refuse_agents(environ: Mapping[str, str]) -> None:
    """BadRequest in an agent's shell: what is done here counts as the user's own, and no agent says it for them."""
    from foreword.audit import OWN_TERMINAL, USER_ONLY

    if speaker(environ):
        raise BadRequest(USER_ONLY, hint=OWN_TERMINAL)
