"""Calls to the service as this device: its binding and the circuit breakers."""
