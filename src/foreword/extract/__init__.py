"""Turn the events of a session into memories, without a model."""
