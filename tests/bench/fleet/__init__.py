"""Measures the reference service with many devices. The devices are simulated with plain HTTP, not
with the agent's client.
"""
