"""Finds secrets in text and masks them. Only the module `secret_sources` reads files."""
