"""The seven tools (contract: Agent protocol)."""
