"""Reads this machine's interfaces and neighbour table from its kernel."""
