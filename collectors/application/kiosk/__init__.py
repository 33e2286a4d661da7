"""Queries the kiosk's running Chromium or Edge with the Chrome DevTools Protocol on loopback."""
