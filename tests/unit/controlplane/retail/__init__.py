"""The retail API."""
