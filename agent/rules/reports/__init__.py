"""Builds payloads from facts and seals them, within the limits of the contract."""
