"""Simulates a LAN of many hosts behind a TAP device."""
