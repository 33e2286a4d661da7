"""The venue's running Chromium or Edge, asked over the Chrome DevTools Protocol on loopback."""
