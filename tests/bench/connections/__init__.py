"""Measures heartbeats beside clients that hold connections of the service."""
