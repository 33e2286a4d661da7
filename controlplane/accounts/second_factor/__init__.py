"""The second factor of users: one-time passwords, and recovery codes."""
