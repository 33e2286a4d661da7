"""Measures the service while read-only API keys request expensive figures."""
