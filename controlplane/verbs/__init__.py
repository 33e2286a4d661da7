"""The verbs of ``venue-control``: each takes the parsed options and returns an exit code."""
