"""The agent's persistent state: directory, journal, outbox and small files."""
