"""Measures heartbeats while other clients hold connections of the service."""
