"""This machine's own place in the network, from its kernel."""
