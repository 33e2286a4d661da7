"""Accounts: users, memberships, sessions, API keys and OAuth grants."""
