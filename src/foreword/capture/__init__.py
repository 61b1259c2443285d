"""Turn hook payloads into redacted events."""
