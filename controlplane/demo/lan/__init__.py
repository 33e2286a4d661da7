"""A LAN of many hosts, simulated behind a TAP device."""
