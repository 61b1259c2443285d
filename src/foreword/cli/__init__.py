"""What a person types -> a question to the worker -> what they read. A door: no SQL, and no logic of its own."""
