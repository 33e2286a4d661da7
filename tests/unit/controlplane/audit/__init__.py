"""The audit log: its content, and data that it never contains."""
