"""What a project remembers -> amendments that keep it clean, planned and not done: pure, and the same for the same.

duplicates.py merges what says the same, contradictions.py supersedes what was chosen otherwise since, staleness.py
lets what speaks of code that is gone sink. Each `plan` is a `Planner`; the worker runs them in turn and carries out
what they plan.
"""

from __future__ import annotations

from foreword.amendments import About, Planner

__all__ = ["About", "Planner"]
