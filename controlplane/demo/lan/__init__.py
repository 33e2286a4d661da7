"""A LAN of many hosts, played behind a TAP device."""
