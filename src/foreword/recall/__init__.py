"""Choose what an agent is told: trigger, query, search, rank, budget, render."""
