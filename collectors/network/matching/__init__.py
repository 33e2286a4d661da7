"""Matches the printers of this machine with devices of the network. No I/O."""
