"""Recognizes secrets and removes them from text. Only `places` reads files."""
