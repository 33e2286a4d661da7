"""Finds out what is wrong with this machine's agent: declared checks, run together, judged."""
