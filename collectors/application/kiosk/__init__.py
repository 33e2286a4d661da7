"""The venue's running Chromium or Edge, queried with the Chrome DevTools Protocol on loopback."""
