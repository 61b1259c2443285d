"""The viewer: web pages on a loopback port, served by `foreword view`, that show what the worker's API tells."""
