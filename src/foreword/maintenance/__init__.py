"""Keep the store in order: merge duplicates, supersede contradictions, mark stale memories, propose rules."""
