"""Turn a hook call into a redacted event."""
