"""Discovers the services that neighbours announce by multicast DNS (RFC 6762, RFC 6763)."""
