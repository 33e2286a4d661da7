"""The agent protocol: a Model Context Protocol server with one endpoint that accepts only POST."""
