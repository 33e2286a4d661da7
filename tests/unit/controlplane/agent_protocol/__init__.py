"""The agent protocol, compared with the contract."""
