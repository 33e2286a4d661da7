"""OAuth 2.0 for the agent protocol."""
