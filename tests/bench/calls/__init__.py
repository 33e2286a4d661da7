"""Measures the processor time of the service for each call."""
