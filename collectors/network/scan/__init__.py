"""Which hosts are there, and which of their TCP ports accept a connection."""
