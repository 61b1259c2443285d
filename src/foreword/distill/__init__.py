"""Deeds -> memories, links and changes: what a session came to, with no model."""
