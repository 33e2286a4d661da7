"""Resolves addresses by ARP, limited in speed and by the size of the neighbour table."""
