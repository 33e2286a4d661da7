"""Reads the interfaces, the resolver, the connection to the service, and watched devices."""
