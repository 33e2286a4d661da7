"""The daemon's loops. Each waits for something, decides by a rule, and acts by an adapter."""
