"""The audit log: written together with each change, read by owners."""
