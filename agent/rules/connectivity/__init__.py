"""The connectivity record: finds the cause of an interruption, and builds incidents."""
