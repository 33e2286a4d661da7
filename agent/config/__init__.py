"""The configuration: its model, how a file becomes one, and what is said about it."""
