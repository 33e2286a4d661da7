"""Measures the service with the command streams of up to 100,000 devices, on PostgreSQL."""
