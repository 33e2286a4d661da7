"""What neighbours announce: multicast DNS service discovery (RFC 6762, RFC 6763)."""
