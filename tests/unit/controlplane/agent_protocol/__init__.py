"""The agent protocol, held against the contract."""
