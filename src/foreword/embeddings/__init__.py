"""Search by embeddings beside words: optional, off by default, and nothing of it imported then."""
