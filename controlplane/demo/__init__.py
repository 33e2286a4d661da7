"""A simulated venue in which to try the agent."""
