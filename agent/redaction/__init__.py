"""Recognizes secrets and removes them from text. Only `secret_sources` reads files."""
