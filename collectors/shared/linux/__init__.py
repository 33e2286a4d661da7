"""Reads interfaces, addresses, routes, neighbours and Wi-Fi from the Linux kernel."""
