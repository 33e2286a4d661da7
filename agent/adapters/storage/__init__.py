"""The agent's persistent state: its directory, journal, outbox and small files."""
