"""The verbs of the retail API: its keys in the database, and what its client lists."""
