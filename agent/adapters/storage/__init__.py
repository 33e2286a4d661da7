"""What the agent keeps: its state directory, journal, outbox and small files."""
