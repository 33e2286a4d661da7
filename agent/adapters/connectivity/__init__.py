"""Reads the path to the service: links, the gateway, the name servers and the service."""
