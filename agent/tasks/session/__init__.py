"""Talking to the service as this device: its binding, and when a call may be made."""
