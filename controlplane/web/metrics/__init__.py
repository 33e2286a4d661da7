"""Metrics, and the listener that serves them."""
