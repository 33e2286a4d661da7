"""The differences between two reports of one kind, in plain text."""
