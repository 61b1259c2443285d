"""Use a model of the user's choice to improve summaries: optional, off by default, and nothing of it imported then."""
