"""A month with one project: sixty sessions told to a keeper day by day, and what memory is worth at its end."""
