"""The agent protocol, tested with the official client and the official conformance suite."""
