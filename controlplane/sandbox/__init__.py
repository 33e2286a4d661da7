"""A generated merchant, the same for the same seed, with every unusual case for figures."""
