"""A project that rests -> its memory tidied: planned on what is there, carried out one amendment at a time."""

from __future__ import annotations

from foreword.tidy import Planner

# In this order; each sees what the ones before it have done. Whoever has another one adds it here.
PLANNERS: tuple[Planner, ...] = ()
