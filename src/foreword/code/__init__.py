"""Find the functions that texts, edits and commits define and change, and who calls whom, with tree-sitter."""
