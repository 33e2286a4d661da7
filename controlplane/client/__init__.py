"""Clients of the service, over HTTP."""
