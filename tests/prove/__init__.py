"""What docs/guarantees.md promises, tried harder than before each commit: `make prove`; a share is in `make test`."""
