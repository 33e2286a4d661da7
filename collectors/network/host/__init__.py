"""This machine's own place in the network, as its kernel knows it."""
