"""Credentials of the retail API: API keys, tokens and signing keys."""
