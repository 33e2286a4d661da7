"""Measurements of the load that the web console causes on the service."""
