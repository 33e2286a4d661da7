"""Discovers the hosts of the network, and which of their TCP ports accept a connection."""
