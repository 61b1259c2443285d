"""Answer what the viewer's pages need: each function takes the App and returns what becomes one JSON object."""
