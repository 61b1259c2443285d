"""Recognise prompts that ask for a routine: commit, push, run the tests."""

from __future__ import annotations

import re

from foreword.terms import lazy_pattern

# What is done in every session, each with how people ask for it.
_ROUTINES = {
    "commit": r"comm?it(?:s|ted|ting)?|amend|squash|fixup",
    "push": r"h?push(?:ed|ing)?",
    "pull request": r"pr|prs|pull request|merge request|merge[ds]?",
    "branch": r"branch|rebase|checkout|check out|back to (?:main|master)|switch to|pull (?:in )?(?:the )?latest|stash",
    "test": r"(?:run|rerun|re-run|fix|check) (?:all )?(?:the )?(?:\w+ )?(?:suite|specs|checks|pipeline)|tests?|ci",
    "lint": r"lint(?:er|ing)?|format(?:ter|ting)?|type-?check",
    "build": r"(?:re)?build|compile|start the (?:\w+ )?server|restart",
    "release": r"release|publish|deploy|tag|bump|version",
    "changelog": r"changelog(?:\.md)?",
}
_ROUTINE = {name: lazy_pattern(rf"\b(?:{words})\b", re.I) for name, words in _ROUTINES.items()}


def routine_of(typed: str) -> str:
    """Return the routine that a short prompt asks for; empty where it asks for something else or says more."""
    if len(typed) > 160:
        return ""
    return next((name for name, words in _ROUTINE.items() if words.search(typed)), "")
