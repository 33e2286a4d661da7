"""The configuration: its models, reading the file, and error messages."""
