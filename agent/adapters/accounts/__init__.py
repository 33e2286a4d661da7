"""Users of this machine, and the rights of this process."""
