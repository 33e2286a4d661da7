"""Calls to the service, the binding of the device, and the circuit breakers."""
