"""The agent protocol: a Model Context Protocol server over one POST (contract: Agent protocol)."""
