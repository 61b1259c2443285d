"""Actions -> memories, links and changes: what a session came to, with no model.

draft.py takes actions in and brings the harvest; said.py reads the user's sentences, gist.py what was talked about,
request.py what was asked for, commands.py and failures.py what was run and how it ended, sentences.py how people write.
"""

from foreword.distill.changes import memory_of_change
from foreword.distill.draft import Distilled, Draft, distil, session_uid
from foreword.distill.merge import closed, merged

__all__ = ["Distilled", "Draft", "closed", "distil", "memory_of_change", "merged", "session_uid"]
