"""The audit log: what is in it, and what never is."""
