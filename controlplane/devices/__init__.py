"""Devices: list, liveness, timeline, requests and reports."""
