"""Reads the interfaces of Linux: their type, Wi-Fi network and DHCP lease."""
