"""API keys: stores them, and finds the caller that a key belongs to."""
