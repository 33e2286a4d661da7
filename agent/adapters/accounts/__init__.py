"""Users of this machine: who they are, and what is done with whose rights."""
