"""Find the functions that texts, edits and commits define and change.

`definitions` reads what a text defines, `changes` what a tool's edits changed, `commits.changed_functions` what git's
commits changed, `callgraph` who calls whom. None of them raises for what a text holds. A `Change` comes without
project, session and time, which the caller knows. Grammars are loaded when a file of their language is seen.
"""

from __future__ import annotations

from foreword.code.definitions import Definition, definitions
from foreword.code.diff import changes

__all__ = ["Definition", "changes", "definitions"]
