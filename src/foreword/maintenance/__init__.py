"""Keep the store in order: propose rules, and compare what memories say."""
