"""Import what this machine already holds: git history, project files, transcripts, exports and other tools' stores."""
