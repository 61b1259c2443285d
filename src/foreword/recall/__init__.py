"""Choose the context of a trigger: trigger, query, search, rank, budget, render."""
