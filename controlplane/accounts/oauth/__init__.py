"""OAuth 2.0 for the agent protocol: programs that people let read what they may see."""
