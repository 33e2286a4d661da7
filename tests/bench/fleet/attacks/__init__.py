"""Measures the service while others attack it."""
