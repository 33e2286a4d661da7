"""A venue to try the agent in: what is played, and how."""
