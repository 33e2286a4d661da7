"""The agent protocol, held to what others wrote: the official client and the conformance suite."""
