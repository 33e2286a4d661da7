"""Output for users and programs: tables, JSON, CSV, progress and confirmations."""
