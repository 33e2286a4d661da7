"""Reads this machine's interfaces, neighbour table and name servers from its system."""
