"""The tools of the agent protocol (MCP). `controlplane.web.agent_protocol` serves them."""
