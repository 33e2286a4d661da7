"""API keys: their storage, and the reading of the keys of calls."""
