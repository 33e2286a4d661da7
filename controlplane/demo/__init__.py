"""Simulates a venue in which a user can try the agent."""
