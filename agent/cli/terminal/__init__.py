"""How verbs write to a terminal."""
