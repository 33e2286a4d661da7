"""The daemon's loops. A loop waits for an event, decides with `agent.rules`, and calls adapters."""
