"""What a host must be told -> its files changed so that it can all be undone: plan, apply, undo."""
